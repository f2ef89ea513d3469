"""Splits an agent's output into frames: one per line, of any length up to a limit."""

import hashlib

import msgspec

KEPT_OF_OVERLONG = 65536


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
