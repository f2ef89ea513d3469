"""What a message has said so far, in little memory: an agent may talk for hours, and many agents at once."""

import zlib

import msgspec

from ostler.wire.parts import ContentPart, ReasoningPart, TextPart

_FRESH_CHARACTERS = 8192


class Collected:
    """The parts of a message that grows: runs of text, and of thought, become one part each; others stay apart."""

    def __init__(self) -> None:
        self._parts: list[ContentPart | _Run] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, part: ContentPart) -> None:
        """The next piece."""
        if not isinstance(part, TextPart | ReasoningPart):
            self._parts.append(part)
            return
        last = self._parts[-1] if self._parts else None
        if not isinstance(last, _Run) or not last.goes_on_with(part):
            last = _Run(part)
            self._parts.append(last)
        last.add(part.text)

    def whole(self) -> list[ContentPart]:
        """Everything that was added."""
        return [part.whole() if isinstance(part, _Run) else part for part in self._parts]


class _Run:
    """Text that comes in pieces; what is older lies deflated."""

    __slots__ = ("_fresh", "_kind", "_old", "_size")

    def __init__(self, first: TextPart | ReasoningPart) -> None:
        self._kind = msgspec.structs.replace(first, text="")
        self._fresh: list[str] = []
        self._size = 0
        self._old: list[bytes] = []

    def goes_on_with(self, part: TextPart | ReasoningPart) -> bool:
        return type(part) is type(self._kind) and _visibility(part) == _visibility(self._kind)

    def add(self, text: str) -> None:
        self._fresh.append(text)
        self._size += len(text)
        if self._size > _FRESH_CHARACTERS:
            self._old.append(zlib.compress("".join(self._fresh).encode("utf-8", "surrogatepass"), 1))
            self._fresh, self._size = [], 0

    def whole(self) -> TextPart | ReasoningPart:
        old = b"".join(map(zlib.decompress, self._old)).decode("utf-8", "surrogatepass")
        return msgspec.structs.replace(self._kind, text=old + "".join(self._fresh))


def _visibility(part: TextPart | ReasoningPart) -> str | None:
    return part.visibility if isinstance(part, ReasoningPart) else None
