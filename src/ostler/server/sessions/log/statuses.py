"""Which status a session may have after which, and which are the last."""

from ostler.wire.events import SessionStatus

TERMINAL: frozenset[SessionStatus] = frozenset({"stopped", "completed", "failed", "cancelled"})

_ENDS: frozenset[SessionStatus] = frozenset({"stopping", "failed", "cancelled"})
TRANSITIONS: dict[SessionStatus, frozenset[SessionStatus]] = {
    "queued": _ENDS | {"provisioning"},
    "provisioning": _ENDS | {"running", "paused"},
    "running": _ENDS | {"pausing", "completed"},
    "pausing": _ENDS | {"paused"},
    "paused": _ENDS | {"resuming"},
    "resuming": _ENDS | {"running"},
    "stopping": frozenset({"stopped", "failed", "cancelled"}),
    "stopped": frozenset(),
    "completed": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}
