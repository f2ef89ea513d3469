"""Folds what a log tells of limits: which one ended the last turn, and what ends the waiting for it."""

from ostler.server.sessions.log.happened import Happened
from ostler.wire.events import SessionInfoData, SessionStatusData
from ostler.wire.items import QueueUpdatedData
from ostler.wire.workspace_events import SessionLimitData

_FORGETTING = frozenset({"turn.ended", "session.handoff", "session.rewound", "session.forked"})
_ENDS = frozenset({"stopping", "stopped", "completed", "failed", "cancelled"})


def is_waited_for(limit: SessionLimitData | None) -> bool:
    """Whether the session goes on by itself when the limit ends."""
    return limit is not None and limit.status == "reached" and limit.waits


def is_new(limit: SessionLimitData | None, before: SessionLimitData | None) -> bool:
    """Whether a limit was reached just now, and not only something said of the one before."""
    if limit is None or limit.status != "reached":
        return False
    return before is None or (limit.until, limit.attempt) != (before.until, before.attempt)


def after(limit: SessionLimitData | None, event: Happened, queued: int) -> SessionLimitData | None:
    """The limit after one more event; `queued` prompts waited before it."""
    if event.type == "session.limit":
        data: SessionLimitData = event.data
        return data
    if limit is None or event.type in _FORGETTING:
        return None
    return None if limit.status == "reached" and _goes_on_otherwise(event, queued) else limit


def _goes_on_otherwise(event: Happened, queued: int) -> bool:
    """Whether a person decided what comes next: a turn, one more prompt, the end, or a place out of the way."""
    match event.data:
        case QueueUpdatedData(entries=entries):
            return len(entries) > queued
        case SessionStatusData(status=status):
            return status in _ENDS
        case SessionInfoData(archived=archived):
            return archived is True
        case _:
            return event.type == "turn.started"
