"""What follows on what happens to runners and sessions."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from ostler.link.protocol import Runner
from ostler.link.workspaces import Workspaces
from ostler.wire.runners import RunnerAbout


async def _later() -> None:
    """Nothing is left to do."""


async def _linked(_about: RunnerAbout, _runner: Runner, _workspaces: Workspaces) -> Callable[[], Awaitable[None]]:
    return _later


async def _lost(_about: RunnerAbout) -> None:
    """Nobody wants to hear it."""


def _nothing(*_given: object) -> None:
    """Nobody wants to hear it."""


class SecretUse(NamedTuple):
    """A session's secrets are about to be handed to a runner, by their names."""

    project: str
    actor: str
    """Who made the session."""
    session: str
    names: tuple[str, ...]


class NextSteps(msgspec.Struct, frozen=True, kw_only=True):
    """What follows on what happens to runners and sessions; filled where the server is put together."""

    when_linked: Callable[[RunnerAbout, Runner, Workspaces], Awaitable[Callable[[], Awaitable[None]]]] = _linked
    """A runner is there, and nobody else can reach it yet: remove what no session of it knows.

    What is returned is called when all can reach it, and goes on with its sessions.
    """
    when_lost: Callable[[RunnerAbout], Awaitable[None]] = _lost
    """Nobody can reach a runner any more; its agents may work on."""
    when_drained: Callable[[RunnerAbout, str | None], None] = _nothing
    """A runner is to have no sessions, and turns may go on until then; None if it may have some again."""
    when_room: Callable[[], None] = _nothing
    """There may be room for a session that waits."""
    when_waiting: Callable[[], None] = _nothing
    """A session of this server waits for a runner."""
    when_offered: Callable[[], None] = _nothing
    """A session may wait for a runner at another server."""
    when_ended: Callable[[], None] = _nothing
    """A session is over, or deleted."""
    when_complete: Callable[[], None] = _nothing
    """There is something new to be found: an item is complete, or a session is gone."""
    when_written: Callable[[], None] = _nothing
    """There are new events in a log."""
    when_secrets_used: Callable[[SecretUse], None] = _nothing
    """Secrets of a session leave the server."""
    at_work: Callable[[str], Counter[str]] = lambda _: Counter()
    """How many sessions are at work on a runner, by share."""
    refresh: Callable[[], Awaitable[None]] = _later
    """Learn what other servers know of runners; there may be none."""


NOTHING_FOLLOWS = NextSteps()
