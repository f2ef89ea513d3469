"""The log as the daemon API shows it: its thirteen event types, under the session id that its client chose."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ostler.server.dialects.turns import PromptTurn
from ostler.server.sessions.log import frame
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import SessionRecord, StoredEvent
from ostler.wire.events import AnyEvent, ItemDelta, SessionRewound, UnknownEvent, decode_event
from ostler.wire.items import Item
from ostler.wire.parts import StatusPart, TextPart, ToolResultPart

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
_TYPES = tuple(b'{"type":"%b"' % kind.encode() for kind in sorted(EVENT_TYPES))


def daemon_event(stored: StoredEvent, *, session_id: str, key: str) -> bytes | None:
    """One event for a client of the daemon API; None if its specification has no such event."""
    retell = next((found for mark, found in _RETOLD.items() if stored.body.startswith(mark)), None)
    body = retell(decode_event(stored.body)) if retell is not None else stored.body
    if body is None or not body.startswith(_TYPES):
        return None
    # the envelope's session_id stands before everything an agent could have written
    renamed = body.replace(b'"session_id":"%b"' % session_id.encode(), b'"session_id":"%b"' % key.encode(), 1)
    return renamed if stored.raw is None else b'%b,"raw":%b}' % (renamed[:-1], stored.raw)


def _as_status(event: AnyEvent | UnknownEvent) -> bytes | None:
    """A rewind, for which the daemon API has no event, as a line of status: the turns after it no longer count."""
    if not isinstance(event, SessionRewound):
        return None
    line = StatusPart(label="rewound", detail=f"The session is what it was at the end of turn {event.data.turn}.")
    item = Item(
        item_id=f"itm_rewound_{event.sequence}", kind="status", role="system", status="completed", content=(line,)
    )
    return msgspec.json.encode({**msgspec.to_builtins(event), "type": "item.completed", "data": {"item": item}})


def _with_plain_delta(event: AnyEvent | UnknownEvent) -> bytes | None:
    """Deltas are plain text here; what is not said aloud arrives with the finished item."""
    if not isinstance(event, ItemDelta):
        return None
    match event.data.delta:
        case TextPart(text=text) | ToolResultPart(output=text) if text:
            return msgspec.json.encode(
                {**msgspec.to_builtins(event), "data": {"item_id": event.data.item_id, **_native(event), "delta": text}}
            )
        case _:
            return None


def _native(event: ItemDelta) -> dict[str, str]:
    return {"native_item_id": event.data.native_item_id} if event.data.native_item_id else {}


_RETOLD: dict[bytes, Callable[[AnyEvent | UnknownEvent], bytes | None]] = {
    b'{"type":"item.delta"': _with_plain_delta,
    b'{"type":"session.rewound"': _as_status,
}
"""Events that the daemon API words in another way."""


class DaemonStream:
    """The log as an event stream of the daemon API; all of it, or only one turn."""

    def __init__(self, session_id: str, key: str, turn: PromptTurn | None) -> None:
        self._session_id = session_id
        self._key = key
        self._turn = turn

    def is_over(self) -> bool:
        """Whether the turn ended."""
        return self._turn is not None and self._turn.is_over

    def render(self, events: Sequence[StoredEvent]) -> bytes:
        """What these events look like."""
        return b"".join(frame(event.number, body) for event, body in self._chosen(events))

    def _chosen(self, events: Sequence[StoredEvent]) -> Iterator[tuple[StoredEvent, bytes]]:
        for event in events:
            if self.is_over():
                return
            if self._turn is not None:
                self._turn.feed(decode_event(event.body))
            if (body := daemon_event(event, session_id=self._session_id, key=self._key)) is not None:
                yield event, body


async def daemon_page(
    sessions: Sessions, record: SessionRecord, *, offset: int, limit: int, raw: bool
) -> tuple[list[bytes], bool]:
    """A page of events, full if the log has enough of them, and whether there are more."""
    found: list[bytes] = []
    while stored := await sessions.events(record.id, offset, limit + 1, raw=raw):
        offset = stored[-1].number
        shown = (daemon_event(event, session_id=record.id, key=record.key) for event in stored)
        found += [body for body in shown if body is not None]
        if len(found) > limit:
            return found[:limit], True
    return found, False
