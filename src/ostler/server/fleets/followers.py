"""Which followers there are: those that leaders told of, and those of configured inventories."""

from pathlib import Path
from typing import NamedTuple, get_args

import msgspec

from ostler.base.errors import SettingsError
from ostler.server.sessions.log.fleet import KnownHost
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import SessionFilter
from ostler.wire.events import SessionStatus
from ostler.wire.fleets import Follower, FollowerList, FollowerSession, Inventory, InventoryHost

_PAGE = 200
_ACTIVE: tuple[SessionStatus, ...] = tuple(status for status in get_args(SessionStatus) if status not in TERMINAL)


class _Seen(NamedTuple):
    """A follower in one session."""

    host: KnownHost
    session: FollowerSession


def read_inventories(files: tuple[str, ...]) -> tuple[InventoryHost, ...]:
    """The followers of inventories; of a name that several have the first counts."""
    found: dict[str, InventoryHost] = {}
    for file in files:
        try:
            inventory = msgspec.json.decode(Path(file).read_bytes(), type=Inventory)
        except (OSError, msgspec.MsgspecError) as error:
            reason = f'cannot be used ({error}). It is JSON: {{"hosts": [{{"name": ..., "os": ...}}]}}.'
            raise SettingsError(name="follower_inventories", value=file, reason=reason) from error
        for host in inventory.hosts:
            found.setdefault(host.name, host)
    return tuple(found.values())


async def list_followers(
    sessions: Sessions, project: str, configured: tuple[InventoryHost, ...], only: str | None = None
) -> FollowerList:
    """Those of sessions that are not over, or of one alone, and those that are configured, by name."""
    seen: dict[str, list[_Seen]] = {host.name: [] for host in configured}
    page = 1
    while True:
        records, _ = await sessions.store.page_sessions(
            SessionFilter(project=project, page=page, per_page=_PAGE, statuses=_ACTIVE)
        )
        for record in records:
            if only not in {None, record.id}:
                continue
            state, _, _ = sessions.registry.state_of(record)
            for host in state.fleet.hosts if state.fleet is not None else ():
                seen.setdefault(host.name, []).append(_Seen(host, _session(record.id, state.title, host)))
        if len(records) < _PAGE:
            break
        page += 1
    inventory = {host.name: host for host in configured}
    return FollowerList(items=tuple(_follower(name, seen[name], inventory.get(name)) for name in sorted(seen)))


def _session(session_id: str, title: str | None, host: KnownHost) -> FollowerSession:
    return FollowerSession(
        session_id=session_id,
        title=title,
        state=host.state,
        exit_code=host.exit_code,
        fence=host.fence,
        fence_ms=host.fence_ms,
        snapshot_id=host.snapshot_id,
        last_seen=host.seen,
        folder=host.folder,
        ssh_user=host.ssh_user,
    )


def _follower(name: str, seen: list[_Seen], inventory: InventoryHost | None) -> Follower:
    newest = max((each.host for each in seen), key=lambda host: host.seen or "", default=None)
    tags = (*(inventory.tags if inventory is not None else ()), *(newest.tags if newest is not None else ()))
    return Follower(
        name=name,
        os=inventory.os if inventory is not None else newest.os if newest is not None else "unknown",
        tags=tuple(dict.fromkeys(tags)),
        last_seen=newest.seen if newest is not None else None,
        configured=inventory is not None,
        address=inventory.address if inventory is not None else None,
        sessions=tuple(each.session for each in seen),
    )
