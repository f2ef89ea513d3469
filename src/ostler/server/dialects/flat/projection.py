"""The log as flat lines; everything that is said between a person and an agent is left out."""

from collections.abc import Sequence
from typing import Any

from ostler.server.dialects.formats import Subject
from ostler.wire.events import (
    AnyEvent,
    ErrorRaised,
    Log,
    LogData,
    Notice,
    NoticeData,
    SessionStatusChanged,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
)

Json = dict[str, Any]
KINDS = frozenset({"status", "log"})


class FlatProjection:
    """Fed every event in order; gives one line for each that an operator cares about."""

    def __init__(self, _: Subject) -> None:
        """Every line stands for itself, so nothing is remembered."""

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[Json]:
        """What this event becomes."""
        line = _line(event)
        return [] if line is None else [{**line, "ts": event.time}]


def _line(event: AnyEvent | UnknownEvent) -> Json | None:
    match event:
        case SessionStatusChanged():
            reason = {"reason": event.data.reason} if event.data.reason else {}
            return {"type": "status", "status": event.data.status, **reason}
        case Log(data=LogData(level=level, message=text)) | Notice(data=NoticeData(severity=level, message=text)):
            return _log(level, text)
        case ErrorRaised():
            return _log("error", event.data.message)
        case TurnStarted():
            return _log("info", f"turn {event.data.turn_id} began")
        case TurnEnded():
            return _log("info", f"turn {event.data.turn_id} ended: {event.data.outcome}")
        case _:
            return None


def _log(level: str, message: str) -> Json:
    return {"type": "log", "level": level, "message": message}
