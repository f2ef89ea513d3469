"""Splits an agent's output into frames and wraps what it is sent: one per line, or after a Content-Length header."""

import hashlib
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ostler.runner.execution.cutting import Trimmer

HEAD_OF_OVERLONG = 65536
LONGEST_QUESTION = 4096
_LENGTH = re.compile(rb"content-length:[ \t]{0,9}(\d{1,15})[ \t]{0,9}\r?\Z", re.IGNORECASE)
_LONGEST_HEADER = 60


class Overlong(msgspec.Struct, frozen=True, kw_only=True):
    """A frame that went over the limit; the rest of it, up to the line's end, is skipped."""

    size: int
    """Bytes seen when it went over."""
    sha256: str
    head: bytes


class Trimmed(msgspec.Struct, frozen=True, kw_only=True):
    """A frame with long texts, without their middles."""

    frame: bytes
    cut: int
    """Bytes that were left out."""


Frame = bytes | Trimmed | Overlong


class FrameSplitter:
    """Bytes in, frames out; lines end with LF only, empty ones are skipped, and a CR is content."""

    def __init__(self, max_frame_bytes: int, max_text_bytes: int) -> None:
        self._limit = max_frame_bytes
        self._longest_text = min(max_text_bytes, max_frame_bytes - max_frame_bytes // 4)
        self._pieces: list[bytes] = []
        self._held = 0
        self._long: _LongFrame | None = None
        """The frame under way, once it is long enough to have a text that is too long."""
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now; each is reported once however the bytes were cut."""
        frames: list[Frame] = []
        first, *lines = chunk.split(b"\n")
        self._hold(first, frames)
        if lines:
            self._release(frames)
            rest = lines.pop()
            self._take_whole(lines, frames)
            self._hold(rest, frames)
        return frames

    def _take_whole(self, lines: list[bytes], frames: list[Frame]) -> None:
        """Lines that begin and end within one chunk: nearly all of them, and never a held piece among them."""
        for line in lines:
            if len(line) > self._longest_text:
                self._hold(line, frames)
                self._release(frames)
            elif line:
                frames.append(line)

    def end(self) -> list[Frame]:
        """The frame that the end of output left without a line end, if any."""
        frames: list[Frame] = []
        self._release(frames)
        return frames

    @property
    def unfinished(self) -> bytes:
        """The beginning of a line that has no end yet, if it is as short as a question to a person."""
        return b"".join(self._pieces) if self._held <= LONGEST_QUESTION else b""

    def _hold(self, piece: bytes, frames: list[Frame]) -> None:
        if self._skipping or not piece:
            return
        self._held += len(piece)
        if self._long is None:
            self._pieces.append(piece)
            if self._held > self._longest_text:
                self._lengthen(frames)
        elif self._long.feed(piece):
            self._give_up(self._long, frames)

    def _lengthen(self, frames: list[Frame]) -> None:
        self._long = _LongFrame(self._limit, self._longest_text)
        pieces, self._pieces = self._pieces, []
        if any(self._long.feed(piece) for piece in pieces):
            self._give_up(self._long, frames)

    def _give_up(self, long: "_LongFrame", frames: list[Frame]) -> None:
        frames.append(long.overlong())
        self._long, self._held, self._skipping = None, 0, True

    def _release(self, frames: list[Frame]) -> None:
        """The line is over: what is held is a frame."""
        if self._long is not None:
            frames.append(self._long.end())
        elif self._pieces:
            frames.append(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))
        self._pieces, self._held, self._long, self._skipping = [], 0, None, False


class _LongFrame:
    """A frame that is long enough to be looked into while it comes."""

    def __init__(self, limit: int, longest_text: int) -> None:
        self._limit = limit
        self._trimmer = Trimmer(longest_text)
        # exactly the bytes up to the limit, so that a report does not depend on how the output was cut
        self._seen = 0
        self._hash = hashlib.sha256()
        self._head = b""

    def feed(self, piece: bytes) -> bool:
        """Whether it is too long, even without the middles of its long texts."""
        seen = piece[: self._limit - self._seen]
        self._seen += len(seen)
        self._hash.update(seen)
        self._head += seen[: HEAD_OF_OVERLONG - len(self._head)]
        self._trimmer.feed(piece)
        return self._trimmer.settled > self._limit

    def overlong(self) -> Overlong:
        return Overlong(size=self._seen, sha256=self._hash.hexdigest(), head=self._head)

    def end(self) -> Frame:
        frame = self._trimmer.end()
        if len(frame) > self._limit:
            return self.overlong()
        return Trimmed(frame=frame, cut=self._trimmer.cut) if self._trimmer.cut else frame


class ContentLengthSplitter(FrameSplitter):
    """Bytes in, bodies out, as in LSP; a line between messages that is no header comes out as a frame of its own."""

    def __init__(self, max_frame_bytes: int, max_text_bytes: int) -> None:
        super().__init__(max_frame_bytes, max_text_bytes)
        self._announced: int | None = None
        self._missing = 0
        """Bytes of the body that have not come yet; 0 between bodies."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are complete now; each is reported once however the bytes were cut."""
        frames: list[Frame] = []
        at = 0
        while at < len(chunk):
            at = self._take_body(chunk, at, frames) if self._missing else self._take_line(chunk, at, frames)
        return frames

    def _take_body(self, chunk: bytes, at: int, frames: list[Frame]) -> int:
        piece = chunk[at : at + self._missing]
        self._hold(piece, frames)
        self._missing -= len(piece)
        if not self._missing:
            self._release(frames)
        return at + len(piece)

    def _take_line(self, chunk: bytes, at: int, frames: list[Frame]) -> int:
        end = chunk.find(b"\n", at)
        if end < 0:
            self._hold(chunk[at:], frames)
            return len(chunk)
        self._hold(chunk[at:end], frames)
        skipping, released = self._skipping, list[Frame]()
        self._release(released)
        if not skipping:
            self._on_line(released[0] if released else b"", frames)
        return end + 1

    def _on_line(self, line: Frame, frames: list[Frame]) -> None:
        if not isinstance(line, bytes):
            frames.append(line)
        elif not line.strip():
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
