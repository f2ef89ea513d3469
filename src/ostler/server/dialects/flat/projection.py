"""The log as flat lines; everything that is said between a person and an agent is left out."""

from collections.abc import Callable, Sequence
from typing import Any

from ostler.server.dialects.formats import Subject
from ostler.wire.events import (
    AnyEvent,
    DeliveryCompleted,
    ErrorRaised,
    Log,
    Notice,
    SessionRewound,
    SessionStatusChanged,
    SnapshotCreated,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
)

Json = dict[str, Any]
KINDS = frozenset({"status", "log", "moment", "delivery"})


class FlatProjection:
    """Fed every event in order; gives one line for each that an operator cares about."""

    def __init__(self, _: Subject) -> None:
        """Every line stands for itself, so nothing is remembered."""

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[Json]:
        """What this event becomes."""
        line = _LINES.get(type(event))
        return [] if line is None else [{**line(event), "ts": event.time}]


def _log(level: str, message: str) -> Json:
    return {"type": "log", "level": level, "message": message}


def _status(event: SessionStatusChanged) -> Json:
    reason = {"reason": event.data.reason} if event.data.reason else {}
    return {"type": "status", "status": event.data.status, **reason}


def _moment(event: SnapshotCreated) -> Json:
    note = event.data.note or f"after turn {event.data.turn}"
    return {"type": "moment", "snapshotId": event.data.snapshot_id, "note": note}


def _delivery(event: DeliveryCompleted) -> Json:
    return {"type": "delivery", "mode": event.data.mode, "url": event.data.url}


_LINES: dict[type, Callable[[Any], Json]] = {
    SessionStatusChanged: _status,
    SnapshotCreated: _moment,
    DeliveryCompleted: _delivery,
    Log: lambda event: _log(event.data.level, event.data.message),
    Notice: lambda event: _log(event.data.severity, event.data.message),
    ErrorRaised: lambda event: _log("error", event.data.message),
    TurnStarted: lambda event: _log("info", f"turn {event.data.turn_id} began"),
    TurnEnded: lambda event: _log("info", f"turn {event.data.turn_id} ended: {event.data.outcome}"),
    SessionRewound: lambda event: _log("info", f"session is rewound to turn {event.data.turn}"),
}
