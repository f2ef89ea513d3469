"""What a message has said so far, in little memory: an agent may talk for hours, and many agents at once."""

import tempfile
import zlib
from collections import deque
from typing import IO

import msgspec

from ostler.wire.parts import ContentPart, ReasoningPart, TextPart

_FRESH_CHARACTERS = 8192
_HELD_BYTES = 2**15
_SIZE_BYTES = 4


class Collected:
    """The parts of a message that grows: runs of text, and of thought, become one part each; others stay apart."""

    def __init__(self, most_characters: int) -> None:
        """Of a text that is longer only the beginning and the end are kept, with a mark between them."""
        self._half = max(most_characters // 2 - 2 * _FRESH_CHARACTERS, _FRESH_CHARACTERS)
        self._parts: list[ContentPart | _Run] = []

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, part: ContentPart) -> None:
        """The next piece."""
        if not isinstance(part, TextPart | ReasoningPart):
            self._parts.append(part)
            return
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, _Run) or not last.goes_on_with(part):
            last = _Run(part, self._half)
            self._parts.append(last)
        last.add(part.text)

    def whole(self) -> list[ContentPart]:
        """Everything that was added."""
        return [part.whole() if isinstance(part, _Run) else part for part in self._parts]


class _Run:
    """Text that comes in pieces; what is older lies deflated, and of very much only the beginning and the end."""

    __slots__ = ("_fresh", "_half", "_head", "_head_size", "_kind", "_lost", "_size", "_tail", "_tail_size")

    def __init__(self, first: TextPart | ReasoningPart, half: int) -> None:
        self._half = half
        self._kind = msgspec.structs.replace(first, text="")
        self._fresh: list[str] = []
        self._size = self._head_size = self._tail_size = self._lost = 0
        self._head = _Pieces()
        self._tail: deque[tuple[int, bytes]] = deque()

    def goes_on_with(self, part: TextPart | ReasoningPart) -> bool:
        return type(part) is type(self._kind) and _visibility(part) == _visibility(self._kind)

    def add(self, text: str) -> None:
        self._fresh.append(text)
        self._size += len(text)
        if self._size > _FRESH_CHARACTERS:
            self._put_away(self._size, zlib.compress("".join(self._fresh).encode("utf-8", "surrogatepass"), 1))
            self._fresh, self._size = [], 0

    def _put_away(self, size: int, old: bytes) -> None:
        if self._head_size < self._half:
            self._head.add(old)
            self._head_size += size
            return
        self._tail.append((size, old))
        self._tail_size += size
        while self._tail_size - self._tail[0][0] >= self._half:
            lost, _ = self._tail.popleft()
            self._tail_size -= lost
            self._lost += lost

    def whole(self) -> TextPart | ReasoningPart:
        mark = (f"\n[{self._lost} characters cut]\n",) if self._lost else ()
        texts = (*map(_inflated, self._head.all()), *mark, *(_inflated(old) for _, old in self._tail), *self._fresh)
        return msgspec.structs.replace(self._kind, text="".join(texts))


def _inflated(old: bytes) -> str:
    return zlib.decompress(old).decode("utf-8", "surrogatepass")


class _Pieces:
    """Some bytes in memory; when they become many, in a file that has no name."""

    __slots__ = ("_file", "_held", "_size")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, piece: bytes) -> None:
        self._held.append(piece)
        self._size += len(piece)
        if self._size > _HELD_BYTES:
            self._put_away()

    def _put_away(self) -> None:
        """Move what is held to the disk; if that is full it stays where it is."""
        data = b"".join(len(piece).to_bytes(_SIZE_BYTES, "big") + piece for piece in self._held)
        try:
            file = self._file or tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  lives as long as we
            end = file.seek(0, 2)
            if file.write(data) < len(data):
                file.truncate(end)
                return
        except OSError:
            return
        self._file, self._held, self._size = file, [], 0

    def all(self) -> list[bytes]:
        if self._file is None:
            return self._held
        self._file.seek(0)
        pieces: list[bytes] = []
        while size := self._file.read(_SIZE_BYTES):
            pieces.append(self._file.read(int.from_bytes(size, "big")))
        return pieces + self._held


def _visibility(part: TextPart | ReasoningPart) -> str | None:
    return part.visibility if isinstance(part, ReasoningPart) else None
