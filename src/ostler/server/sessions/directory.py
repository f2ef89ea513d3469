"""The sessions that are in use: one live object for each."""

import asyncio
import functools
from collections.abc import AsyncIterator
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
from ostler.server.sessions.log.reading import Reading
from ostler.server.sessions.log.session_log import NO_LOG_STEPS, LogSteps, ProjectFeeds, SessionLog
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.log.tail import Tail
from ostler.server.sessions.secrets import redaction_of
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.store.peers import Bell, Peers
from ostler.server.store.protocol import Store
from ostler.server.store.records import Append, NewSession, SessionFilter, SessionRecord
from ostler.wire.events import TurnEnded
from ostler.wire.sessions import ProcessInfo

log = Log(__name__)
_state = msgspec.json.Decoder(SessionState)


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


class Directory(Reading):
    """Finds sessions, and has those that are in use."""

    def __init__(
        self,
        *,
        store: Store,
        owner: str,
        epoch: int,
        runners: Runners,
        steps: NextSteps,
        work: Pipeline,
        clock: Clock,
        attachments: Attachments,
        limits: SessionLimits,
        last_position: int,
        peers: Peers | None = None,
    ) -> None:
        super().__init__(store)
        self.attachments = attachments
        self.background = Background(log, "sessions.task_failed")
        ring = peers.ring if peers is not None else None
        self._project_feeds = ProjectFeeds(
            steps.when_complete, last=last_position, limit_bytes=limits.buffer_bytes, ring=ring
        )
        self._owner = owner
        self._epoch = epoch
        self._runners = runners
        self._steps = steps
        self._work = work
        self._clock = clock
        self._limits = limits
        self._opening = asyncio.Lock()
        self._live: dict[str, LiveSession] = {}
        self._unused: set[str] = set()
        self._is_leaving = False
        self._peers = peers
        self._elsewhere = Elsewhere(self, self._project_feeds, self.background, self._lose_others)
        if peers is not None:
            self._elsewhere.start()
            peers.listen(self._heard)

    def is_ours(self, record: SessionRecord) -> bool:
        """Whether this server has a session; one that is alone has all."""
        return self._peers is None or record.owner == self._owner

    def _heard(self, bell: Bell | None) -> None:
        if bell is not None and (live := self._live.get(bell.session)) is not None and bell.epoch > live.record.epoch:
            self._lose(bell.session)
        self._elsewhere.heard(bell)

    async def _lose_others(self) -> None:
        """Let go of what another server has, or has deleted, while its bell was not heard here."""
        if self._live:
            for session_id in await self.store.logs.had_by_others(self._owner, list(self._live)):
                self._lose(session_id)

    def _lose(self, session_id: str) -> None:
        """Another server has a session since; what is under way here ends, and readers begin anew."""
        if (live := self._live.pop(session_id, None)) is not None:
            log.warning("session.lost", session_id=session_id)
            live.lifecycle.leave()
            live.log.feed.close()

    async def find(self, project: str, id_or_key: str) -> SessionRecord:
        """The row of a session, by id or key."""
        record = await self.store.find_session(project, id_or_key)
        if record is None:
            raise SessionNotFound(session=id_or_key)
        return record

    async def live(self, project: str, id_or_key: str) -> LiveSession:
        """The one live object of a session; it is there as long as the `Leases` of whoever asks."""
        leases = Leases.current()
        if (known := self._live.get(id_or_key)) is not None and known.record.project == project:
            return leases.hold(known)
        async with self._steady():
            record = await self.find(project, id_or_key)
            if not self.is_ours(record) and not await self._take_over_ended(record):
                raise OwnedElsewhere(session=record.id, what=f"session '{record.id}'", owner=record.owner)
            record = record if self.is_ours(record) else await self.find(project, id_or_key)
            return leases.hold(self._live.get(record.id) or self.load(record))

    async def _take_over_ended(self, record: SessionRecord) -> bool:
        """Have a session of a lost server that was over before it had a runner: nothing of it is on that machine."""
        if self._peers is None or record.runner is not None or not self._peers.is_lost(record.owner):
            return False
        if not _state.decode(record.state).ended:
            return False
        return await self.store.owners.take(self._owner, record.id, record.epoch) is not None

    async def followed(self, project: str, id_or_key: str) -> "LiveSession | Following":
        """A session whose log is read along, whoever has it; it is there as long as the `Leases` of whoever asks."""
        try:
            return await self.live(project, id_or_key)
        except OwnedElsewhere:
            return Leases.current().hold(self._elsewhere.follow(await self.find(project, id_or_key)))

    @asynccontextmanager
    async def _steady(self) -> AsyncIterator[None]:
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
            if (live := self._live.get(session_id)) is not None and not live.is_used:
                del self._live[session_id]
        self._unused.clear()

    def load(self, record: SessionRecord) -> LiveSession:
        """Begin to use a session that is not live yet."""
        state = _state.decode(record.state)
        live = LiveSession(
            record=record,
            open_log=functools.partial(
                self.log_of, record, record.epoch, state, record.last_sequence, record.updated_at
            ),
            lost=functools.partial(self._lose, record.id),
            runners=self._runners,
            work=self._work,
            reading=self,
            attachments=self.attachments.of(record.id),
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
        return Leases.current().hold(self._live.get(new.id) or self.load(new.stored(first, self._owner)))

    def new_log(self, new: NewSession) -> SessionLog:
        """The log of a session that is about to be stored, for its first events."""
        return self.log_of(new, self._epoch, SessionState(), 0, new.created_at)

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
            store=self.store,
            clock=self._clock,
            project_feed=self._project_feeds.of(session.project),
            buffer_bytes=self._limits.buffer_bytes,
            most_bytes=self._limits.max_log_bytes,
            redaction=redaction_of(session.spec),
            steps=steps,
        )

    async def project_tail(self, project: str) -> Tail:
        """The end of the log of all sessions of a project."""
        if self._peers is not None:
            self._project_feeds.notice_all(await self.store.logs.last_position())
        source = functools.partial(self.project_events, project)
        return Tail(self._project_feeds.of(project).feed, source, self.store.logs.settled_position)

    def state_of(self, record: SessionRecord) -> tuple[SessionState, int, str]:
        """What the log of a session adds up to, its last sequence, and when that was written."""
        if (live := self._live.get(record.id)) is not None:
            return live.shown, live.last, live.updated_at
        return _state.decode(record.state), record.last_sequence, record.updated_at

    def process_of(self, record: SessionRecord) -> ProcessInfo | None:
        """The process of the session's agent, while one runs."""
        live = self._live.get(record.id)
        return live.agent.process if live is not None else None

    def is_ending(self, record: SessionRecord) -> bool:
        """Whether somebody stops or cancels the session just now."""
        live = self._live.get(record.id)
        return live is not None and live.is_ending

    def is_cut_off(self, record: SessionRecord, event: TurnEnded) -> bool:
        """Whether a turn ended because its session did."""
        if event.data.outcome != "interrupted":
            return False
        state, _, _ = self.state_of(record)
        was_last = state.last_turn is not None and state.last_turn.last_sequence == event.sequence
        return self.is_ending(record) or (state.ended and was_last)

    async def page(self, wanted: SessionFilter) -> tuple[list[SessionRecord], int]:
        """One page of sessions and how many match."""
        return await self.store.page_sessions(wanted)

    async def forget(self, live: LiveSession) -> None:
        """Remove a session from the store; from now on it is not there."""
        async with self._steady():  # or a row that was read before would bring it back
            await self.store.delete_session(live.id, live.record.epoch, self._clock.now(), live.jobs_of_deletion())
            self._live.pop(live.id, None)
        self._steps.when_complete()
        if self._peers is not None:
            self._peers.ring(Bell(live.id, 0, 0, live.record.epoch, live.record.project))

    def leave(self) -> None:
        """The server stops and another goes on: nothing new begins."""
        self._is_leaving = True
        for live in list(self._live.values()):
            live.lifecycle.leave()

    def close(self) -> None:
        """Let every event stream end."""
        for live in list(self._live.values()):
            live.log.feed.close()
        self._project_feeds.close()
        self._elsewhere.close()

    async def aclose(self, *, seconds: float) -> None:
        """End what still runs in the background; another server goes on with it."""
        owners = [self.background, *(live.background for live in list(self._live.values()))]
        await asyncio.gather(*(owner.aclose(seconds=seconds) for owner in owners))
