"""The log as the daemon API shows it: its thirteen event types, under the session id that its client chose."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from ostler.server.dialects.turns import PromptTurn, TurnEvents
from ostler.server.sessions.log.tail import frame
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import SessionRecord, StoredEvent
from ostler.wire.events import (
    AnyEvent,
    ItemDelta,
    ItemDeltaData,
    SessionHandoff,
    SessionRewound,
    TerminalOutput,
    TerminalOutputData,
    UnknownEvent,
    decode_event,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ReasoningPart, StatusPart, TextPart, ToolResultPart

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
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_text = msgspec.json.Decoder(str)


def daemon_event(stored: StoredEvent, *, key: str, names: Mapping[str, str]) -> bytes | None:
    """One event for a client of the daemon API; None if its specification has no such event.

    `names` is what that API calls our agents.
    """
    fields = _decoder.decode(stored.body)
    kind = _text.decode(fields["type"])
    if (reword := _REWORDED.get(kind)) is not None:
        reworded = reword(decode_event(stored.body))
        if reworded is None:
            return None
        fields = _decoder.decode(reworded)
    elif kind not in EVENT_TYPES:
        return None
    elif kind == "session.started":
        fields["data"] = msgspec.Raw(_named(fields["data"], names))
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


def _status_of(event: AnyEvent | UnknownEvent) -> StatusPart | None:
    match event:
        case SessionRewound(data=data):
            return StatusPart(label="rewound", detail=f"The session is what it was at the end of turn {data.turn}.")
        case SessionHandoff(data=data) if data.status == "done":
            return StatusPart(label="handoff", detail=f"{data.to_agent} goes on in the place of {data.from_agent}.")
        case _:
            return None


def _as_status(event: AnyEvent | UnknownEvent) -> bytes | None:
    """What the daemon API has no event for, as a line of status."""
    if (line := _status_of(event)) is None:
        return None
    item = Item(
        item_id=f"itm_{line.label}_{event.sequence}", kind="status", role="system", status="completed", content=(line,)
    )
    return msgspec.json.encode({**msgspec.to_builtins(event), "type": "item.completed", "data": {"item": item}})


def _with_plain_delta(event: AnyEvent | UnknownEvent) -> bytes | None:
    """Deltas are plain text here, of whatever grows: words, thoughts, what a tool answers and what a command prints."""
    match event:
        case ItemDelta(data=ItemDeltaData(item_id=item, native_item_id=native, delta=part)):
            text = _text_of(part)
        case TerminalOutput(data=TerminalOutputData(item_id=str(item), data=text)):
            native = None
        case _:  # output of no item grows nothing
            return None
    if not text:
        return None
    data = {"item_id": item, **({"native_item_id": native} if native else {}), "delta": text}
    return msgspec.json.encode({**msgspec.to_builtins(event), "type": "item.delta", "data": data})


def _text_of(part: ContentPart) -> str:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text) | ToolResultPart(output=text):
            return text
        case _:
            return ""


_REWORDED: dict[str, Callable[[AnyEvent | UnknownEvent], bytes | None]] = {
    "item.delta": _with_plain_delta,
    "terminal.output": _with_plain_delta,
    "session.rewound": _as_status,
    "session.handoff": _as_status,
}
"""Events that the daemon API words in another way."""


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
        return b"".join(frame(event.number, body) for event, body in self._chosen(events))

    def _chosen(self, events: Sequence[StoredEvent]) -> Iterator[tuple[StoredEvent, bytes]]:
        for event in events if self._turn is None else self._turn.of(events):
            if (body := daemon_event(event, key=self._key, names=self._names)) is not None:
                yield event, body


async def daemon_page(
    sessions: Sessions, record: SessionRecord, *, offset: int, limit: int, raw: bool, names: Mapping[str, str]
) -> tuple[list[bytes], bool]:
    """A page of events, full if the log has enough of them and they are not large, and whether there are more."""
    found: list[bytes] = []
    while stored := await sessions.events(record.id, offset, limit + 1, raw=raw):
        offset = stored[-1].number
        shown = (daemon_event(event, key=record.key, names=names) for event in stored)
        found += [body for body in shown if body is not None]
        if len(found) > limit:
            return found[:limit], True
        if sum(map(len, found)) >= _MOST_BYTES:
            return found, offset < record.last_sequence
    return found, False
