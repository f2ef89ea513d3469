"""Limits of tenants, projects and actors: who has as much as it may is told which limit it is and when it frees."""

import asyncio
import math
from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import OstlerError
from ostler.base.errors.access import LimitReached
from ostler.server.auth.directory import Directory
from ostler.server.auth.scope import Scope
from ostler.server.quotas.rates import Place, Rates
from ostler.server.store.access import LimitsRow, UploadedBy
from ostler.server.store.peers import Peers
from ostler.server.store.protocol import Store
from ostler.wire.events import SessionStatus
from ostler.wire.limits import Limits, LimitScope, Usage, UsageList

_RETRY_SECONDS = 10
"""When to ask again for what frees when somebody ends something."""
_LOOK_BYTES = 1 << 20
"""So many bytes of an upload come in between two looks at how many may."""
_WORDS = {
    "requests_per_second": "requests per second",
    "live_sessions": "live sessions",
    "queued_tasks": "queued tasks",
    "tokens_per_day": "tokens per day",
    "cost_per_day": "US dollars per day",
    "workspaces": "workspaces on disk",
    "upload_bytes_per_day": "bytes of uploads per day",
}
_NUMBERS = tuple(_WORDS)


class Room(NamedTuple):
    """Why there is none for a new session, if so."""

    live: LimitReached | None = None
    """On a runner."""
    queue: LimitReached | None = None
    """Among those that wait for one."""
    files: LimitReached | None = None
    """On disk, for one that works in files of ours."""


class _Incoming:
    """An upload that is under way: several at once must not each have all that is left."""

    def __init__(self, project: str, actor: str) -> None:
        self.project = project
        self.actor = actor
        self.size = 0


class Rooms:
    """How many more sessions of each project may be on a runner; those that are placed are taken off."""

    def __init__(self, holders: dict[str, tuple[Place, ...]], left: dict[Place, int]) -> None:
        self._holders = holders
        self._left = left

    def take(self, project: str) -> bool:
        """Whether there is room for one more; then it has it."""
        holders = self._holders.get(project, ())
        if any(self._left[place] <= 0 for place in holders):
            return False
        for place in holders:
            self._left[place] -= 1
        return True


