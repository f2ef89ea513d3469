"""What a server asks of a runner when a session is to go on elsewhere: its files and its memory, out or in."""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Download:
    """Bytes that come piece by piece, made as fast as they are taken; each piece is a message of its own."""

    pieces: AsyncIterator[bytes]
    size: int | None = None
    """Of all of it, where that is known before."""


class Luggage(Protocol):
    """What travels with a session."""

    async def pack(self, workspace: str, snapshot: str, *, known: tuple[str, ...]) -> Download:
        """The objects of a snapshot's tree as a pack of git, without those of the trees `known` and of its origin."""

    async def memory(self, session: str, workspace: str | None, snapshot: str | None) -> Download:
        """An archive of the agent's memory: that of a snapshot, or as it is now; nothing if there is none to keep."""

    async def unrecorded(self, workspace: str, snapshot: str) -> Download:
        """An archive of what a snapshot lacks: files that git ignores, and git's own folders."""

    async def take_in(self, workspace: str, pack: AsyncIterable[bytes]) -> None:
        """Have the objects of a pack; each piece is a message of its own."""

    async def lay_out(self, workspace: str, tree: str) -> None:
        """Make the files those of a tree whose objects are all there; files that git ignores stay as they are."""

    async def put_unrecorded(self, workspace: str, archive: AsyncIterable[bytes]) -> None:
        """Lay such an archive out over the files; a repository in it takes the place of the one that is there."""

    async def remember(self, session: str, workspace: str | None, archive: AsyncIterable[bytes]) -> None:
        """Make the home of a session what an archive holds, with the names of places of this machine."""
