"""The folded view of a log: items with their final content instead of the deltas they grew by."""

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from ostler.wire.events import (
    Event,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    SessionRewound,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.sessions import Message


class Transcript:
    """Items in the order they started."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._turn_id: str | None = None

    def add(self, events: Iterable[Event | UnknownEvent]) -> None:
        """Fold more events in, in order."""
        for event in events:
            match event:
                case TurnStarted():
                    self._turn_id = event.data.turn_id
                case TurnEnded():
                    self._turn_id = None
                case ItemStarted() | ItemCompleted():
                    self._put(event.data.item, event.sequence)
                case ItemDelta():
                    self._grow(event.data.item_id, event.data.delta, event.sequence)
                case SessionRewound():
                    self._drop_after(event.data.sequence)

    def messages(self) -> list[Message]:
        """Everything so far."""
        return list(self._messages.values())

    def open_items(self) -> list[Item]:
        """Items that were started and not completed."""
        return [message.item for message in self._messages.values() if message.item.status == "in_progress"]

    def _put(self, item: Item, sequence: int) -> None:
        known = self._messages.get(item.item_id)
        first = known.first_sequence if known else sequence
        turn_id = known.turn_id if known else self._turn_id
        self._messages[item.item_id] = Message(item=item, first_sequence=first, last_sequence=sequence, turn_id=turn_id)

    def _drop_after(self, sequence: int) -> None:
        remaining = {name: message for name, message in self._messages.items() if message.first_sequence <= sequence}
        self._messages = remaining

    def _grow(self, item_id: str, delta: ContentPart, sequence: int) -> None:
        if (known := self._messages.get(item_id)) is None:
            return
        item = replace(known.item, content=_joined(known.item.content, delta))
        self._messages[item_id] = replace(known, item=item, last_sequence=sequence)


def _joined(content: tuple[ContentPart, ...], delta: ContentPart) -> tuple[ContentPart, ...]:
    """Append a delta: to the last part if it is of the same kind, else as a new part."""
    last = content[-1] if content else None
    join = _JOINS.get(type(delta))
    if last is None or join is None or type(last) is not type(delta):
        return (*content, delta)
    return (*content[:-1], join(last, delta))


def _join_text(last: TextPart, delta: TextPart) -> TextPart:
    return replace(last, text=last.text + delta.text)


def _join_reasoning(last: ReasoningPart, delta: ReasoningPart) -> ReasoningPart:
    return replace(last, text=last.text + delta.text)


def _join_output(last: ToolResultPart, delta: ToolResultPart) -> ToolResultPart:
    return replace(last, output=last.output + delta.output)


def _join_arguments(last: ToolCallPart, delta: ToolCallPart) -> ToolCallPart:
    return replace(last, arguments=last.arguments + delta.arguments)


_JOINS: dict[type, Callable[..., ContentPart]] = {
    TextPart: _join_text,
    ReasoningPart: _join_reasoning,
    ToolCallPart: _join_arguments,
    ToolResultPart: _join_output,
}
