"""Splits an agent's output into frames and wraps what it is sent: one per line, or after a Content-Length header."""

import hashlib
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

KEPT_OF_OVERLONG = 65536
LONGEST_QUESTION = 4096
_LENGTH = re.compile(rb"content-length:[ \t]{0,9}(\d{1,15})[ \t]{0,9}\r?\Z", re.IGNORECASE)
_LONGEST_HEADER = 60


class Overlong(msgspec.Struct, frozen=True, kw_only=True):
    """A frame that went over the limit; the rest of it, up to the line's end, is skipped."""

    size: int
    """Bytes seen when it went over."""
    sha256: str
    head: bytes


class FrameSplitter:
    """Bytes in, frames out; lines end with LF only, empty ones are skipped, and a CR is content."""

    def __init__(self, max_frame_bytes: int) -> None:
        self._limit = max_frame_bytes
        self._pieces: list[bytes] = []
        self._held = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """The frames that are complete now; each is reported once however the bytes were cut."""
        frames: list[bytes | Overlong] = []
        first, *lines = chunk.split(b"\n")
        self._hold(first, frames)
        if lines:
            frames += self._release()
            rest = lines.pop()
            self._take_whole(lines, frames)
            self._hold(rest, frames)
        return frames

    def _take_whole(self, lines: list[bytes], frames: list[bytes | Overlong]) -> None:
        """Lines that begin and end within one chunk: nearly all of them, and never a held piece among them."""
        for line in lines:
            if len(line) > self._limit:
                self._hold(line, frames)
                self._skipping = False
            elif line:
                frames.append(line)

    def end(self) -> list[bytes | Overlong]:
        """The frame that the end of output left without a line end, if any."""
        return [*self._release()]

    @property
    def unfinished(self) -> bytes:
        """The beginning of a line that has no end yet, if it is as short as a question to a person."""
        return b"".join(self._pieces) if self._held <= LONGEST_QUESTION else b""

    def _hold(self, piece: bytes, frames: list[bytes | Overlong]) -> None:
        if self._skipping or not piece:
            return
        self._pieces.append(piece)
        self._held += len(piece)
        if self._held > self._limit:
            frames.append(self._overlong())

    def _overlong(self) -> Overlong:
        # exactly the bytes up to the limit, so that the report does not depend on how the output was cut
        seen = b"".join(self._pieces)[: self._limit]
        self._pieces, self._held, self._skipping = [], 0, True
        return Overlong(size=len(seen), sha256=hashlib.sha256(seen).hexdigest(), head=seen[:KEPT_OF_OVERLONG])

    def _release(self) -> list[bytes]:
        """The held pieces as one frame; the line is over."""
        self._skipping = False
        if not self._pieces:
            return []
        frame = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces, self._held = [], 0
        return [frame]


class ContentLengthSplitter(FrameSplitter):
    """Bytes in, bodies out, as in LSP; a line between messages that is no header comes out as a frame of its own."""

    def __init__(self, max_frame_bytes: int) -> None:
        super().__init__(max_frame_bytes)
        self._announced: int | None = None
        self._missing = 0
        """Bytes of the body that have not come yet; 0 between bodies."""

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """The frames that are complete now; each is reported once however the bytes were cut."""
        frames: list[bytes | Overlong] = []
        at = 0
        while at < len(chunk):
            at = self._take_body(chunk, at, frames) if self._missing else self._take_line(chunk, at, frames)
        return frames

    def _take_body(self, chunk: bytes, at: int, frames: list[bytes | Overlong]) -> int:
        piece = chunk[at : at + self._missing]
        self._hold(piece, frames)
        self._missing -= len(piece)
        if not self._missing:
            frames += self._release()
        return at + len(piece)

    def _take_line(self, chunk: bytes, at: int, frames: list[bytes | Overlong]) -> int:
        end = chunk.find(b"\n", at)
        if end < 0:
            self._hold(chunk[at:], frames)
            return len(chunk)
        self._hold(chunk[at:end], frames)
        if self._skipping:
            self._release()
        else:
            self._on_line(b"".join(self._release()), frames)
        return end + 1

    def _on_line(self, line: bytes, frames: list[bytes | Overlong]) -> None:
        if not line.strip():
            self._missing, self._announced = self._announced or 0, None
        elif (length := _LENGTH.search(line, max(0, len(line) - _LONGEST_HEADER))) is not None:
            self._announced = int(length[1])
            frames += filter(None, [line[: length.start()]])  # printed before the header, without a line end
        elif not line.lower().startswith(b"content-type:"):
            frames.append(line)


class Framing(NamedTuple):
    """How frames stand in an agent's output and in its input."""

    splitter: type[FrameSplitter]
    wrap: Callable[[bytes], bytes]


_LINES = Framing(FrameSplitter, lambda frame: frame + b"\n")
FRAMINGS = {
    "lines": _LINES,
    "http": _LINES,  # the channel turns them into requests
    "content-length": Framing(
        ContentLengthSplitter, lambda frame: b"Content-Length: %d\r\n\r\n%b" % (len(frame), frame)
    ),
}
