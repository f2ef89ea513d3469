"""What everything about one session shares: what it is, what its log says, and the way to write and to its agent."""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from ostler.base.errors import SessionEndedError, StoreUnavailable
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.base.tasks import Background
from ostler.server.sessions.attachments import SessionAttachments
from ostler.server.sessions.log.feed import Tail
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.session_log import LogSteps, SessionLog
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.settings import settings_now
from ostler.server.store.acting import acting, deed
from ostler.server.store.errors import StaleOwner
from ostler.server.store.records import Done, NewJob, Progress, SessionRecord, SessionSpec
from ostler.wire.events import PermissionMode, TurnEndedData
from ostler.wire.running import Draft

log = Log(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 2.0
JobsAtEnd = Callable[[SessionRecord, SessionState, int, str], Sequence[NewJob]]
"""What is to be done at the end of a session, by its state, the number of its last event, and the time of it."""


class SessionCore:
    """One session in memory without what may happen to it."""

    def __init__(
        self,
        *,
        record: SessionRecord,
        open_log: Callable[[LogSteps], SessionLog],
        reads: Reads,
        attachments: SessionAttachments,
        ended: Callable[["SessionCore"], object],
        jobs_at_end: JobsAtEnd,
        unused: Callable[[], object],
        lost: Callable[[], object],
    ) -> None:
        """`ended` hears that it is over, `unused` that nobody needs it in memory, `lost` that another server has it."""
        self.log = open_log(LogSteps(settled=self.drop_if_unused, lost=lost, jobs_at_end=self._jobs_at_end))
        self.record = record
        """Its row."""
        self.attachments = attachments
        self.reads = reads
        self.tail = Tail(self.log.feed, functools.partial(reads.events, record.id))
        self.background = Background(log, "session.task_failed", over=self.drop_if_unused, session_id=record.id)
        self._ended = ended
        self._find_jobs = jobs_at_end
        self._unused = unused
        self._users = 0
        self.ending: asyncio.Task[None] | None = None
        self.changes_under_way = 0
        """How many clients are about to change how its agent works."""
        self._interrupted_by: str | None = None
        self.holds_prompts = False
        """Whether no turn may begin, since it is about to be moved to another runner."""
        self.is_leaving = False
        """The server stops: nothing more is begun."""

    def rewrite(self, **changed: Any) -> None:
        """Its row has changed in the store; names are those of `SessionRecord`."""
        self.record = msgspec.structs.replace(self.record, **changed)
        self.log.take_over(self.record.agent, self.record.spec)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """A client is about to change how its agent works."""
        self.changes_under_way += 1
        try:
            yield
        finally:
            self.changes_under_way -= 1

    def hold_prompts(self, *, holds: bool) -> None:
        """Begin no turn, since it is about to be moved to another runner; or begin turns again."""
        self.holds_prompts = holds

    def leave(self) -> None:
        """The server stops: begin nothing more."""
        self.is_leaving = True

    def end(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Stop or cancel it by this work from now on."""
        self.ending = self.background.spawn(work)
        return self.ending

    def interrupted(self) -> None:
        """Who is acted for ends the turn under way; its agent hears it now."""
        self._interrupted_by = acting()

    def name_interrupter(self, written: Sequence[Draft]) -> None:
        """Somebody wanted the turn to end: if it ends for that reason, it was their deed."""
        if self._interrupted_by is None:
            return
        for draft in written:
            if isinstance(draft.data, TurnEndedData):
                draft.actor = self._interrupted_by if draft.data.outcome == "interrupted" else None
                self._interrupted_by = None

    def hold(self) -> None:
        """Somebody uses it, and says so with `release` when that is over."""
        self._users += 1

    def release(self) -> None:
        """Somebody does not use it any longer."""
        self._users -= 1
        self.drop_if_unused()

    @property
    def is_used(self) -> bool:
        """Whether it must stay in memory; its log alone tells everything of one that is not used."""
        return bool(self._users or self.background or self.log.in_flight)

    def drop_if_unused(self) -> None:
        """Something came to its end; if that was the last thing, nobody needs the session in memory."""
        if not self.is_used:
            self._unused()

    @property
    def id(self) -> str:
        """The session's id."""
        return self.record.id

    @property
    def state(self) -> SessionState:
        """What was decided; runs ahead of the disk by what is in flight."""
        return self.log.state

    @property
    def shown(self) -> SessionState:
        """What clients may know of: it is on disk."""
        return self.log.shown

    @property
    def last(self) -> int:
        """The sequence of the newest event a client may see."""
        return self.log.last

    @property
    def updated_at(self) -> str:
        """When that event was written."""
        return self.log.updated_at

    @property
    def settings(self) -> SessionSpec:
        """How its agent works now."""
        return settings_now(self.record, self.log.state)

    @property
    def permission_mode(self) -> PermissionMode:
        """What its agent may do now."""
        return self.log.state.permission_mode or self.record.spec.permission_mode

    def now(self) -> str:
        """The time that events are stamped with."""
        return self.log.now()

    def _jobs_at_end(self, state: SessionState, last: int, time: str) -> Sequence[NewJob]:
        return self._find_jobs(self.record, state, last, time)

    def jobs_of_deletion(self) -> Sequence[NewJob]:
        """What is to be done because it is deleted: whoever wished to hear of its end hears that it is over."""
        if self.state.ended:
            return ()
        now = self.now()
        state = msgspec.structs.replace(self.state, status="cancelled", ended_at=now)
        return self._jobs_at_end(state, self.last, now)

    @property
    def may_sleep(self) -> bool:
        """Whether nothing is under way or waits."""
        state = self.state
        is_idle = state.turn is None and not state.asks and not state.has_prompts and state.status == "running"
        return is_idle and not self.is_leaving

    @property
    def is_ending(self) -> bool:
        """Whether somebody stops or cancels it just now: a cancelled session is `running` until its agent is gone."""
        return self.ending is not None and not self.ending.done()

    def refuse_if_over(self, what: str) -> None:
        """Raise if the session takes nothing more."""
        status = self.state.status
        if self.state.ended or status == "stopping" or self.is_ending:
            shown = status if self.state.ended else "stopping"
            raise SessionEndedError(session=self.id, status=shown, what=what)

    async def refuse_if_full(self) -> None:
        """Raise if its log takes nothing more."""
        await self.log.measure()
        if self.log.is_full:
            raise self.log.full()

    async def write(self, *events: Draft) -> None:
        """Append what somebody does; they hear of it if that cannot be."""
        await self.log.append(deed(*events))

    async def note(self, events: Sequence[Draft], progress: Progress | None = None, done: Done | None = None) -> None:
        """Append what must not be lost; while the disk is full the agent simply waits."""
        pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                await self.log.append(events, progress, done)
            except StaleOwner:  # whoever has it now goes on with it
                raise
            except StoreUnavailable as error:
                log.error("session.append_failed", session_id=self.id, reason=str(error))
                await asyncio.sleep(next(pauses))
            else:
                break
        if any(draft.type == "session.ended" for draft in events):
            self._ended(self)
