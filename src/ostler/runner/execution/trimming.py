"""Leaves out the middles of long texts in a frame while it is read, so that no frame needs the memory of its size."""

import re

_MARK = b"\\n[%d bytes cut here; see max_item_length]\\n"
MARK = re.compile(r"\[(\d+) bytes cut here; see max_item_length\]")
"""How a text says what it lost, once it is read."""
_MARK_ROOM = 100
_TEXT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_QUOTED = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_PAIR_BYTES = 12  # two escapes of one character
_FIRST_OF_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_REST_OF_PAIR = re.compile(rb"[0-9a-fA-F]{0,4}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SLACK = 2**16


MOST_VALUES = 1_000_000
"""How many values a frame may have: each costs some 60 bytes once it is read, however short it is."""


def has_too_many_values(frame: bytes) -> bool:
    """Whether a frame that is not even long would need very much memory."""
    if len(frame) <= 2 * MOST_VALUES or _values(frame) <= MOST_VALUES:
        return False
    return _values(_QUOTED.sub(b"", frame)) > MOST_VALUES


def _values(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


class Trimmer:
    """One frame, fed in pieces; what comes out does not depend on how it was cut into them."""

    def __init__(self, longest: int) -> None:
        """`longest` is how many bytes of JSON one text may have."""
        self._longest = longest
        self._half = max(0, longest - _MARK_ROOM) // 2
        self._output = bytearray()
        self._began: int | None = None
        """Where the text under way begins, while one is."""
        self._size = 0
        self._tail: bytearray | None = None
        """The end of a text that is too long, so far."""
        self._carry = b""
        self.cut = 0
        """How many bytes were left out."""

    @property
    def settled(self) -> int:
        """How many bytes are kept for sure."""
        return len(self._output) if self._began is None else self._began

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        piece, self._carry = self._carry + piece, b""
        at = 0
        while at < len(piece):
            at = self._outside(piece, at) if self._began is None else self._inside(piece, at)

    def end(self) -> bytes:
        """The frame is over: all that is kept of it."""
        if self._began is not None:
            self._close()
        return bytes(self._output) + self._carry

    def _outside(self, piece: bytes, at: int) -> int:
        quote = piece.find(b'"', at)
        end = len(piece) if quote < 0 else quote + 1
        self._output += piece[at:end]
        if quote >= 0:
            self._began, self._size = len(self._output), 0
        return end

    def _inside(self, piece: bytes, at: int) -> int:
        found = _TEXT.match(piece, at)
        end = found.end() if found is not None else at
        self._grow(piece[at:end])
        if end < len(piece) and piece[end] == ord('"'):
            self._close()
            self._output += b'"'
            return end + 1
        self._carry = piece[end:]  # nothing, or the first half of an escape
        return len(piece)

    def _grow(self, text: bytes) -> None:
        self._size += len(text)
        if self._tail is not None:
            self._tail += text
            if len(self._tail) > self._half + _SLACK:
                del self._tail[: len(self._tail) - self._half - 1]  # the byte before tells where it can begin
            return
        self._output += text
        if self._began is not None and self._size > self._longest:
            head = self._began + self._half
            self._tail = self._output[head:]
            del self._output[head:]

    def _close(self) -> None:
        """A text is over; if it was too long, only its beginning and its end stay."""
        began, tail = self._began or 0, self._tail
        self._began = self._tail = None
        if tail is None:
            return
        del self._output[_whole_until(self._output, began) :]
        del tail[: _whole_from(tail, max(0, len(tail) - self._half))]
        dropped = self._size - (len(self._output) - began) - len(tail)
        self.cut += dropped
        self._output += _MARK % dropped
        self._output += tail


def _whole_until(text: bytearray, began: int) -> int:
    """Where the last whole character of a text that was cut off ends."""
    near = max(began, len(text) - _PAIR_BYTES)
    if (escape := text.find(b"\\", near)) >= 0:
        end = _before_slashes(text, began, escape)
        is_half = _FIRST_OF_PAIR.fullmatch(text, max(began, end - _PAIR_BYTES // 2), end)
        return _before_slashes(text, began, end - _PAIR_BYTES // 2) if is_half else end
    for back in range(1, min(4, len(text) - began) + 1):
        lead = text[-back]
        if lead >= 0xC0:
            return len(text) - back
        if lead < 0x80:
            break
    return len(text)


def _before_slashes(text: bytearray, began: int, end: int) -> int:
    while end > began and text[end - 1] == ord("\\"):
        end -= 1
    return end


def _whole_from(text: bytearray, at: int) -> int:
    """Where a text can go on at this place or behind it, so that no half character and no half escape is left."""
    while at < len(text) and (text[at - 1] == ord("\\") or 0x80 <= text[at] < 0xC0):
        at += 1
    rest = _REST_OF_PAIR.match(text, at)
    return rest.end() if rest is not None else at
