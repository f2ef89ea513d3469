"""The last state of sessions, kept where every server finds it: files as packs of git, and the agent's memory.

`snapshots/SESSION/SEQUENCE/` holds what was uploaded when the log was that long, in parts, and `manifest.json`, which
is written last: what has none does not exist. A manifest names the packs of earlier ones that it builds upon.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import msgspec

from ostler.base.errors import StoreUnavailable, Unprocessable
from ostler.server.objects.protocol import Objects

FOLDER = "snapshots"
PART_BYTES = 4 * 2**20
PIECE_BYTES = 128 * 1024
_MANIFEST = "manifest.json"


class Part(msgspec.Struct, frozen=True):
    """One object."""

    size: int
    digest: str
    """SHA-256, in hexadecimal."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that lie in one object after the other."""

    key: str
    """Of the parts, without their number."""
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """Of all parts."""
        return sum(part.size for part in self.parts)

    def names(self) -> list[str]:
        """Of each part."""
        return [f"{self.key}/{number:04}" for number in range(len(self.parts))]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a session."""

    session: str
    sequence: int
    """How long the log was."""
    turn: int
    """How many turns had ended."""
    snapshot: str | None = None
    tree: str | None = None
    """The git tree of the files; None for a session without a workspace."""
    packs: tuple[Stored, ...] = ()
    """Everything of the tree that its origin does not have, oldest first."""
    memory: Stored | None = None
    """An archive of the agent's home."""
    unrecorded: Stored | None = None
    """What the tree lacks, files that git ignores and git's own folders: kept only for a move that was planned."""
    native_session_id: str | None = None

    def names(self) -> set[str]:
        """All objects that it needs."""
        stored = [*self.packs, *(each for each in (self.memory, self.unrecorded) if each is not None)]
        return {_at(self.session, self.sequence, _MANIFEST), *(key for each in stored for key in each.names())}


_decode = msgspec.json.Decoder(Manifest).decode


def _at(session: str, sequence: int, name: str) -> str:
    return f"{FOLDER}/{session}/{sequence:012}/{name}"


class SnapshotObjects:
    """Implements KeptSnapshots of the sessions; also writes and removes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def newest(self, session: str) -> Manifest | None:
        """The last one that is complete."""
        return await asyncio.to_thread(self._newest, session)

    def _newest(self, session: str) -> Manifest | None:
        for name in sorted(self._objects.folders(f"{FOLDER}/{session}"), reverse=True):
            if (content := self._objects.get(f"{FOLDER}/{session}/{name}/{_MANIFEST}")) is not None:
                return _decode(content)
        return None

    async def store(
        self, session: str, sequence: int, name: str, pieces: AsyncIterator[bytes], *, most_bytes: int
    ) -> Stored:
        """Keep bytes part by part; raises if they are too many."""
        key, parts, waiting, size = _at(session, sequence, name), list[Part](), bytearray(), 0

        async def put() -> None:
            content = bytes(waiting)
            await asyncio.to_thread(self._objects.put, f"{key}/{len(parts):04}", content)
            parts.append(Part(len(content), hashlib.sha256(content).hexdigest()))
            waiting.clear()

        async for piece in pieces:
            size += len(piece)
            if size > most_bytes:
                raise Unprocessable(reason=f"{name} has more than {most_bytes} bytes, which is too much to upload.")
            waiting += piece
            if len(waiting) >= PART_BYTES:
                await put()
        if waiting:
            await put()
        return Stored(key=key, parts=tuple(parts))

    async def finish(self, manifest: Manifest) -> bool:
        """From now on it exists; False if it did before."""
        key = _at(manifest.session, manifest.sequence, _MANIFEST)
        return await asyncio.to_thread(self._objects.create, key, msgspec.json.encode(manifest))

    async def pieces(self, stored: Stored) -> AsyncIterator[bytes]:
        """What was stored, as it was stored or not at all."""
        for key, part in zip(stored.names(), stored.parts, strict=True):
            content = await asyncio.to_thread(self._objects.get, key)
            if content is None or hashlib.sha256(content).hexdigest() != part.digest:
                raise StoreUnavailable(reason=f"the object {key} is missing or damaged")
            for start in range(0, len(content), PIECE_BYTES):
                yield content[start : start + PIECE_BYTES]

    # Removing

    async def tidy(self, newest: Manifest) -> None:
        """Remove what a session has from before and this state does not need; newer ones stay."""
        await asyncio.to_thread(self._tidy, newest)

    def _tidy(self, newest: Manifest) -> None:
        own, needed = f"{FOLDER}/{newest.session}/", newest.names()
        old = [
            entry.key
            for entry in self._objects.entries(own.rstrip("/"))
            if entry.key not in needed and entry.key.removeprefix(own)[:12] <= f"{newest.sequence:012}"
        ]
        for key in sorted(old, key=lambda key: not key.endswith(_MANIFEST)):  # first what says that the rest is there
            self._objects.remove(key)

    def sessions(self) -> set[str]:
        """The sessions that have something here; to be called in a thread."""
        return self._objects.folders(FOLDER)

    def remove(self, sessions: set[str]) -> None:
        """Remove all of these sessions; to be called in a thread."""
        for session in sessions:
            self._objects.remove(f"{FOLDER}/{session}")
