"""What a server asks of its store about what people have seen, and the keys that its notifications are signed with."""

import asyncio
from typing import Protocol

import msgspec


class ReadRow(msgspec.Struct, frozen=True, kw_only=True):
    """Up to where an actor has seen a session."""

    actor: str
    project: str
    session: str
    turns: int
    is_failed: bool
    read_at: str


class Reads(Protocol):
    """What each actor has seen."""

    async def all(self, actor: str, project: str) -> list[ReadRow]:
        """Those of an actor, the newest first; the one without a session says since when the actor looks."""
        ...

    def mark(self, row: ReadRow, most: int) -> "asyncio.Future[None]":
        """The session is seen up to there; of more than so many the oldest are forgotten, and `since` moves on."""
        ...

    def begin(self, actor: str, project: str, now: str) -> "asyncio.Future[str]":
        """Since when the actor looks, which is now if that was not known."""
        ...
