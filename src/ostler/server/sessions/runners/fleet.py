"""What becomes of sessions when runners come and go: they are gone on with, wait for one, or are placed on one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from ostler.base.errors import OstlerError, SessionNotFound, StoreUnavailable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.logs import Log
from ostler.link.protocol import Runner
from ostler.link.workspaces import Workspaces
from ostler.server.runners.placement import choose
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.runners.recovery import Recovery
from ostler.server.sessions.runners.waiting import WaitingSession
from ostler.server.sessions.service import Sessions
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
_RETRY_SECONDS = 1.0
_LOST = "The link to the runner '{}' was lost. Its agents work on there; what they do is shown when it is back."


class Fleet:
    """Implements runners.registry.Listener for the sessions of this server."""

    def __init__(self, sessions: Sessions, runners: Runners) -> None:
        self._sessions = sessions
        self._runners = runners
        self._boots: dict[str, str] = {}
        """Which start of its machine a runner was linked from last."""
        self._placing: asyncio.Task[None] | None = None
        self._again = False
        sessions.waiting.changed = self.room

    async def recovery(
        self, about: RunnerAbout, runner: Runner, workspaces: Workspaces
    ) -> Callable[[], Awaitable[None]]:
        """Remove what no session of a runner knows; what goes on with its sessions comes back."""
        store = self._sessions.store
        if about.id != self._runners.home:
            await self._sessions.claim_all_on(about.id)
        await workspaces.keep_only(await store.workspaces_in_use(about.id), await store.session_ids(about.id))
        recovery = Recovery(self._sessions, about.id, runner, was_cut=self._was_cut(about))
        await recovery.prepare()
        self._boots[about.id] = about.boot
        return recovery.run

    def _was_cut(self, about: RunnerAbout) -> bool:
        """Whether the machine of a runner stopped since somebody had its sessions."""
        if about.id == self._runners.home:
            return self._sessions.store.was_cut
        return self._boots.get(about.id, about.boot) != about.boot

    async def link_lost(self, about: RunnerAbout) -> None:
        """Nobody can reach a runner: what is under way there stays so until it is back."""
        await asyncio.gather(*map(self._lose_runner, self._sessions.live_on(about.id)))

    async def _lose_runner(self, live: LiveSession) -> None:
        live.hold()
        try:
            was_lost = live.agent.was_lost
            await live.agent.lose_runner()
            if live.agent.was_lost and not was_lost:
                live.background.spawn(_tell_of_loss(live))
        finally:
            live.release()

    def used(self, runner_id: str) -> int:
        """How many sessions are at work on a runner."""
        return sum(live.is_at_work for live in self._sessions.live_on(runner_id))

    # Placing those that wait

    def room(self) -> None:
        """There may be room for a session that waits."""
        if not len(self._sessions.waiting):
            return
        self._again = True
        if self._placing is None or self._placing.done():
            self._placing = self._sessions.background.spawn(self._place_all())

    async def _place_all(self) -> None:
        while self._again:
            self._again = False
            try:
                await self._place_some()
            except StoreUnavailable as error:
                log.error("fleet.not_placed", reason=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
                self._again = True

    async def _place_some(self) -> None:
        at_work = self._sessions.at_work_by_project()
        for waiting in self._sessions.waiting.in_turn(at_work):
            if (about := choose(self._runners, waiting.agent, waiting.needs)) is not None:
                at_work[waiting.project] += await self._place(waiting, about)

    async def _place(self, waiting: WaitingSession, about: RunnerAbout) -> bool:
        """Whether it has the runner now; one that cannot be started there is over."""
        with Leases():
            try:
                live = await self._sessions.live(waiting.project, waiting.id)
            except (SessionNotFound, OwnedElsewhere):
                self._sessions.waiting.remove(waiting.id)
                return False
            if live.state.status != "queued" or live.is_ending or live.record.runner is not None:
                self._sessions.waiting.remove(waiting.id)
                return False
            return await self._place_live(live, about)

    async def _place_live(self, live: LiveSession, about: RunnerAbout) -> bool:
        spec = msgspec.structs.replace(live.record.spec, runner_name=about.name)
        try:
            spec = await self._sessions.startable(about.id, live.id, live.record.agent, spec)
        except RunnerUnavailable:
            return False
        except OstlerError as error:
            self._sessions.waiting.remove(live.id)
            await live.note(drafts.failed(error))
            return False
        await self._sessions.place(live, about, spec)
        self._sessions.waiting.remove(live.id)
        return True


async def _tell_of_loss(live: LiveSession) -> None:
    """Say so in the log, now or not at all: when the store is back, the session may be over."""
    if not live.state.ended:
        with suppress(StoreUnavailable, SessionNotFound):
            await live.log.append([drafts.line(_LOST.format(live.record.runner_name))])
