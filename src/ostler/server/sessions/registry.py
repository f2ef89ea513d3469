"""The sessions that are in use: one live object for each."""

import asyncio
import functools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Self

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import SessionNotFound
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.logs import Log
from ostler.base.settings import Settings
from ostler.base.tasks import Background
from ostler.server.runners.registry import Runners
from ostler.server.runners.steps import NextSteps
from ostler.server.sessions.attachments import Attachments
from ostler.server.sessions.elsewhere import Elsewhere, Following
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.feed import Tail
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.session_log import NO_LOG_STEPS, LogSteps, ProjectFeeds, SessionLog
from ostler.server.sessions.log.state import SessionState, state_in
from ostler.server.sessions.ownership import Ownership
from ostler.server.sessions.secrets import redaction_of
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.store.peers import Bell
from ostler.server.store.records import Append, NewSession, SessionRecord
from ostler.wire.events import TurnEnded
from ostler.wire.sessions import ProcessInfo

log = Log(__name__)


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows each session; 0 is no limit."""

    buffer_bytes: int
    max_log_bytes: int = 0
    idle_seconds: float = 0.0
    wrap_up_seconds: float = 0.0
    goes_on_after_limit: bool = True

    @classmethod
    def reading(cls, settings: Settings) -> Self:
        """As the settings say."""
        return cls(
            buffer_bytes=settings.stream_buffer_bytes,
            max_log_bytes=settings.max_log_bytes,
            idle_seconds=settings.idle_timeout_seconds,
            wrap_up_seconds=settings.wrap_up_seconds,
            goes_on_after_limit=settings.go_on_after_limit,
        )


class Registry:
    """Finds sessions, and has those that are in use."""

    def __init__(
        self,
        *,
        reads: Reads,
        ownership: Ownership,
        runners: Runners,
        steps: NextSteps,
        work: Pipeline,
        clock: Clock,
        attachments: Attachments,
        limits: SessionLimits,
        last_position: int,
    ) -> None:
        self.background = Background(log, "sessions.task_failed")
        peers = ownership.peers
        self._project_feeds = ProjectFeeds(
            steps.when_complete,
            steps.when_written,
            last=last_position,
            limit_bytes=limits.buffer_bytes,
            ring=peers.ring if peers is not None else None,
        )
        self._reads = reads
        self._store = reads.store
        self._ownership = ownership
        self._runners = runners
        self._steps = steps
        self._work = work
        self._clock = clock
        self._attachments = attachments
        self._limits = limits
        self._opening = asyncio.Lock()
        self._live: dict[str, LiveSession] = {}
        self._unused: set[str] = set()
        self._is_leaving = False
        self._elsewhere = Elsewhere(reads, self._project_feeds, self.background, self._lose_others)
        if peers is not None:
            self._elsewhere.start()
            peers.listen(self._heard)

    def _heard(self, bell: Bell | None) -> None:
        if bell is None or not bell.session:
            self._steps.when_offered()
        if bell is None or bell.session:
            live = self._live.get(bell.session) if bell is not None else None
            if bell is not None and live is not None and bell.epoch > live.core.record.epoch:
                self.lose(bell.session)
            self._elsewhere.heard(bell)

    async def _lose_others(self) -> None:
        """Let go of what another server has, or has deleted, while its bell was not heard here."""
        if self._live:
            for session_id in await self._store.logs.had_by_others(self._ownership.owner, list(self._live)):
                self.lose(session_id)

    def lose(self, session_id: str) -> None:
        """Another server has a session since; what is under way here ends, and readers begin anew."""
        if (live := self._live.pop(session_id, None)) is not None:
            log.warning("session.lost", session_id=session_id)
            live.lifecycle.leave()
            live.core.log.feed.close()

    async def find(self, project: str, id_or_key: str) -> SessionRecord:
        """The row of a session, by id or key."""
        record = await self._store.find_session(project, id_or_key)
        if record is None:
            raise SessionNotFound(session=id_or_key)
        return record

    async def live(self, project: str, id_or_key: str) -> LiveSession:
        """The one live object of a session; it is there as long as the `Leases` of whoever asks."""
        leases = Leases.current()
        if (known := self._live.get(id_or_key)) is not None and known.core.record.project == project:
            leases.hold(known.core)
            return known
        async with self.steady():
            record = await self.find(project, id_or_key)
            if not self._ownership.is_ours(record) and not await self._ownership.take_over_ended(record):
                raise OwnedElsewhere(session=record.id, what=f"session '{record.id}'", owner=record.owner)
            record = record if self._ownership.is_ours(record) else await self.find(project, id_or_key)
            live = self._live.get(record.id) or self.load(record)
            leases.hold(live.core)
            return live

    async def followed(self, project: str, id_or_key: str) -> "SessionCore | Following":
        """A session whose log is read along, whoever has it; it is there as long as the `Leases` of whoever asks."""
        try:
            return (await self.live(project, id_or_key)).core
        except OwnedElsewhere:
            found = self._elsewhere.follow(await self.find(project, id_or_key))
            Leases.current().hold(found)
            return found

    @asynccontextmanager
    async def steady(self) -> AsyncIterator[None]:
        """One at a time: what is not live stays so, and what is live too, or a row that was read would be old."""
        async with self._opening:
            try:
                yield
            finally:
                self._drop_unused()

    def _is_unused(self, session_id: str) -> None:
        self._unused.add(session_id)
        if not self._opening.locked():
            self._drop_unused()

    def _drop_unused(self) -> None:
        for session_id in self._unused:
            if (live := self._live.get(session_id)) is not None and not live.core.is_used:
                del self._live[session_id]
        self._unused.clear()

    def load(self, record: SessionRecord) -> LiveSession:
        """Begin to use a session that is not live yet."""
        state = state_in(record.state)
        live = LiveSession(
            record=record,
            open_log=functools.partial(
                self.log_of, record, record.epoch, state, record.last_sequence, record.updated_at
            ),
            lost=functools.partial(self.lose, record.id),
            runners=self._runners,
            work=self._work,
            reads=self._reads,
            attachments=self._attachments.of(record.id),
            unused=functools.partial(self._is_unused, record.id),
            idle_seconds=self._limits.idle_seconds,
            wrap_up_seconds=self._limits.wrap_up_seconds,
            goes_on_after_limit=self._limits.goes_on_after_limit,
        )
        if self._is_leaving:
            live.lifecycle.leave()
        self._live[record.id] = live
        return live

    def begin(self, new: NewSession, first: Append) -> LiveSession:
        """The live object of a session whose first events are stored this moment; another client may use it already.

        Nothing is read for it: whoever found its row meanwhile has it in use, or has changed nothing yet.
        """
        live = self._live.get(new.id) or self.load(new.stored(first, self._ownership.owner))
        Leases.current().hold(live.core)
        return live

    def new_log(self, new: NewSession) -> SessionLog:
        """The log of a session that is about to be stored, for its first events."""
        return self.log_of(new, self._ownership.epoch, SessionState(), 0, new.created_at)

    def log_of(
        self,
        session: NewSession | SessionRecord,
        epoch: int,
        state: SessionState,
        last: int,
        updated_at: str,
        steps: LogSteps = NO_LOG_STEPS,
    ) -> SessionLog:
        """The log of a session from here on, which is had in this epoch."""
        return SessionLog(
            session_id=session.id,
            epoch=epoch,
            agent=session.agent,
            state=state,
            last=last,
            updated_at=updated_at,
            store=self._store,
            clock=self._clock,
            project_feed=self._project_feeds.of(session.project),
            buffer_bytes=self._limits.buffer_bytes,
            most_bytes=self._limits.max_log_bytes,
            redaction=redaction_of(session.spec),
            project=session.project,
            actor=session.spec.grant.actor,
            steps=steps,
        )

    async def project_tail(self, project: str) -> Tail:
        """The end of the log of all sessions of a project."""
        if self._ownership.peers is not None:
            self._project_feeds.notice_all(await self._store.logs.last_position())
        source = functools.partial(self._reads.project_events, project)
        return Tail(self._project_feeds.of(project).feed, source, self._store.logs.settled_position)

    def state_of(self, record: SessionRecord) -> tuple[SessionState, int, str]:
        """What the log of a session adds up to, its last sequence, and when that was written."""
        if (live := self._live.get(record.id)) is not None:
            return live.core.shown, live.core.last, live.core.updated_at
        return state_in(record.state), record.last_sequence, record.updated_at

    def process_of(self, record: SessionRecord) -> ProcessInfo | None:
        """The process of the session's agent, while one runs."""
        live = self._live.get(record.id)
        return live.agent.process if live is not None else None

    def is_ending(self, record: SessionRecord) -> bool:
        """Whether somebody stops or cancels the session just now."""
        live = self._live.get(record.id)
        return live is not None and live.core.is_ending

    def is_cut_off(self, record: SessionRecord, event: TurnEnded) -> bool:
        """Whether a turn ended because its session did."""
        if event.data.outcome != "interrupted":
            return False
        state, _, _ = self.state_of(record)
        was_last = state.last_turn is not None and state.last_turn.last_sequence == event.sequence
        return self.is_ending(record) or (state.ended and was_last)

    async def remove(self, session: SessionCore) -> None:
        """Remove a session from the store; from now on it is not there."""
        async with self.steady():  # or a row that was read before would bring it back
            epoch, jobs = session.record.epoch, session.jobs_of_deletion()
            await self._store.delete_session(session.id, epoch, self._clock.now(), jobs)
            self._live.pop(session.id, None)
        self._steps.when_complete()
        self._ownership.tell_deleted(session.record, session.record.epoch)

    async def load_for(
        self, leases: Leases, runner: str, terminal: Iterable[str], wanted: Callable[[str, bytes], bool]
    ) -> list[LiveSession]:
        """Use the sessions of a runner that are wanted, and all of it that are live."""
        async with self.steady():
            for record in await self._store.unfinished_sessions(runner, terminal, wanted):
                if self._ownership.is_ours(record) and record.id not in self._live:
                    self.load(record)
            found = self.live_on(runner)
            for live in found:
                leases.hold(live.core)
            return found

    def live_on(self, runner: str) -> list[LiveSession]:
        """The sessions of a runner that are in use."""
        return [live for live in self._live.values() if live.core.record.runner == runner]

    def at_work_by_share(self) -> Counter[str]:
        """How many sessions are at work, by share."""
        return Counter(live.core.record.share for live in self._live.values() if live.is_at_work)

    def at_work(self) -> dict[str, str]:
        """What to call each session with a turn under way in this process, by id."""
        busy = [live.core for live in self.live_on(self._runners.home) if live.core.state.turn]
        return {each.id: f"{each.record.agent} ({each.state.title or each.record.key})" for each in busy}

    def leave(self) -> None:
        """The server stops and another goes on: nothing new begins."""
        self._is_leaving = True
        for live in list(self._live.values()):
            live.lifecycle.leave()

    async def close_agents(self) -> None:
        """End every turn and every agent of this process; the sessions stay, and so does what other runners have."""
        ours = self.live_on(self._runners.home)
        self.leave()
        await asyncio.gather(*(live.lifecycle.shut_down() for live in ours), return_exceptions=True)

    def close(self) -> None:
        """Let every event stream end."""
        for live in list(self._live.values()):
            live.core.log.feed.close()
        self._project_feeds.close()
        self._elsewhere.close()

    async def aclose(self, *, seconds: float) -> None:
        """End what still runs in the background; another server goes on with it."""
        owners = [self.background, *(live.core.background for live in list(self._live.values()))]
        await asyncio.gather(*(owner.aclose(seconds=seconds) for owner in owners))
