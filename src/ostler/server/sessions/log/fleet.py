"""Folds what a log tells of the followers of a session, and which events of its leader were taken."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from ostler.server.sessions.log.folds import Happened
from ostler.wire.fleets import MOST_HOSTS, FenceResultData, FleetCatalogData, HostState

MOST_GAPS = 100
"""Of one origin; older ones are forgotten, and what would fill them counts as taken."""
Gaps = tuple[tuple[int, int], ...]


class Taken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which numbers of one origin were taken: all up to the last but for the gaps."""

    last: int = 0
    gaps: Gaps = ()

    def has(self, seq: int) -> bool:
        """Whether this one was."""
        return seq <= self.last and not any(first <= seq <= last for first, last in self.gaps)

    def after(self, seq: int) -> "Taken":
        """With one more."""
        if seq > self.last:
            new = ((self.last + 1, seq - 1),) if seq > self.last + 1 else ()
            return Taken(last=seq, gaps=(*self.gaps, *new)[-MOST_GAPS:])
        rest = (
            piece
            for first, last in self.gaps
            for piece in (((first, seq - 1), (seq + 1, last)) if first <= seq <= last else ((first, last),))
        )
        return replace(self, gaps=tuple((first, last) for first, last in rest if first <= last)[-MOST_GAPS:])


class KnownHost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A follower as the log tells of it."""

    name: str
    os: str = "unknown"
    tags: tuple[str, ...] = ()
    state: HostState = "known"
    exit_code: int | None = None
    fence: str | None = None
    fence_ms: int | None = None
    snapshot_id: str | None = None
    seen: str | None = None
    folder: str | None = None
    ssh_user: str | None = None


class FleetState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The followers of a session."""

    hosts: tuple[KnownHost, ...] = ()
    taken: dict[str, Taken] = msgspec.field(default_factory=dict)


def after(state: FleetState | None, event: Happened) -> FleetState:
    """What is known after one more event."""
    before = state or FleetState()
    changed = CHANGES[event.type](before, event)
    if (seq := event.data.seq) is None:
        return changed
    origin = event.data.origin
    return replace(changed, taken={**before.taken, origin: before.taken.get(origin, Taken()).after(seq)})


def _catalog(state: FleetState, event: Happened) -> FleetState:
    data: FleetCatalogData = event.data
    known = {host.name: host for host in state.hosts}
    return replace(
        state,
        hosts=tuple(
            replace(
                known.get(host.name) or KnownHost(name=host.name),
                os=host.os,
                tags=host.tags,
                seen=event.time,
                folder=host.folder,
                ssh_user=host.ssh_user,
            )
            for host in data.hosts
        ),
    )


def _fenced(state: FleetState, event: Happened) -> FleetState:
    data: FenceResultData = event.data
    for name, host in data.hosts.items():
        state = _host(state, event, name, fence=host.state, fence_ms=host.took_ms, snapshot_id=data.snapshot_id)
    return state


def _exited(state: FleetState, event: Happened) -> FleetState:
    code = event.data.code
    return _host(state, event, event.data.host, state="failed" if code else "passed", exit_code=code)


def _host(fleet: FleetState, event: Happened, name: str, **changes: Any) -> FleetState:
    """With one follower changed; it need not be in the catalogue."""
    if not any(host.name == name for host in fleet.hosts):
        if len(fleet.hosts) >= MOST_HOSTS:
            return fleet
        fleet = replace(fleet, hosts=(*fleet.hosts, KnownHost(name=name)))
    return replace(
        fleet,
        hosts=tuple(replace(host, seen=event.time, **changes) if host.name == name else host for host in fleet.hosts),
    )


CHANGES: dict[str, Callable[[FleetState, Happened], FleetState]] = {
    "fleet.catalog": _catalog,
    "fence.started": lambda state, _: state,
    "fence.result": _fenced,
    "host.started": lambda state, event: _host(state, event, event.data.host, state="running", exit_code=None),
    "host.log": lambda state, event: _host(state, event, event.data.host),
    "host.exited": _exited,
    "fleet.summary": lambda state, _: state,
    "fleet.note": lambda state, _: state,
}
