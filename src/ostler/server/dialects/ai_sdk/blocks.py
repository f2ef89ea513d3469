"""Text and thoughts of a message: blocks that open, grow and close, whatever the order in which items do."""

from collections.abc import Iterator
from typing import Literal

from ostler.server.dialects.ai_sdk.chunks import (
    AnyChunk,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart

Kind = Literal["text", "reasoning"]


class _Said:
    """What one item has said so far, and the block it speaks in now."""

    __slots__ = ("block", "kind", "pieces")

    def __init__(self) -> None:
        self.block: str | None = None
        self.kind: Kind = "text"
        self.pieces: dict[Kind, list[str]] = {"text": [], "reasoning": []}


class Blocks:
    """The blocks of one message."""

    def __init__(self) -> None:
        self._items: dict[str, _Said] = {}
        self._count: dict[Kind, int] = {"text": 0, "reasoning": 0}

    @property
    def are_closed(self) -> bool:
        """Whether a step may end here."""
        return all(said.block is None for said in self._items.values())

    @property
    def are_empty(self) -> bool:
        """Whether nothing was said at all."""
        return not any(self._count.values())

    def would_open(self, item_id: str, part: ContentPart) -> bool:
        """Whether this growth needs a new block."""
        spoken = _spoken(part)
        said = self._items.get(item_id)
        return spoken is not None and (said is None or said.block is None or said.kind != spoken[0])

    def grow(self, item_id: str, part: ContentPart) -> Iterator[AnyChunk]:
        """An item says more."""
        if (spoken := _spoken(part)) is None:
            return
        kind, text = spoken
        said = self._items.setdefault(item_id, _Said())
        if said.block is None or said.kind != kind:
            yield from _closed(said)
            yield self._open(said, kind)
        said.pieces[kind].append(text)
        yield _delta(said, text)

    def unsaid(self, item: Item) -> list[ContentPart]:
        """What the final content of an item has beyond that which was said of it."""
        rest: list[ContentPart] = []
        for kind in ("reasoning", "text"):
            final = "".join(text for found, text in filter(None, map(_spoken, item.content)) if found == kind)
            said = "".join(self._items[item.item_id].pieces[kind]) if item.item_id in self._items else ""
            if more := _beyond(said, final):
                rest.append(TextPart(text=more) if kind == "text" else ReasoningPart(text=more, visibility="public"))
        return rest

    def close(self, item_id: str) -> Iterator[AnyChunk]:
        """An item has nothing more to say for now."""
        if (said := self._items.get(item_id)) is not None:
            yield from _closed(said)

    def close_all(self) -> Iterator[AnyChunk]:
        """Nothing stays open at the end of a step."""
        for said in self._items.values():
            yield from _closed(said)

    def _open(self, said: _Said, kind: Kind) -> AnyChunk:
        self._count[kind] += 1
        said.kind, said.block = kind, f"{kind[0]}{self._count[kind]}"
        return TextStart(id=said.block) if kind == "text" else ReasoningStart(id=said.block)


def _spoken(part: ContentPart) -> tuple[Kind, str] | None:
    match part:
        case TextPart(text=text) if text:
            return "text", text
        case ReasoningPart(text=text) if text:
            return "reasoning", text
        case _:
            return None


def _delta(said: _Said, text: str) -> AnyChunk:
    block = said.block or ""
    return TextDelta(id=block, delta=text) if said.kind == "text" else ReasoningDelta(id=block, delta=text)


def _closed(said: _Said) -> Iterator[AnyChunk]:
    if said.block is not None:
        yield TextEnd(id=said.block) if said.kind == "text" else ReasoningEnd(id=said.block)
        said.block = None


def _beyond(said: str, final: str) -> str:
    """The rest of the final text; all of it if it is another one, nothing if only white space differs."""
    if final.startswith(said):
        return final[len(said) :]
    before, after = "".join(said.split()), "".join(final.split())
    if not after.startswith(before):
        return "" if before.startswith(after) else final
    wanted = len(after) - len(before)
    place = len(final)
    while wanted:
        place -= 1
        wanted -= not final[place].isspace()
    return final[place:]
