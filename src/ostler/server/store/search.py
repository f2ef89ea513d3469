"""What a store asks of its index of everything that was said; each store has one (`tests/store`)."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec


class CompletedItem(NamedTuple):
    """An item of a log that is complete, as it is stored."""

    project: str
    session: str
    agent: str
    """The one that the session has now."""
    state: bytes
    """What the session's log adds up to."""
    first: int
    body: bytes
    """The event that completed it."""


class CompletedItems(NamedTuple):
    """The next of them in the order they were committed."""

    items: list[CompletedItem]
    upto: int
    """The position that was looked at last."""
    is_more_to_come: bool
    """Whether there are events after it, which may not be settled yet."""


class Entry(NamedTuple):
    """What is remembered of one item; `first` is the event that it began with."""

    project: str
    session: str
    agent: str
    first: int
    role: str
    time: str
    text: str


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for: entries with all of these phrases, of which the last may be the beginning of a longer word."""

    project: str
    phrases: tuple[str, ...]
    is_whole: bool
    """Whether the last phrase ends with a whole word."""
    limit: int
    before: int | None = None
    """Only what came into the index before this entry."""
    agent: str | None = None
    session: str | None = None
    role: str | None = None


class Found(NamedTuple):
    """One entry that was found."""

    id: int
    session: str
    agent: str
    first: int
    role: str
    time: str
    text: str


class SearchIndex(Protocol):
    """Remembers what was said. It follows the logs, which are the truth: it can be made anew at any time."""

    async def position(self) -> int:
        """Up to which event of all sessions it has everything."""
        ...

    async def add(self, entries: Sequence[Entry], after: int, upto: int) -> bool:
        """Take in what events after one position and up to another say; False if somebody else was first."""
        ...

    async def forget_deleted(self) -> None:
        """Have nothing of sessions that are deleted."""
        ...

    async def find(self, wanted: Wanted) -> list[Found]:
        """Entries that fit, the newest first."""
        ...
