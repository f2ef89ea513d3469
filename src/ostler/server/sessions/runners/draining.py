"""Sessions are moved off a runner that drains: between turns at once, in the middle of one until a deadline."""

import asyncio
from itertools import count

from ostler.base.errors import OstlerError
from ostler.base.logs import Log
from ostler.server.runners.registry import Runners
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.state import TERMINAL
from ostler.server.sessions.runners.leaving import leave, must_stay
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.work.snapshot_uploads import SnapshotUploads
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
_LOOK_SECONDS = 1.0
_AT_ONCE = 20
"""So many sessions are in memory for that at a time."""


class Draining:
    """Empties the runners of this server that drain, one session after the other."""

    def __init__(
        self, sessions: Sessions, runners: Runners, snapshot_uploads: SnapshotUploads, deadline: float
    ) -> None:
        """`deadline` is how long a turn under way may go on, in seconds, where nobody says anything else."""
        self._sessions = sessions
        self._runners = runners
        self._snapshot_uploads = snapshot_uploads
        self._deadline = deadline
        self._deadlines: dict[str, float] = {}
        self._draining: dict[str, asyncio.Task[None]] = {}

    def allow(self, runner_id: str, seconds: float | None) -> None:
        """How long turns under way on a runner may go on when it drains; None for as long as usual."""
        if seconds is not None:
            self._deadlines[runner_id] = seconds
            if (known := self._draining.pop(runner_id, None)) is not None:
                known.cancel()

    def changed(self, about: RunnerAbout, *, drains: bool) -> None:
        """A runner drains, or does not any longer: what has left has left, and the rest stays."""
        known = self._draining.get(about.id)
        if not drains:
            self._deadlines.pop(about.id, None)
            if known is not None:
                self._draining.pop(about.id).cancel()
        elif known is None or known.done():
            self._draining[about.id] = self._sessions.background.spawn(self._drain(about))

    async def _drain(self, about: RunnerAbout) -> None:
        now = asyncio.get_running_loop().time
        until = now() + self._deadlines.get(about.id, self._deadline)
        while True:
            if self._runners.is_linked(about.id):
                try:
                    await self._move_some(about, is_overdue=now() >= until)
                except OstlerError as error:  # it is tried again
                    log.warning("runner.not_drained", runner_id=about.id, reason=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _move_some(self, about: RunnerAbout, *, is_overdue: bool) -> None:
        numbers = count()
        with Leases() as leases:
            found = await self._sessions.load_for(leases, about.id, TERMINAL, lambda *_: next(numbers) < _AT_ONCE)
            for live in found:
                if not must_stay(live) and not live.is_ending:
                    await self._move(live, about, is_overdue=is_overdue)

    async def _move(self, live: LiveSession, about: RunnerAbout, *, is_overdue: bool) -> None:
        if live.state.turn is not None:
            if is_overdue and live.state.status == "running":
                await live.turns.interrupt()
            return
        if live.state.status == "running":
            await live.chores.do()
            await live.chores.alone(lambda: self._pack_up(live, about))

    async def _pack_up(self, live: LiveSession, about: RunnerAbout) -> None:
        """No turn can begin meanwhile; the session leaves only when all of it is uploaded."""
        state = live.state
        if state.turn is not None or state.status != "running" or live.record.runner != about.id:
            return
        await live.agent.disconnect(force=False)
        workspace = state.workspace_id
        if state.turn_count:
            await self._snapshot_uploads.upload(live)
        await leave(self._sessions, live, f"the runner '{about.name}' drains")
        workspaces = self._runners.workspaces(about.id)
        if workspace is not None:
            await workspaces.destroy(workspace)
        await workspaces.forget(live.id)
