"""An incremental parser of server-sent events."""

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class SseMessage(NamedTuple):
    """One dispatched message; `id` is the newest id seen so far."""

    id: str
    data: bytes


class SseParser:
    """Takes bytes in any cut and gives whole messages; what is unfinished waits for more."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._last_byte = b""
        self._held = b""
        self._last_id = ""
        self._begun = False

    def feed(self, chunk: bytes) -> list[SseMessage]:
        """Take more bytes; give the messages they complete."""
        chunk = self._with_plain_line_ends(self._held + chunk)
        boundary = b"\n\n" in self._last_byte + chunk
        self._pieces.append(chunk)
        self._last_byte = chunk[-1:] or self._last_byte
        if not boundary:
            return []  # joining only at boundaries keeps a huge message linear
        *blocks, rest = b"".join(self._pieces).split(b"\n\n")
        self._pieces = [rest]
        self._last_byte = rest[-1:]
        return self._messages(blocks)

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        self._held = b""
        if not self._begun:
            chunk = self._without_bom(chunk)
        if b"\r" not in chunk:
            return chunk
        if chunk.endswith(b"\r"):  # a line feed may follow in the next chunk
            chunk, self._held = chunk[:-1], b"\r"
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _without_bom(self, chunk: bytes) -> bytes:
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._held = chunk
            return b""
        self._begun = True
        return chunk.removeprefix(_BOM)

    def _messages(self, blocks: list[bytes]) -> list[SseMessage]:
        found = []
        for block in blocks:
            data = self._data(block)
            if data is not None:
                found.append(SseMessage(self._last_id, data))
        return found

    def _data(self, block: bytes) -> bytes | None:
        lines: list[bytes] = []
        for line in block.split(b"\n"):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                lines.append(value)
            elif name == b"id" and b"\0" not in value:
                self._last_id = value.decode("utf-8", "replace")
        return b"\n".join(lines) if lines else None
