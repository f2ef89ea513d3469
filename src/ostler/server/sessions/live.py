"""A session that is being used: it has turns, asks and a life, and writes down what its agent does."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Protocol, Self

from msgspec.structs import replace

from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.asks import Asks
from ostler.server.sessions.attachments import SessionAttachments
from ostler.server.sessions.lifecycle import Lifecycle
from ostler.server.sessions.log.overflow import thinned
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.session_log import LogSteps, SessionLog
from ostler.server.sessions.policy import vet
from ostler.server.sessions.proposing import proposals_in
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.turns import Turns
from ostler.server.sessions.work.chores import Chores
from ostler.server.sessions.work.limit_wait import LimitWait
from ostler.server.sessions.work.pipeline import Pipeline
from ostler.server.store.records import Progress, SessionRecord
from ostler.wire.events import ItemCompletedData, TurnEndedData
from ostler.wire.parts import ImagePart
from ostler.wire.running import AgentExit, Draft

log = Log(__name__)


class LiveSession:
    """One session in memory, made of its core and the parts around that; exists while somebody uses it."""

    def __init__(
        self,
        *,
        record: SessionRecord,
        open_log: Callable[[LogSteps], SessionLog],
        runners: Runners,
        work: Pipeline,
        reads: Reads,
        attachments: SessionAttachments,
        unused: Callable[[], object],
        lost: Callable[[], object],
        idle_seconds: float,
        wrap_up_seconds: float,
        goes_on_after_limit: bool,
    ) -> None:
        self.core = core = SessionCore(
            record=record,
            open_log=open_log,
            reads=reads,
            attachments=attachments,
            ended=work.ended,
            jobs_at_end=work.jobs_at_end,
            unused=unused,
            lost=lost,
        )
        self._runners = runners
        self.agent = SessionAgent(core, runners, self.delivered, idle_seconds, self._left_open)
        self.chores = Chores(core, self.agent, work)
        self.limit = LimitWait(core, reads, is_wanted=goes_on_after_limit)
        self.turns = Turns(core, self.agent, self.chores, self.limit)
        self.asks = Asks(core, self.agent, reads, work.propose, work.confirm)
        self.lifecycle = Lifecycle(core, self.agent, self.chores, self.turns, self.limit, wrap_up_seconds)
        self._overflown = False

    @property
    def is_at_work(self) -> bool:
        """Whether it has a slot of its runner: a process, a turn or one about to begin, or work at its files."""
        state = self.core.state
        is_begun = state.status in {"queued", "provisioning"} and self.core.record.runner is not None
        is_busy = state.status == "running" and (state.has_prompts or self.chores.are_blocking)
        is_there = self.agent.connection is not None or self.agent.falls_asleep
        return is_there or state.turn is not None or is_begun or is_busy

    @property
    def is_idle(self) -> bool:
        """Whether it has a slot of its runner only because its process is kept for the next prompt."""
        is_free = not self.chores.are_blocking and not self.core.changes_under_way
        return self.agent.connection is not None and self.core.may_sleep and is_free

    async def delivered(self, events: Sequence[Draft], progress: Progress) -> None:
        """Store what the agent did; decides by itself the asks that need no human."""
        session = self.core
        await session.log.measure()
        if session.log.is_full:
            events = thinned(events)
        if session.log.redaction is not None:
            events = session.log.redaction.grown(events)
        await _keep_pictures(session, events)
        limited = await self.limit.noticed(events) if any(map(_is_failure, events)) else ()
        asked = [draft for draft in events if draft.type == "permission.requested"]
        proposals = await proposals_in(asked, session.record.project, self.asks.read_proposal) if asked else {}
        rules = session.record.spec.permission_rules
        written, answers = vet([*events, *limited], session.state, session.permission_mode, rules, proposals)
        if not written or session.log.is_deleted or session.state.ended:
            return
        session.name_interrupter(written)
        failpoint("deliver.before")
        await session.note(written, progress)
        failpoint("deliver.after")
        for answer in answers:
            session.background.spawn(self.agent.tell(answer))
        if session.log.is_full and not self._overflown:
            self._overflown = True
            session.background.spawn(self._overflow())
        if any(draft.type == "turn.ended" for draft in written):
            self.agent.rest()
            session.background.spawn(self._go_on())

    def _left_open(self, end: AgentExit, turn_id: str) -> None:
        self.turns.go_on_with(turn_id, end)

    async def _go_on(self) -> None:
        await self.turns.begin_next()
        if self.is_idle and self._runners.has_slots(self.core.record.runner):
            self._runners.room()  # it may be put to sleep for another

    async def _overflow(self) -> None:
        """The log is full: say so, and end the turn."""
        log.warning("session.log_full", session_id=self.core.id)
        await self.core.note([drafts.error_of(self.core.log.full())])
        if self.agent.connection is not None:
            await self.agent.connection.interrupt()


def _is_failure(draft: Draft) -> bool:
    return isinstance(draft.data, TurnEndedData) and draft.data.outcome == "failed"


async def _keep_pictures(session: SessionCore, events: Sequence[Draft]) -> None:
    """Pictures that came with events lie with those that clients sent; the log has their paths."""
    for draft in events:
        if draft.images and isinstance(draft.data, ItemCompletedData):
            item, images, draft.images, draft.raw = draft.data.item, draft.images, None, None
            paths = await session.attachments.keep(images)
            parts = (
                replace(part, path=paths.get(part.path, part.path)) if isinstance(part, ImagePart) else part
                for part in item.content
            )
            draft.data = replace(draft.data, item=replace(item, content=tuple(parts)))


class Held(Protocol):
    """What stays in memory while somebody uses it."""

    def hold(self) -> None:
        """Somebody uses it."""

    def release(self) -> None:
        """Somebody does not any longer."""


class Leases:
    """The sessions that a request uses, or a piece of work beside requests: they stay in memory until its end."""

    __slots__ = ("_before", "_held", "_is_over")

    def __init__(self) -> None:
        self._held: list[Held] = []
        self._is_over = False

    def __enter__(self) -> Self:
        self._before = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._before)
        self.end()

    def end(self) -> None:
        """Use them no longer."""
        self._is_over = True
        for held in self._held:
            held.release()
        self._held.clear()

    @classmethod
    def current(cls) -> "Leases":
        """Those of the work that goes on here."""
        leases = _current.get()
        if leases is None or leases._is_over:
            raise RuntimeError("Whoever asks for a session says with `Leases` for how long.")
        return leases

    def hold(self, session: Held) -> None:
        """Use a session from now on."""
        if session not in self._held:
            session.hold()
            self._held.append(session)


_current: ContextVar[Leases | None] = ContextVar("leases", default=None)
