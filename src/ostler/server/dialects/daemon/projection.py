"""The log as the daemon API shows it: its thirteen event types, under the session id that its client chose."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostler.server.dialects.turns import PromptTurn, TurnEvents
from ostler.server.sessions.log.feed import frame
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import SessionRecord, StoredEvent
from ostler.wire.events import (
    AnyEvent,
    FileChanged,
    ItemDelta,
    ItemDeltaData,
    Notice,
    PlanUpdated,
    SessionHandoff,
    SessionInfo,
    SessionRewound,
    SessionStatusChanged,
    TerminalOutput,
    TerminalOutputData,
    UnknownEvent,
    UsageUpdated,
    decode_event,
)
from ostler.wire.items import Item
from ostler.wire.parts import FileRefPart, JsonPart, StatusPart, TextPart

EVENT_TYPES = frozenset(
    {
        "session.started",
        "session.ended",
        "turn.started",
        "turn.ended",
        "item.started",
        "item.delta",
        "item.completed",
        "permission.requested",
        "permission.resolved",
        "question.requested",
        "question.resolved",
        "error",
        "agent.unparsed",
    }
)
_MOST_BYTES = 8 * 2**20
_STATUS = b'"kind":"status"'
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(str)


def daemon_event(stored: StoredEvent, *, key: str, names: Mapping[str, str]) -> bytes:
    """One event for a client of the daemon API; what its specification has no event for is an item.

    `names` is what that API calls our agents.
    """
    fields = _decoder.decode(stored.body)
    kind = _text.decode(fields["type"])
    if kind not in EVENT_TYPES or kind == "item.delta":
        event = decode_event(stored.body)
        kind, data = _reworded(event)
        fields["type"] = msgspec.Raw(msgspec.json.encode(kind))
        fields["data"] = msgspec.Raw(msgspec.json.encode(data))
    elif kind == "session.started":
        fields["data"] = msgspec.Raw(_named(fields["data"], names))
    elif kind in {"item.started", "item.completed"} and _STATUS in stored.body:
        fields["data"] = msgspec.Raw(_labelled(fields["data"]))
    fields["session_id"] = msgspec.Raw(msgspec.json.encode(key))
    if stored.raw is not None:
        fields["raw"] = msgspec.Raw(stored.raw)
    return msgspec.json.encode(fields)


def _named(data: msgspec.Raw, names: Mapping[str, str]) -> bytes:
    began = msgspec.json.decode(data)
    metadata = began.get("metadata") or {}
    if metadata.get("agent") in names:
        began["metadata"] = {**metadata, "agent": names[metadata["agent"]]}
    return msgspec.json.encode(began)


def _labelled(data: msgspec.Raw) -> bytes:
    """An event that only an agent has is a status without content in the log; here its name is the label."""
    completed = msgspec.json.decode(data)
    item = completed["item"]
    if item["kind"] == "status" and not item.get("content") and item.get("native_item_id"):
        item["content"] = [{"type": "status", "label": item["native_item_id"]}]
    return msgspec.json.encode(completed)


def _reworded(event: AnyEvent | UnknownEvent) -> tuple[str, Any]:
    match event:
        case ItemDelta(data=data):
            return "item.delta", _with_plain_delta(data)
        case TerminalOutput(data=TerminalOutputData(item_id=str(item), data=text, stream=stream, late=False)):
            return "item.delta", {"item_id": item, "delta": text, "part": {"type": "terminal", "stream": stream}}
        case _:
            return "item.completed", {"item": _item_of(event)}


def _with_plain_delta(data: ItemDeltaData) -> dict[str, Any]:
    """Deltas are plain text here, of whatever grows; `part` says what that is where it is not words."""
    part = msgspec.to_builtins(data.delta)
    text = part.pop(field) if (field := _GROWS.get(part["type"])) else ""
    native = {"native_item_id": data.native_item_id} if data.native_item_id else {}
    kind = {} if isinstance(data.delta, TextPart) else {"part": part}
    return {"item_id": data.item_id, **native, "delta": text, **kind}


_GROWS = {"text": "text", "reasoning": "text", "tool_result": "output", "tool_call": "arguments"}
"""The field of a part that grows piece by piece."""


def _item_of(event: AnyEvent | UnknownEvent) -> Item:
    """What the daemon API has no event for, as an item that has all of its data."""
    name = f"itm_{event.type.replace('.', '_')}_{event.sequence}"
    match event:
        case FileChanged(data=data):
            what = StatusPart(label="file.changed", detail=data.action)
            file = FileRefPart(path=data.path, action="patch" if data.diff else "write", diff=data.diff)
            return Item(item_id=name, kind="status", status="completed", content=(what, file), parent_id=data.item_id)
        case TerminalOutput(data=data):  # of a command in the background: its call is completed
            output = (StatusPart(label=event.type), JsonPart(json=data))
            return Item(item_id=name, kind="status", status="completed", content=output, parent_id=data.item_id)
        case Notice(data=data):
            shown = (TextPart(text=data.message), JsonPart(json=data))
            return Item(item_id=name, kind="system", role="system", status="completed", content=shown)
        case UnknownEvent():
            whole = JsonPart(json={"type": event.type, "data": event.data})
            return Item(item_id=name, kind="unknown", status="completed", content=(whole,))
        case _:
            line = (_status_of(event), JsonPart(json=event.data))
            return Item(item_id=name, kind="status", role="system", status="completed", content=line)


def _status_of(event: AnyEvent) -> StatusPart:
    label, detail = event.type, None
    match event:
        case SessionRewound(data=data):
            label, detail = "rewound", f"The session is what it was at the end of turn {data.turn}."
        case SessionHandoff(data=data) if data.status == "done":
            label, detail = "handoff", f"{data.to_agent} goes on in the place of {data.from_agent}."
        case PlanUpdated(data=data):
            detail = "\n".join(f"{step.status}: {step.content}" for step in data.entries)
        case UsageUpdated(data=data):
            detail = f"{data.input_tokens or 0} tokens in, {data.output_tokens or 0} out"
        case SessionStatusChanged(data=data):
            detail = data.status
        case SessionInfo(data=data):
            detail = data.title
    return StatusPart(label=label, detail=detail)


class DaemonStream:
    """The log as an event stream of the daemon API; all of it, or only one turn."""

    def __init__(self, key: str, turn: PromptTurn | None, names: Mapping[str, str]) -> None:
        self._key = key
        self._names = names
        self._turn = TurnEvents(turn) if turn is not None else None

    def is_over(self) -> bool:
        """Whether the turn ended."""
        return self._turn is not None and self._turn.is_over

    def render(self, events: Sequence[StoredEvent]) -> bytes:
        """What these events look like."""
        chosen = events if self._turn is None else self._turn.of(events)
        return b"".join(frame(event.number, daemon_event(event, key=self._key, names=self._names)) for event in chosen)


async def daemon_page(
    sessions: Sessions, record: SessionRecord, *, offset: int, limit: int, raw: bool, names: Mapping[str, str]
) -> tuple[list[bytes], bool]:
    """A page of events, full if the log has enough of them and they are not large, and whether there are more."""
    found: list[bytes] = []
    while stored := await sessions.reads.events(record.id, offset, limit + 1 - len(found), raw=raw):
        offset = stored[-1].number
        found += [daemon_event(event, key=record.key, names=names) for event in stored]
        if len(found) > limit:
            return found[:limit], True
        if sum(map(len, found)) >= _MOST_BYTES:
            return found, offset < record.last_sequence
    return found, False
