"""What carries durable work around sessions: every engine does the same (`tests/engine`).

A job is a row of the store until it is done, so none is lost with a server or an engine. It is done at least once, by
one server at a time, and again and again by the policy of its kind while that fails. No prompt and no event waits for a
job.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from ostler.server.store.records import Job, NewJob


class NotDone(Exception):
    """A job was tried in vain; says why, for the log of this server alone."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often a job is tried: after pauses that double from the first to the longest, and how long in all."""

    first: float
    longest: float
    within: float


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """How jobs of one kind are done."""

    run: Callable[[Job], Awaitable[None]]
    """Raises NotDone if it has to be tried again; it must bear being done twice."""
    retry: Retry
    seconds: float
    """The longest that one try may take."""


class Engine(Protocol):
    """Does jobs from `start` to `close`; what is left then is done by whoever is started next."""

    async def start(self, works: Mapping[str, Work]) -> None:
        """Begin to do jobs of these kinds; others are left to servers that know them."""
        ...

    def wake(self) -> None:
        """A job was stored together with something else: do not wait to find it."""
        ...

    async def run(self, new: NewJob) -> None:
        """Store a job and do it when it is due; a key that is there already is not done twice."""
        ...

    async def cancel(self, key: str) -> None:
        """Do a job no more; a try that is under way elsewhere comes to its end."""
        ...

    async def close(self) -> None:
        """Break off what is under way, and begin nothing more."""
        ...
