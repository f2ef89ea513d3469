"""The outline of a log: which events lie beside it too, so that nobody reads a long log to show a little of it."""

from typing import Any

import msgspec

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
