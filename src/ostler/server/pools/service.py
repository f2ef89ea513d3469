"""Pools of runners that the server makes itself: enough for the sessions that wait, some ahead, and no more."""

import asyncio
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from ostler.base.errors import StoreUnavailable
from ostler.base.errors.runners import RunnerNotFound
from ostler.base.logs import Log
from ostler.base.retry import delay_after
from ostler.base.setting_groups.tables import PoolSetting
from ostler.base.tasks import Background
from ostler.link.provisioner import Host, NotMade, Unreachable
from ostler.server.pools.demand import Load, can_spare_one, could_have, missing
from ostler.server.pools.emptying import could_leave, open_sessions
from ostler.server.pools.hosts import LINK_SECONDS, Hosts
from ostler.server.pools.notices import Notices
from ostler.server.runners.known import RunnerStatus
from ostler.server.runners.placement import choose
from ostler.server.runners.registry import Runners
from ostler.server.sessions.runners.waiting import WaitingSession
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import ManagedRunner
from ostler.wire.runners import Managed

log = Log(__name__)
_LOOK_SECONDS = 3.0
_DRAIN_SECONDS = 15.0
"""So long it takes at most until every server knows that a runner drains."""
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 120.0
_STOP_SECONDS = 2.0


class Pools:
    """Looks again and again at sessions that wait, at rows and at hosts, and does what is missing."""

    def __init__(self, pools: Mapping[str, PoolSetting], hosts: Hosts, sessions: Sessions, runners: Runners) -> None:
        self._pools = pools
        self._hosts = hosts
        self._sessions = sessions
        self._runners = runners
        self._notices = Notices(sessions)
        self._background = Background(log, "pools.failed")
        self._woken = asyncio.Event()
        self._making: set[str] = set()
        self._stopped: set[str] = set()
        self._unlinked_since: dict[str, float] = {}
        self._idle_since: dict[str, float] = {}
        self._draining_since: dict[str, float] = {}
        self._failures: dict[str, tuple[int, float]] = {}
        """How often a pool failed in a row, and when it may be tried again."""

    def start(self) -> None:
        """Look after all hosts from now on."""
        self._sessions.waiting.heard.append(self._woken.set)
        self._background.spawn(self._serve())

    async def close(self) -> None:
        """Look no more; hosts and their runners stay, for the next server."""
        self._sessions.waiting.heard.remove(self._woken.set)
        await self._background.aclose(seconds=_STOP_SECONDS)

    async def _serve(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._look()
            except Unreachable as error:
                await self._unreachable(str(error))
            except StoreUnavailable as error:
                log.warning("pools.store_away", reason=str(error))
            except Exception as error:  # the edge of a background task: the next look may go well
                log.error("pools.crashed", exc_info=error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._woken.wait()

    async def _unreachable(self, reason: str) -> None:
        """Nothing is known, so nothing is made, and nothing is removed."""
        log.warning("pools.unreachable", reason=reason)
        for known in self._runners.known:
            if known.managed is not None:
                known.managed = Managed(pool=known.managed.pool, state="unreachable")
        for name in self._pools:
            await self._notices.tell(self._waiting_for(name), f"the pool '{name}' cannot be reached ({reason})")

    async def _look(self) -> None:
        await self._runners.refresh()
        found, rows, gone = await self._hosts.look()
        self._stopped = {host.id for host in found.values() if host.state == "stopped"}
        keys = await self._hosts.keys()
        left: list[ManagedRunner] = []
        for row in rows.values():
            if row.id not in self._making:
                row = await self._hosts.registered(row, keys)  # noqa: PLW2901
                if not await self._mended(row, found.get(row.id), row.id in gone, keys):
                    continue
            left.append(row)
        self._remember_only({row.id for row in left})
        self._show(left, found)
        for name in {*self._pools, *(row.pool for row in left)}:
            await self._fill(name, [row for row in left if row.pool == name])
        self._notices.forget_others({each.id for each in self._sessions.waiting.all()})

    # One host

    async def _mended(self, row: ManagedRunner, host: Host | None, is_gone: bool, keys: Mapping[str, str]) -> bool:
        """Do what a host needs; whether it is one that sessions can be placed on, now or soon."""
        if row.state == "making" and host is not None and host.state == "running":
            row = await self._hosts.made(row)
        if row.state != "made" or (row.runner is not None and row.id not in keys):  # its key was revoked
            await self._hosts.remove(row)
            return False
        if is_gone:
            await self._hosts.forget(row)
            return False
        if self._is_linked(row):
            self._unlinked_since.pop(row.id, None)
            self._failures.pop(row.pool, None)
            self._hosts.linked(row)
            return True
        since = self._unlinked_since.setdefault(row.id, time.monotonic())
        is_stopped = host is not None and host.state == "stopped"
        if row.runner is None and (is_stopped or time.monotonic() - since > LINK_SECONDS):
            words = await self._hosts.last_words(row)
            await self._failed(row, f"its runner did not register: {words or 'it wrote nothing'}")
            return False
        if is_stopped and (problem := await self._hosts.start(row)) is not None:
            text = f"'{row.id}' of the pool '{row.pool}' is stopped and could not be started ({problem})"
            await self._notices.tell(self._waiting_for(row.pool), f"{text}; it is tried again")
        return True

    def _status(self, row: ManagedRunner) -> RunnerStatus | None:
        """Of its runner, whichever server that is linked to."""
        with suppress(RunnerNotFound):
            return self._runners.describe(row.runner) if row.runner is not None else None
        return None

    def _is_linked(self, row: ManagedRunner) -> bool:
        status = self._status(row)
        return status is not None and status.linked

    def _remember_only(self, ids: set[str]) -> None:
        for times in (self._unlinked_since, self._idle_since, self._draining_since):
            for host_id in times.keys() - ids:
                del times[host_id]

    def _show(self, rows: Iterable[ManagedRunner], found: Mapping[str, Host]) -> None:
        """Let everybody see which runners are managed."""
        for row in rows:
            with suppress(RunnerNotFound):
                state = found[row.id].state if row.id in found else "running"
                self._runners.find_runner(row.runner or "").managed = Managed(pool=row.pool, state=state)

    async def _failed(self, row: ManagedRunner, reason: str) -> None:
        count = self._failures.get(row.pool, (0, 0.0))[0] + 1
        pause = delay_after(count, _FIRST_PAUSE, _LONGEST_PAUSE, chance=lambda: 1.0)
        self._failures[row.pool] = count, time.monotonic() + pause
        log.warning("pool.failed", pool=row.pool, host=row.id, failures=count, reason=reason)
        text = f"the pool '{row.pool}' could not make one ({reason}); it is tried again"
        await self._notices.tell(self._waiting_for(row.pool), text)
        await self._hosts.remove(row)

    # One pool

    def _waiting_for(self, name: str) -> list[WaitingSession]:
        """The sessions that no runner can take now, and that the pool is the first to fit."""
        waiting = [
            each
            for each in self._sessions.waiting.all()
            if choose(self._runners, each.agent, each.needs, each.tenant) is None
        ]
        return [each for each in waiting if self._pool_of(each) == name]

    def _pool_of(self, waiting: WaitingSession) -> str | None:
        return next(
            (name for name, pool in self._pools.items() if could_have(pool, waiting.needs, waiting.tenant)), None
        )

    async def _fill(self, name: str, rows: list[ManagedRunner]) -> None:
        pool = self._pools.get(name)
        waiting = self._waiting_for(name)
        load = Load(len(waiting), sum(self._free(row, pool) for row in rows) if pool is not None else 0)
        for row in rows:
            may_go = pool is None or can_spare_one(pool, load) or self._is_draining(row)
            if not may_go or row.id in self._making:
                self._idle_since.pop(row.id, None)
            elif await self._rested(row, pool):
                load = load._replace(free=load.free - (self._free(row, pool) if pool is not None else 0))
                await self._hosts.remove(row)
        if pool is not None:
            await self._make_missing(name, pool, load, waiting)

    def _free(self, row: ManagedRunner, pool: PoolSetting) -> int:
        """How many sessions a runner can take, or will be able to."""
        if self._is_draining(row):
            return 0
        if (status := self._status(row)) is not None and status.linked:
            return max(0, pool.slots - status.used)
        since = self._unlinked_since.get(row.id, time.monotonic())
        will_be = row.id in self._stopped or time.monotonic() - since < LINK_SECONDS
        return pool.slots if will_be else 0  # a stopped one is started again, and no other is made in its stead

    def _is_draining(self, row: ManagedRunner) -> bool:
        status = self._status(row)
        return row.id in self._draining_since or (status is not None and status.drain_until is not None)

    async def _rested(self, row: ManagedRunner, pool: PoolSetting | None) -> bool:
        """Whether a runner had nothing to do for long enough, and is empty since it drains: first this, then that.

        Sessions that sleep there go elsewhere by the drain, if there is room; else it stays for them. One of a pool
        that is no more need not have rested, and its sessions go as soon as they can.
        """
        records = await open_sessions(self._sessions.store, row.runner) if row.runner is not None else []
        status = self._status(row)
        is_needed = (status is not None and status.used > 0) or not could_leave(
            self._runners, row.runner or "", records
        )
        if is_needed and pool is not None:
            self._idle_since.pop(row.id, None)
            if self._draining_since.pop(row.id, None) is not None:
                await self._hosts.drain(row, False)
            return False
        now = time.monotonic()
        if now - self._idle_since.setdefault(row.id, now) < (pool.idle_seconds if pool is not None else 0.0):
            return False
        if row.id not in self._draining_since:
            self._draining_since[row.id] = time.monotonic()
            await self._hosts.drain(row, True)
            return row.runner is None
        is_known = now - self._draining_since[row.id] >= (
            0.0 if self._runners.is_linked(row.runner) else _DRAIN_SECONDS
        )
        return is_known and not is_needed and not records

    async def _make_missing(self, name: str, pool: PoolSetting, load: Load, waiting: list[WaitingSession]) -> None:
        count, not_before = missing(pool, load), self._failures.get(name, (0, 0.0))[1]
        if time.monotonic() < not_before:
            return  # they were told why
        for _ in range(count):
            if not await self._begin(name, pool):
                text = f"the pool '{name}' has as many as it may have ({pool.max_runners})"
                await self._notices.tell(waiting, text)
                return
        if waiting:
            await self._notices.tell(waiting, f"one is being made in the pool '{name}'")

    async def _begin(self, name: str, pool: PoolSetting) -> bool:
        row = self._hosts.row(f"{name}-{secrets.token_hex(4)}", name)
        if not await self._sessions.store.managed_runners.add(row, pool.max_runners):
            return False
        self._making.add(row.id)
        self._background.spawn(self._make(row, pool), host=row.id)
        return True

    async def _make(self, row: ManagedRunner, pool: PoolSetting) -> None:
        try:
            await self._hosts.make(row, pool)
        except NotMade as error:
            await self._failed(row, str(error))
        finally:
            self._making.discard(row.id)
            self._woken.set()
