"""Text and thoughts of a message: blocks that open, grow and close, whatever the order in which items do."""

from collections.abc import Iterator

from ostler.server.dialects.ai_sdk.chunks import (
    AnyChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from ostler.server.dialects.speech import Kind, Speech, spoken
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart


class _Speaker:
    """The block that an item speaks in now."""

    __slots__ = ("block", "kind")

    def __init__(self) -> None:
        self.block: str | None = None
        self.kind: Kind = "text"


class Blocks:
    """The blocks of one message."""

    def __init__(self) -> None:
        self._speakers: dict[str, _Speaker] = {}
        self._speech = Speech()
        self._count: dict[Kind, int] = {"text": 0, "reasoning": 0}

    @property
    def are_closed(self) -> bool:
        """Whether a step may end here."""
        return all(speaker.block is None for speaker in self._speakers.values())

    @property
    def are_empty(self) -> bool:
        """Whether nothing was said at all."""
        return not any(self._count.values())

    def would_open(self, item_id: str, part: ContentPart) -> bool:
        """Whether this growth needs a new block."""
        words = spoken(part)
        speaker = self._speakers.get(item_id)
        return words is not None and (speaker is None or speaker.block is None or speaker.kind != words[0])

    def grow(self, item_id: str, part: ContentPart) -> Iterator[AnyChunk]:
        """An item says more."""
        if (words := spoken(part)) is None:
            return
        kind, text = words
        speaker = self._speakers.setdefault(item_id, _Speaker())
        if speaker.block is None or speaker.kind != kind:
            yield from _closed(speaker)
            yield self._open(speaker, kind)
        self._speech.add(item_id, kind, text)
        yield _delta(speaker, text)

    def unsaid(self, item: Item) -> list[ContentPart]:
        """What the final content of an item has beyond that which was said of it."""
        return [
            TextPart(text=text) if kind == "text" else ReasoningPart(text=text, visibility="public")
            for kind, text in self._speech.rest(item)
        ]

    def close(self, item_id: str) -> Iterator[AnyChunk]:
        """An item has nothing more to say for now."""
        if (speaker := self._speakers.get(item_id)) is not None:
            yield from _closed(speaker)

    def close_all(self) -> Iterator[AnyChunk]:
        """Nothing stays open at the end of a step."""
        for speaker in self._speakers.values():
            yield from _closed(speaker)

    def _open(self, speaker: _Speaker, kind: Kind) -> AnyChunk:
        self._count[kind] += 1
        speaker.kind, speaker.block = kind, f"{kind[0]}{self._count[kind]}"
        return TextStart(id=speaker.block) if kind == "text" else ReasoningStart(id=speaker.block)


def _delta(speaker: _Speaker, text: str) -> AnyChunk:
    block = speaker.block or ""
    return TextDelta(id=block, delta=text) if speaker.kind == "text" else ReasoningDelta(id=block, delta=text)


def _closed(speaker: _Speaker) -> Iterator[AnyChunk]:
    if speaker.block is not None:
        yield TextEnd(id=speaker.block) if speaker.kind == "text" else ReasoningEnd(id=speaker.block)
        speaker.block = None
