"""What becomes of sessions when runners come and go: they are gone on with, wait for one, or are placed on one."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress

import msgspec

from ostler.base.errors import OstlerError, SessionNotFound, StoreUnavailable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.logs import Log
from ostler.link.protocol import Runner
from ostler.link.workspaces import Workspaces
from ostler.server.runners.placement import Slots, choose, has_room, takes_sessions
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.runners.draining import Draining
from ostler.server.sessions.runners.lost_runners import LostRunners
from ostler.server.sessions.runners.making_room import MakingRoom
from ostler.server.sessions.runners.recovery import Recovery
from ostler.server.sessions.runners.takeover import Takeover
from ostler.server.sessions.runners.waiting import WaitingSession
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.store.errors import StaleOwner
from ostler.server.store.peers import WAITING, Peers
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
_RETRY_SECONDS = 1.0
_LOOK_SECONDS = 5.0
_AT_ONCE = 32
_REMOVED = "The runner '{}' was removed. Its agents are stopped there after a while, and nothing more is heard of them."
_LEFT = "The runner '{}' has left for good."
_LOST = "The link to the runner '{}' was lost. Its agents work on there; what they do is shown when it is back."


class Fleet:
    """What follows for sessions on what becomes of runners; many of the next steps are here."""

    def __init__(
        self,
        sessions: Sessions,
        runners: Runners,
        lost_runners: LostRunners,
        draining: Draining,
        takeover: Takeover,
        peers: Peers | None = None,
    ) -> None:
        self._lost_runners = lost_runners
        self._draining = draining
        self._takeover = takeover
        self._sessions = sessions
        self._peers = peers
        self._runners = runners
        self._boots: dict[str, str] = {}
        """Which start of its machine a runner was linked from last."""
        self._placing: asyncio.Task[None] | None = None
        self._again = False
        self._is_new = False
        """Whether a session waits that other servers were not told of."""
        self._must_look = peers is not None
        """Whether sessions may wait at other servers that we do not know of."""
        if peers is not None:
            sessions.background.spawn(self._look_now_and_then())

    async def linked(self, about: RunnerAbout, runner: Runner, workspaces: Workspaces) -> Callable[[], Awaitable[None]]:
        """Remove what no session of a runner knows; what goes on with its sessions comes back."""
        store = self._sessions.store
        if about.id != self._runners.home:
            await self._takeover.claim_all_on(about.id)
        else:
            await self._takeover.claim_home(about.id)
        needed = await store.session_ids(about.id) | await store.folders_in_use(about.id)
        await workspaces.keep_only(await store.workspaces_in_use(about.id), needed)
        recovery = Recovery(
            store,
            self._sessions.registry,
            about.id,
            runner,
            was_cut=self._was_cut(about),
            continuing=self._continuing(about),
        )
        await recovery.prepare()
        self._boots[about.id] = about.boot
        self._lost_runners.back(about.id)
        return recovery.run

    def _continuing(self, about: RunnerAbout) -> set[str]:
        """The agents of a runner whose next process goes on with a turn."""
        known = self._runners.get(about.id)
        return {agent.id for agent in known.agents.values() if agent.continues_turns} if known is not None else set()

    def _was_cut(self, about: RunnerAbout) -> bool:
        """Whether the machine of a runner stopped since somebody had its sessions."""
        if about.id == self._runners.home:
            return self._sessions.store.was_cut
        return self._boots.get(about.id, about.boot) != about.boot

    async def link_lost(self, about: RunnerAbout) -> None:
        """Nobody can reach a runner: what is under way there stays so until it is back."""
        known = self._runners.get(about.id)
        is_removed, has_left = (known.is_removed, known.has_left) if known is not None else (False, False)
        line = (_LEFT if has_left else _REMOVED if is_removed else _LOST).format(about.name)
        await asyncio.gather(*(self._lose_runner(live, line) for live in self._sessions.registry.live_on(about.id)))
        if has_left:
            self._lost_runners.gone(about, f"the runner '{about.name}' left for good")
        elif is_removed:
            self._lost_runners.removed(about)
        else:
            self._lost_runners.lost(about)

    async def _lose_runner(self, live: LiveSession, line: str) -> None:
        session = live.core
        session.hold()
        try:
            was_lost = live.agent.was_lost
            await live.agent.lose_runner()
            if live.agent.was_lost and not was_lost:
                session.background.spawn(_tell_of_loss(session, line))
        finally:
            session.release()

    def at_work(self, runner_id: str) -> Counter[str]:
        """How many sessions are at work on a runner, by share."""
        return Counter(live.core.record.share for live in self._sessions.registry.live_on(runner_id) if live.is_at_work)

    def drain_changed(self, about: RunnerAbout, until: str | None) -> None:
        """Sessions leave a runner that drains."""
        self._draining.changed(about, until)

    # Placing those that wait

    def room(self) -> None:
        """There may be room for a session that waits."""
        if len(self._sessions.waiting) or self._must_look:
            self._place_soon()

    def one_more(self) -> None:
        """A session of this server waits for a runner."""
        self._is_new = True
        self.room()

    def look(self) -> None:
        """A session may wait for a runner at another server."""
        self._must_look = True
        self._place_soon()

    async def _look_now_and_then(self) -> None:
        """A bell may be lost."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.look()

    def _place_soon(self) -> None:
        self._again = True
        if self._placing is None or self._placing.done():
            self._placing = self._sessions.background.spawn(self._place_all())

    async def _place_all(self) -> None:
        while self._again:
            self._again = False
            try:
                await self._place_some()
            except OstlerError as error:  # whatever it is about, the others wait for us
                log.error("fleet.not_placed", reason=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
                self._again = True

    async def _place_some(self) -> None:
        if self._must_look and has_room(self._runners):
            await self._find_offers()
        await self._place_in_turn(self._at_work())
        if self._peers is not None and self._is_new and self._sessions.waiting.has_own:
            self._peers.ring(WAITING)
        self._is_new = False

    async def _place_in_turn(self, at_work: Counter[str]) -> None:
        """Some at a time: most of a placement is to wait for the runner and the disk."""
        group: list[tuple[WaitingSession, RunnerAbout]] = []
        slots, making_room = Slots(self._runners), MakingRoom(self._sessions.registry, self._runners)
        rooms = await self._sessions.quotas.rooms(each.project for each in self._sessions.waiting.everybody())
        for waiting in self._sessions.waiting.in_turn(at_work):
            about = choose(self._runners, waiting.agent, waiting.needs, waiting.tenant, slots=slots)
            if about is None:
                making_room.make_room_for(waiting)
                continue
            if not rooms.take(waiting.project):
                continue
            at_work[waiting.share] += 1
            slots.take(about.id)
            group.append((waiting, about))
            if len(group) == _AT_ONCE:
                await self._place_group(group, at_work)
                group, slots = [], Slots(self._runners)
        await self._place_group(group, at_work)

    async def _place_group(self, group: list[tuple[WaitingSession, RunnerAbout]], at_work: Counter[str]) -> None:
        placing = [self._place(waiting, about, self._reserved(about)) for waiting, about in group]
        placed = await asyncio.gather(*placing, return_exceptions=True)
        for (waiting, about), outcome in zip(group, placed, strict=True):
            if outcome is not True:
                at_work[waiting.share] -= 1
                is_over = waiting.id not in self._sessions.waiting  # the slot that was meant for it is free
                self._again |= is_over or not takes_sessions(self._runners, about.id)
        for outcome in placed:
            if isinstance(outcome, BaseException):
                raise outcome

    def _reserved(self, about: RunnerAbout) -> ExitStack:
        slot = ExitStack()
        slot.enter_context(self._runners.reserved(about.id))
        return slot

    async def _find_offers(self) -> None:
        if self._peers is not None:
            self._must_look = False
            await self._runners.refresh()
            self._sessions.waiting.offer(await self._peers.links.offers(TERMINAL))

    def _at_work(self) -> Counter[str]:
        """How many sessions are at work by share, at any server."""
        counted = self._sessions.registry.at_work_by_share()
        for known in self._runners.known:
            if known.elsewhere is not None and not known.is_lost_elsewhere:
                counted.update(known.elsewhere.load.at_work)
        return counted

    async def _place(self, waiting: WaitingSession, about: RunnerAbout, slot: ExitStack) -> bool:
        """Whether it has the runner now; one that cannot be started there is over. The slot was kept for it."""
        with slot, Leases():
            if waiting.epoch is not None and not await self._takeover.take_waiting(waiting):
                self._sessions.waiting.remove(waiting.id)
                return False
            try:
                live = await self._sessions.registry.live(waiting.project, waiting.id)
            except (SessionNotFound, OwnedElsewhere):
                self._sessions.waiting.remove(waiting.id)
                return False
            if waiting.epoch is not None:
                self._sessions.waiting.add(live.core.record)
            if live.core.state.status != "queued" or live.core.is_ending or live.core.record.runner is not None:
                self._sessions.waiting.remove(waiting.id)
                return False
            return await self._place_live(live, about)

    async def _place_live(self, live: LiveSession, about: RunnerAbout) -> bool:
        session = live.core
        spec = msgspec.structs.replace(session.record.spec, runner_name=about.name)
        try:
            spec = await self._sessions.creation.startable(about.id, session.id, session.record.agent, spec)
        except RunnerUnavailable:
            return False
        except OstlerError as error:
            self._sessions.waiting.remove(session.id)
            await session.note(drafts.failed(error))
            return False
        try:
            await self._sessions.creation.place(live, about, spec)
        except (StaleOwner, SessionNotFound):  # another server took it meanwhile, or somebody deleted it
            self._sessions.waiting.remove(session.id)
            return False
        except RunnerUnavailable:  # it went to another server meanwhile; the session waits on
            return False
        self._sessions.waiting.placed(session.id)
        return True


async def _tell_of_loss(session: SessionCore, line: str) -> None:
    """Say so in the log, now or not at all: when the store is back, the session may be over."""
    if not session.state.ended:
        with suppress(StoreUnavailable, SessionNotFound):
            await session.log.append([drafts.on_runner(line, "lost")])
