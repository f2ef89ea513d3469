"""What goes out to one reader of a stream, piece by piece, and where the rest waits while it takes nothing."""

import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import IO, Protocol

from ostler.base.logs import Log

log = Log(__name__)
PIECE_BYTES = 32 * 1024
"""The most that is written at once; with what the transport may hold, a reader who takes nothing costs 48 KiB."""
_STALLED_BYTES = 4 * 2**20


class Chunks(Protocol):
    """Where the bytes of a stream come from."""

    async def next(self) -> bytes | None:
        """The next bytes to write, however many; None when there will be no more."""


class Pieces(Protocol):
    """The same bytes in small pieces; asked for one only when the reader takes it."""

    @property
    def held(self) -> int:
        """How many bytes stay in memory for what is not yet given out."""

    async def next(self) -> bytes | None:
        """The next piece, at most PIECE_BYTES long; None when there will be no more."""

    def put_away(self) -> None:
        """Free the memory of what is held; it will still be given out."""

    def close(self) -> None:
        """Nobody reads on."""


class Rendered:
    """Bytes that were made for one reader alone; what has to wait for long waits in a file that has no name."""

    def __init__(self, chunks: Chunks, folder: Path) -> None:
        self._chunks = chunks
        self._folder = folder
        self._whole = b""
        self._taken = 0
        self._file: IO[bytes] | None = None

    @property
    def held(self) -> int:
        """How many bytes stay in memory for what is not yet given out: a chunk is there as a whole, or not."""
        return len(self._whole)

    async def next(self) -> bytes | None:
        """The next piece; None when there will be no more."""
        if self._file is not None and (piece := self._file.read(PIECE_BYTES)):
            return piece
        self.close()
        if not self._whole:
            chunk = await self._chunks.next()
            if chunk is None or len(chunk) <= PIECE_BYTES:
                return chunk
            self._whole = chunk
        return self._cut()

    def _cut(self) -> bytes:
        piece = self._whole[self._taken : self._taken + PIECE_BYTES]
        self._taken += len(piece)
        if self._taken == len(self._whole):
            self._forget()
        return piece

    def _forget(self) -> None:
        self._whole, self._taken = b"", 0

    def put_away(self) -> None:
        """Move what is held to the disk; if that is full it stays where it is."""
        try:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  lives until it is read
            file.write(memoryview(self._whole)[self._taken :])
            file.seek(0)
        except OSError as error:
            log.warning("stream.not_put_away", reason=str(error), bytes=len(self._whole))
            return
        self._file = file
        self._forget()

    def close(self) -> None:
        """Nobody reads on."""
        if self._file is not None:
            self._file.close()
            self._file = None


class StalledReaders:
    """What all readers hold who take nothing now. When it is full, who stalled first has to put things away."""

    def __init__(self, limit: int = _STALLED_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._waiting: OrderedDict[Pieces, int] = OrderedDict()

    def add(self, pieces: Pieces) -> None:
        """A reader stalled."""
        if not (held := pieces.held):
            return
        self._waiting[pieces] = held
        self._size += held
        while self._size > self._limit:
            oldest, size = self._waiting.popitem(last=False)
            self._size -= size
            oldest.put_away()

    def remove(self, pieces: Pieces) -> None:
        """The reader goes on, or is gone."""
        self._size -= self._waiting.pop(pieces, 0)
