"""The turn guard: enforces what no agent guarantees, between the translator and the log.

It is pure: events and turn ends of the translator go in, drafts for the log come out. Each turn gets exactly one end;
everything opened is closed by then; every delta and every completion has its start before it; no item ends twice, and
output that comes after that says so. A message that is completed without a content has that of its deltas.
"""

import msgspec

from ostler.agents.adapter import TurnDone
from ostler.agents.collected import Collected
from ostler.wire.events import (
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    PermissionData,
    QuestionData,
    TerminalOutputData,
    TurnEndedData,
    TurnOutcome,
)
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, StatusPart, TextPart
from ostler.wire.running import Continued, Draft

MOST_COLLECTED_BYTES = 8 * 2**20
MOST_REMEMBERED_ITEMS = 10_000
_BYTES_OF_PART = 500  # what a part costs us beside its content
_TOOL_KINDS = frozenset({"tool_call", "tool_result"})

Ask = PermissionData | QuestionData


class _OpenItem:
    """An item that has started, with what its deltas said so far."""

    __slots__ = ("_collected", "_size", "item")

    def __init__(self, item: Item, most_characters: int) -> None:
        self.item = item
        self._collected = Collected(most_characters)
        self._size = 0

    @property
    def has_grown(self) -> bool:
        return bool(self._collected)

    def grow(self, delta: ContentPart) -> None:
        if self._size > MOST_COLLECTED_BYTES:
            return
        count = len(self._collected)
        self._collected.add(delta)
        if len(self._collected) > count:  # text that goes on is kept in bounds where it is collected
            self._size += _BYTES_OF_PART + len(msgspec.json.encode(delta))

    def content(self) -> tuple[ContentPart, ...]:
        """What it would hold if nothing more came."""
        parts = [*self.item.content, *self._collected.whole()]
        if self._size > MOST_COLLECTED_BYTES:
            parts.append(StatusPart(label="cut", detail="Only the beginning is kept here."))
        return tuple(parts)