class Quotas:
    """Looks at nothing and asks nobody as long as no limit is set."""

    def __init__(
        self, store: Store, directory: Directory, clock: Clock, over: Iterable[SessionStatus], peers: Peers | None
    ) -> None:
        """`over` are the statuses of sessions that are over; with `peers` rates are those of all servers together."""
        self._store = store
        self._directory = directory
        self._clock = clock
        self._over = tuple(over)
        self._rates = Rates()
        if peers is not None:
            peers.count_with(self._rates)
        self._creating: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._coming: list[_Incoming] = []

    def check_rate(self, scope: Scope) -> None:
        """Count a request; raise if it comes too soon."""
        rows = self._rows(scope.tenant, scope.project, scope.actor, ("requests_per_second",))
        if not rows:
            return
        empty = self._rates.take({(row.scope, row.id): row.requests_per_second or 0.0 for row in rows})
        if empty is not None:
            (row,) = (row for row in rows if (row.scope, row.id) == empty[0])
            seconds = math.ceil(empty[1])
            raise self._reached(row, "requests_per_second", row.requests_per_second or 0.0, seconds=seconds)

    async def check_turn(self, project: str, actor: str | None) -> None:
        """Raise if nothing may be used any more today; a turn under way may go above a limit."""
        tenant = self._directory.tenant_of(project)
        names = ("tokens_per_day", "cost_per_day")
        rows = self._rows(tenant, project, actor, names)
        if not rows:
            return
        used = await self._used(tenant)
        for row in rows:
            for name in names:
                limit, has = getattr(row, name), used[row.scope, row.id][name]
                if limit is not None and has >= limit:
                    raise self._reached(row, name, has, frees_at=self._midnight())

    @asynccontextmanager
    async def creating(self, project: str, actor: str | None) -> AsyncIterator[Room]:
        """Around the making of a session; with limits one is made after the other, so that each counts those before."""
        tenant = self._directory.tenant_of(project)
        rows = self._rows(tenant, project, actor, ("live_sessions", "queued_tasks", "workspaces"))
        if not rows:
            yield Room()
            return
        async with self._creating[tenant]:
            has = await self._under_way(tenant)
            yield Room(*(self._full(rows, name, has) for name in ("live_sessions", "queued_tasks", "workspaces")))

    async def check_upload(self, project: str, actor: str, coming: "_Incoming | None" = None) -> None:
        """Raise if what is coming in, or one byte more, is above what may be uploaded today."""
        tenant = self._directory.tenant_of(project)
        rows = self._rows(tenant, project, actor, ("upload_bytes_per_day",))
        if not rows:
            return
        used = await self._used(tenant)
        for row in rows:
            limit, has = row.upload_bytes_per_day or 0, used[row.scope, row.id]["upload_bytes_per_day"]
            if has > limit or (coming is None and has >= limit):
                raise self._reached(row, "upload_bytes_per_day", has, frees_at=self._midnight())

    @asynccontextmanager
    async def uploading(
        self, project: str, actor: str, chunks: AsyncIterable[bytes]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Around an upload: its pieces, which are counted, and end when there are too many."""
        await self.check_upload(project, actor)
        coming, next_look = _Incoming(project, actor), 0
        refusal: LimitReached | None = None

        async def counted() -> AsyncIterator[bytes]:
            nonlocal next_look, refusal
            async for chunk in chunks:
                coming.size += len(chunk)
                if coming.size >= next_look:
                    next_look = coming.size + _LOOK_BYTES
                    try:
                        await self.check_upload(project, actor, coming)
                    except LimitReached as error:
                        refusal = error
                        raise
                yield chunk

        self._coming.append(coming)
        try:
            yield counted()
        except OstlerError:
            if refusal is not None:  # the runner may have called it something else
                raise refusal from None
            raise
        finally:
            try:
                if coming.size:  # it is counted as one that comes until it is stored, so never not at all
                    await self._store.access.uploaded(self._clock.now()[:10], project, actor, coming.size)
            finally:
                self._coming.remove(coming)

    async def rooms(self, projects: Iterable[str]) -> Rooms:
        """How many waiting sessions of these projects may be given a runner."""
        holders: dict[str, tuple[Place, ...]] = {}
        left: dict[Place, int] = {}
        for project in set(projects):
            tenant = self._directory.tenant_of(project)
            rows = self._rows(tenant, project, None, ("live_sessions",))
            if rows:
                has = await self._under_way(tenant)
                holders[project] = tuple((row.scope, row.id) for row in rows)
                left |= {
                    (row.scope, row.id): (row.live_sessions or 0) - int(has[row.scope, row.id]["live_sessions"])
                    for row in rows
                }
        return Rooms(holders, left)

    async def held_back(self, project: str) -> str | None:
        """Which limit keeps waiting sessions of a project from a runner, in words; None if none does."""
        tenant = self._directory.tenant_of(project)
        rows = self._rows(tenant, project, None, ("live_sessions",))
        has = await self._under_way(tenant) if rows else None
        for row in rows:
            used = int(has[row.scope, row.id]["live_sessions"]) if has is not None else 0
            if row.live_sessions is not None and used >= row.live_sessions:
                limit = f"{row.scope} '{row.id}' has {used} live sessions, and its limit is {row.live_sessions}"
                return f"waiting until a session ends: the {limit}"
        return None

    async def usage(self, scope: Scope) -> UsageList:
        """What the tenant, project and actor of a scope have and have used; of the tenant only who may use all of it
        is told."""
        has, used = await self._under_way(scope.tenant), await self._used(scope.tenant)
        holders: list[tuple[LimitScope, str]] = [("project", scope.project), ("actor", scope.actor)]
        if scope.reach != "project":
            holders.insert(0, ("tenant", scope.tenant))
        items = tuple(
            Usage(
                scope=place[0],
                id=place[1],
                live_sessions=int(has[place]["live_sessions"]),
                queued_tasks=int(has[place]["queued_tasks"]),
                tokens_today=int(used[place]["tokens_per_day"]),
                cost_today=round(used[place]["cost_per_day"], 10),
                workspaces=int(has[place]["workspaces"]),
                uploaded_today=int(used[place]["upload_bytes_per_day"]),
                limits=shown(self._directory.limits.get(place) or LimitsRow(scope=place[0], id=place[1])),
            )
            for place in holders
        )
        return UsageList(items=items, resets_at=self._midnight())

    def _rows(self, tenant: str, project: str, actor: str | None, names: tuple[str, ...]) -> list[LimitsRow]:
        """The limits with one of these numbers that count for somebody."""
        if not (known := self._directory.limits):
            return []
        found = (known.get(place) for place in (("tenant", tenant), ("project", project), ("actor", actor or "")))
        return [row for row in found if row is not None and any(getattr(row, name) is not None for name in names)]

    async def _under_way(self, tenant: str) -> defaultdict[Place, dict[str, float]]:
        has: defaultdict[Place, dict[str, float]] = defaultdict(lambda: dict.fromkeys(_NUMBERS, 0))
        projects = self._directory.project_ids(tenant)
        for found in await self._store.sessions_under_way(projects, self._over):
            for place in (("tenant", tenant), ("project", found.project), ("actor", found.actor or "")):
                has[place]["live_sessions"] += found.live
                has[place]["queued_tasks"] += found.waiting
                has[place]["workspaces"] += found.workspaces
        return has

    async def _used(self, tenant: str) -> defaultdict[Place, dict[str, float]]:
        used: defaultdict[Place, dict[str, float]] = defaultdict(lambda: dict.fromkeys(_NUMBERS, 0))
        today, projects = self._clock.now()[:10], self._directory.project_ids(tenant)
        for turns in await self._store.used_on(today, projects):
            for place in (("tenant", tenant), ("project", turns.project), ("actor", turns.actor)):
                used[place]["tokens_per_day"] += turns.tokens
                used[place]["cost_per_day"] += turns.cost
        coming = [UploadedBy(each.project, each.actor, each.size) for each in self._coming if each.project in projects]
        for sent in [*await self._store.access.uploaded_on(today, projects), *coming]:
            for place in (("tenant", tenant), ("project", sent.project), ("actor", sent.actor)):
                used[place]["upload_bytes_per_day"] += sent.size
        return used

    def _full(self, rows: list[LimitsRow], name: str, has: dict[Place, dict[str, float]]) -> LimitReached | None:
        for row in rows:
            limit, count = getattr(row, name), has[row.scope, row.id][name]
            if limit is not None and count >= limit:
                return self._reached(row, name, count)
        return None

    def _midnight(self) -> str:
        today = datetime.fromisoformat(self._clock.now()).replace(hour=0, minute=0, second=0, microsecond=0)
        return (today + timedelta(days=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _reached(
        self, row: LimitsRow, name: str, used: float, *, seconds: int = _RETRY_SECONDS, frees_at: str | None = None
    ) -> LimitReached:
        hint = "End one, or try again when one has ended."
        if name == "workspaces":
            hint = "Delete a session, or try again when its workspace is removed."
        if frees_at is not None:
            left = datetime.fromisoformat(frees_at) - datetime.fromisoformat(self._clock.now())
            seconds, hint = math.ceil(left.total_seconds()), f"Counting begins anew at {frees_at}."
        elif name == "requests_per_second":
            hint = f"Try again in {seconds} s."
        value = getattr(row, name)
        about: dict[str, Any] = {"name": _camel(name), "scope": row.scope, "id": row.id, "value": value, "used": used}
        reached = {**about, "freesAt": frees_at} if frees_at is not None else about
        shown = {"scope": row.scope, "id": row.id, "value": value, "what": _WORDS[name], "used": used}
        return LimitReached(**shown, hint=hint, reached=reached, retry_after=seconds)


def shown(row: LimitsRow) -> Limits:
    """Limits as clients see them."""
    return msgspec.convert(row, Limits, from_attributes=True)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
