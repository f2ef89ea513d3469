"""How a burst of events is stored: packed into one row, and what of it the outline of its log tells of.

In the row lies a line for each event and, after it, a line with the agent's own frame, deflated. An event says who it
belongs to, and a frame often says what its event says again. So each burst is deflated with a dictionary of what nearly
every event contains, which makes small bursts small too: a delta with 100 bytes of text and its frame take 140 bytes
instead of 650. The number of a packing is stored with the row; what a number means never changes.

The outline has a row for each event of some types, so that nobody reads a long log to show a little of it.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

PACKING = 1
_LEVEL, _WINDOW, _MEMORY = 1, -12, 5  # little memory: a fresh one is made for each burst
_FRAMES = (
    '{"type":"assistant","message":{"id":"msg_","role":"assistant","content":[{"type":"tool_use","id":"toolu_","name":'
    '"input":{"command":"file_path":"/"}}]},"parent_tool_use_id":null,"session_id":"","uuid":""}'
    '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}'
    '{"method":"item/agentMessage/delta","params":{"threadId":"","turnId":"","itemId":"","delta":""}}'
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"","update":{"sessionUpdate":"tool_call_update",'
    '"toolCallId":"","status":"completed","rawInput":{},"rawOutput":{}}}}'
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"","update":{"sessionUpdate":'
    '"agent_message_chunk","content":{"type":"text","text":""}}}}'
)
_DATA = (
    '"data":{"input_tokens":,"output_tokens":,"cached_input_tokens":,"context_used":,"context_window":,"cost":{"amount":'
    '0.0,"currency":"USD"}}}"data":{"phase":"ended","outcome":"completed","turn_id":"trn_","stop_reason":"end_turn"}}'
    '"data":{"permission_id":"","action":"","status":"requested"}}"data":{"path":"","action":"modified","diff":"--- a/'
    '\\n+++ b/\\n@@ -1 +1 @@\\n","item_id":"itm_1_"}}"data":{"stream":"stdout","data":"","item_id":"itm_1_"}}'
    '"data":{"item":{"item_id":"itm_1_","kind":"tool_result","status":"completed","content":[{"type":"tool_result",'
    '"call_id":"","output":""}],"role":"tool","native_item_id":"","parent_id":"itm_1_"}}}'
    '"data":{"item":{"item_id":"itm_1_","kind":"tool_call","status":"in_progress","content":[{"type":"tool_call",'
    '"name":"","arguments":"{\\"","call_id":""}],"role":"assistant"}}}'
    '"data":{"item":{"item_id":"itm_1_message_1","kind":"message","status":"completed","content":[{"type":"text",'
    '"text":""}],"role":"assistant","native_item_id":""}}}"delta":{"type":"reasoning","text":"","visibility":"public"}'
)
_SHARED = (_FRAMES + _DATA).encode()
_EVENT = (
    b'{"type":"item.completed","{"type":"item.started","{"type":"item.delta","event_id":"evt_%s_1","sequence":1,"time":'
    b'"2026-11-15T12:00:00.000Z","session_id":"ses_%s","source":"daemon","synthetic":true,"source":"agent",'
    b'"synthetic":false,"native_session_id":"","data":{"item_id":"itm_1_message_1","delta":{"type":"text","text":""}}}'
)


def pack(session_id: str, events: Sequence[bytes], raws: Sequence[bytes | None]) -> bytes:
    """A burst as it is stored; none of the lines holds a line end."""
    lines = [line for event, raw in zip(events, raws, strict=True) for line in (event, raw or b"")]
    deflating = zlib.compressobj(
        _LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, _dictionary(session_id)
    )
    return deflating.compress(b"\n".join(lines)) + deflating.flush()


def unpack(session_id: str, packing: int | None, body: bytes, raw: bytes | None) -> tuple[list[bytes], list[bytes]]:
    """The events of a row and the frame of each, empty where there is none; rows without a packing are old ones."""
    if packing is None:
        events = body.split(b"\n")
        return events, raw.split(b"\n") if raw is not None else [b""] * len(events)
    lines = zlib.decompressobj(_WINDOW, _dictionary(session_id)).decompress(body).split(b"\n")
    return lines[::2], lines[1::2]


def _dictionary(session_id: str) -> bytes:
    own = session_id[4:].encode()
    return _SHARED + _EVENT % (own, own)


LINES = frozenset(
    {
        "session.status",
        "session.rewound",
        "turn.started",
        "turn.ended",
        "permission.requested",
        "permission.resolved",
        "question.requested",
        "question.resolved",
        "snapshot.created",
        "delivery.completed",
        "notice",
        "error",
        "log",
        "fleet.catalog",
        "fence.started",
        "fence.result",
        "host.started",
        "host.exited",
        "fleet.summary",
        "fleet.note",
    }
)
"""Events beside items that a log tells in one line."""
ITEMS = frozenset({"item.started", "item.completed"})
_LARGE_BYTES = 4096
MARKED = LINES | ITEMS | {"artifact.created"}
"""Every event that the outline tells of."""


class Mark(msgspec.Struct, frozen=True):
    """One event that the outline tells of."""

    sequence: int
    type: str
    data: Any
    body: bytes
    turn_id: str | None


def mark_of(sequence: int, kind: str, data: Any, body: bytes, turn_id: str | None) -> Mark | None:
    """What the outline keeps of an event; None for one that it does not tell of."""
    return Mark(sequence, kind, data, body, turn_id) if kind in MARKED else None


def stored_body(mark: Mark) -> bytes:
    """What of an event lies in the outline; a large item is only in the log, where its row leads, and here empty."""
    return b"" if mark.type in ITEMS and len(mark.body) > _LARGE_BYTES else mark.body