class TurnGuard:
    """Watches one agent process; the connection feeds it everything in order."""

    def __init__(self, max_item_length: int = 8 * 2**20) -> None:
        self._max_item_length = max_item_length
        self._turn_id: str | None = None
        self._items: dict[str, _OpenItem] = {}
        self._finished: dict[str, None] = {}
        """Ids in the order they ended."""
        self._asks: dict[str, Ask] = {}

    @property
    def turn_id(self) -> str | None:
        """The turn under way."""
        return self._turn_id

    @property
    def open_asks(self) -> tuple[Ask, ...]:
        """What waits for a human, oldest first."""
        return tuple(self._asks.values())

    def begin(self, turn_id: str) -> None:
        """A prompt goes to the agent."""
        self._turn_id = turn_id

    def go_on(self, left: Continued) -> None:
        """A process before this one began the turn: what it left open is ours."""
        for item in left.items:
            found = self._items[item.item_id] = _OpenItem(
                msgspec.structs.replace(item, content=()), self._max_item_length
            )
            for part in item.content:
                found.grow(part)
        for permission in left.permissions:
            if permission.status == "requested":
                self._asks[permission.permission_id] = permission
        for question in left.questions:
            if question.status == "requested":
                self._asks[question.question_id] = question

    def waits_for(self, ask_id: str) -> bool:
        """Whether nobody has told the agent what was decided about an ask."""
        return ask_id in self._asks

    def answered(self, ask_id: str) -> None:
        """A human decided an ask; whoever took the decision has logged it."""
        self._asks.pop(ask_id, None)

    def take(self, draft: Draft) -> list[Draft]:
        """The drafts that one event of the translator leads to."""
        match draft.data:
            case ItemDeltaData() as data:
                return self._on_delta(draft, data)
            case ItemStartedData(item=item):
                return self._on_started(draft, item)
            case ItemCompletedData(item=item):
                return self._on_completed(draft, item)
            case PermissionData(permission_id=ask_id) | QuestionData(question_id=ask_id) as ask:
                return self._on_ask(draft, ask_id, ask)
            case TerminalOutputData(item_id=str(item_id)) as output if item_id in self._finished:
                draft.data = msgspec.structs.replace(output, late=True)
                return [draft]
            case _:
                # turns begin and end by prompts and TurnDone alone
                return [] if draft.type in {"turn.started", "turn.ended"} else [draft]

    def done(self, done: TurnDone, raw: bytes | None) -> list[Draft]:
        """The agent says that its turn is over; `raw` is the frame in which it said so."""
        return self._end(done, raw)

    def end_turn(self, outcome: TurnOutcome, stop_reason: str) -> list[Draft]:
        """We end the turn ourselves, because the agent did not."""
        return self._end(TurnDone(outcome=outcome, stop_reason=stop_reason), None)

    def cancel_asks(self, reason: str) -> list[Draft]:
        """Resolve what is still open, because nobody can answer it any more."""
        asks, self._asks = self._asks, {}
        return [_cancelled(ask, reason) for ask in asks.values()]

    def give_up(self) -> list[Draft]:
        """The process is gone outside of a turn: close what it left open."""
        return [*self._close_items("failed"), *self.cancel_asks("agent_exited")]

    # Items

    def _on_started(self, draft: Draft, item: Item) -> list[Draft]:
        if item.item_id in self._items or item.item_id in self._finished:
            return []
        self._items[item.item_id] = _OpenItem(item, self._max_item_length)
        return [draft]

    def _on_delta(self, draft: Draft, data: ItemDeltaData) -> list[Draft]:
        found = self._items.get(data.item_id)
        if found is not None:
            found.grow(data.delta)
            return [draft]
        if data.item_id in self._finished:
            return []  # its final content has replaced all deltas
        item = Item(
            item_id=data.item_id,
            kind="message",
            role="assistant",
            status="in_progress",
            content=(),
            native_item_id=data.native_item_id,
        )
        started = self._started_by_us(item)
        self._items[data.item_id].grow(data.delta)
        return [started, draft]

    def _on_completed(self, draft: Draft, item: Item) -> list[Draft]:
        before: list[Draft] = []
        found = self._items.get(item.item_id)
        if found is None and item.item_id in self._finished:
            return []  # sent again, or too late: after an interrupt some agents send it in the next turn
        if found is None:
            shown = () if item.kind == "message" else item.content
            before.append(self._started_by_us(msgspec.structs.replace(item, status="in_progress", content=shown)))
            found = self._items[item.item_id]
        if item.kind == "message" and found.has_grown and not item.content:
            draft.data = ItemCompletedData(item=msgspec.structs.replace(item, content=found.content()))
        elif not found.has_grown and item.kind == "message" and item.role == "assistant":
            before += _single_delta(item)
        del self._items[item.item_id]
        self._remember(item.item_id)
        return [*before, draft]

    def _started_by_us(self, item: Item) -> Draft:
        self._items[item.item_id] = _OpenItem(item, self._max_item_length)
        return _ours("item.started", ItemStartedData(item=item))

    def _remember(self, item_id: str) -> None:
        self._finished[item_id] = None
        if len(self._finished) > MOST_REMEMBERED_ITEMS:
            del self._finished[next(iter(self._finished))]

    # Asks

    def _on_ask(self, draft: Draft, ask_id: str, ask: Ask) -> list[Draft]:
        if draft.type.endswith(".resolved"):
            return [draft] if self._asks.pop(ask_id, None) is not None else []
        if ask_id in self._asks:
            return []
        self._asks[ask_id] = ask
        return [draft]

    # Ends

    def _end(self, done: TurnDone, raw: bytes | None) -> list[Draft]:
        if self._turn_id is None:
            return []
        data = TurnEndedData(phase="ended", turn_id=self._turn_id, outcome=done.outcome, stop_reason=done.stop_reason)
        self._turn_id = None
        ended = Draft("turn.ended", data, raw=raw) if raw is not None else _ours("turn.ended", data)
        messages: ItemStatus = "completed" if done.outcome == "completed" else "failed"
        return [*self._close_items(messages), *self.cancel_asks("turn_ended"), ended]

    def _close_items(self, messages: ItemStatus) -> list[Draft]:
        items, self._items = self._items, {}
        for item_id in items:
            self._remember(item_id)
        return [_completed(found, messages) for found in items.values()]


def _ours(kind: str, data: msgspec.Struct) -> Draft:
    return Draft(kind, data, source="daemon", synthetic=True)


def _completed(found: _OpenItem, messages: ItemStatus) -> Draft:
    status = "failed" if found.item.kind in _TOOL_KINDS else messages
    item = msgspec.structs.replace(found.item, status=status, content=found.content())
    return _ours("item.completed", ItemCompletedData(item=item))


def _single_delta(item: Item) -> list[Draft]:
    text = "".join(part.text for part in item.content if isinstance(part, TextPart))
    if not text:
        return []
    delta = ItemDeltaData(item_id=item.item_id, delta=TextPart(text=text), native_item_id=item.native_item_id)
    return [_ours("item.delta", delta)]


def _cancelled(ask: Ask, reason: str) -> Draft:
    metadata = {**(ask.metadata or {}), "reason": reason}
    if isinstance(ask, PermissionData):
        return _ours("permission.resolved", msgspec.structs.replace(ask, status="reject", metadata=metadata))
    return _ours("question.resolved", msgspec.structs.replace(ask, status="rejected", metadata=metadata))
