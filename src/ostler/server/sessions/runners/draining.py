"""Sessions are moved off a runner that drains: between turns at once, in the middle of one until a deadline."""

import asyncio
from itertools import count

from ostler.base.clock import Clock
from ostler.base.errors import OstlerError
from ostler.base.logs import Log
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.runners.leaving import leave, must_stay
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.work.snapshot_uploads import SnapshotUploads
from ostler.server.store.protocol import Store
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
_LOOK_SECONDS = 1.0
_AT_REST = frozenset({"running", "paused"})
_MOST_COUNTED = 1000
_AT_ONCE = 20
"""So many sessions are in memory for that at a time."""


async def still_to_leave(store: Store, runner_id: str) -> int:
    """How many sessions there are on a runner that could be elsewhere."""
    numbers = count()
    found = await store.unfinished_sessions(runner_id, TERMINAL, lambda *_: next(numbers) < _MOST_COUNTED)
    return sum(not must_stay(record) for record in found)


class Draining:
    """Empties the runners of this server that drain, one session after the other."""

    def __init__(self, sessions: Sessions, runners: Runners, snapshot_uploads: SnapshotUploads, clock: Clock) -> None:
        self._sessions = sessions
        self._runners = runners
        self._snapshot_uploads = snapshot_uploads
        self._clock = clock
        self._draining: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """Until when, and what sees to it."""

    def changed(self, about: RunnerAbout, until: str | None) -> None:
        """A runner drains, or does not any longer (None): what has left has left, and the rest stays."""
        before, draining = self._draining.get(about.id, (None, None))
        if draining is not None and before == until and not draining.done():
            return
        if draining is not None:
            del self._draining[about.id]
            draining.cancel()
        if until is not None:
            self._draining[about.id] = until, self._sessions.background.spawn(self._drain(about, until))
        for live in self._sessions.registry.live_on(about.id) if until is None else ():
            live.core.hold_prompts(holds=False)
            live.core.background.spawn(live.turns.go_on())

    async def _drain(self, about: RunnerAbout, until: str) -> None:
        stay: set[str] = set()
        while True:
            if self._runners.is_linked(about.id):
                try:
                    await self._move_some(about, stay, is_overdue=self._clock.now() >= until)
                except OstlerError as error:  # it is tried again
                    log.warning("runner.not_drained", runner_id=about.id, reason=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _move_some(self, about: RunnerAbout, stay: set[str], *, is_overdue: bool) -> None:
        """`stay` are those that were found to be bound to this runner."""
        numbers = count()
        with Leases() as leases:
            found = await self._sessions.registry.load_for(
                leases, about.id, TERMINAL, lambda id_, _: id_ not in stay and next(numbers) < _AT_ONCE
            )
            stay.update(live.core.id for live in found if must_stay(live.core.record))
            for live in found:
                if live.core.id not in stay and not live.core.is_ending:
                    await self._move(live, about, is_overdue=is_overdue)

    async def _move(self, live: LiveSession, about: RunnerAbout, *, is_overdue: bool) -> None:
        if live.core.state.turn is not None:
            if is_overdue:
                await _cut_off(live)
        elif live.core.state.status in _AT_REST:
            await live.chores.do()
            await live.chores.alone(lambda: self._pack_up(live, about))

    async def _pack_up(self, live: LiveSession, about: RunnerAbout) -> None:
        """No turn can begin meanwhile; the session leaves only when all of it is uploaded."""
        session = live.core
        state = session.state
        if state.turn is not None or state.status not in _AT_REST or session.record.runner != about.id:
            return
        if state.status == "paused" and live.agent.connection is not None:
            await live.agent.connection.thaw()  # or it could not end by itself
        await live.agent.disconnect(force=False)
        workspace = state.workspace_id
        if state.turn_count:
            await session.note([drafts.line(f"Packing up, since the runner '{about.name}' drains.")])
            await self._snapshot_uploads.upload(session, whole=True)
        session.hold_prompts(holds=False)
        await leave(self._sessions, live, f"the runner '{about.name}' drains")
        workspaces = self._runners.workspaces(about.id)
        if workspace is not None:
            await workspaces.destroy(workspace)
        await workspaces.forget(session.id)


async def _cut_off(live: LiveSession) -> None:
    """End a turn that had its time; prompts that wait are not begun here any more, but where the session goes."""
    session = live.core
    session.hold_prompts(holds=True)
    if session.state.status == "running":
        await live.turns.interrupt()
    elif session.state.status == "paused" and live.agent.connection is not None:
        await live.agent.connection.thaw()  # or it could not hear that it is over
        await live.agent.connection.interrupt()
