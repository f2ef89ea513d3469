"""The event log of one session: numbers events, stores them, and shows them to clients once they are durable."""

import asyncio
import functools
from collections.abc import Callable, Sequence

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import LogFull, SessionNotFound
from ostler.base.failpoints import failpoint
from ostler.server.sessions.log import folds
from ostler.server.sessions.log.feed import Feed, frame
from ostler.server.sessions.log.folds import Happened
from ostler.server.sessions.log.reads import with_history
from ostler.server.sessions.log.state import CHANGES, SessionState, apply, ask_of, is_new_limit, turn_of
from ostler.server.sessions.log.titles import left_to_people
from ostler.server.sessions.secrets import Redaction, redaction_of
from ostler.server.store.bursts import Mark, mark_of, pack
from ostler.server.store.errors import StaleOwner
from ostler.server.store.peers import Bell
from ostler.server.store.protocol import Store
from ostler.server.store.records import (
    Append,
    AppendResult,
    Done,
    NewJob,
    Placed,
    Progress,
    SessionSpec,
    StateChange,
    Used,
)
from ostler.wire.events import EVENTS, Event
from ostler.wire.running import Draft, Prompt
from ostler.wire.sessions import Ask, Turn
from ostler.wire.workspace_events import SnapshotCreatedData
from ostler.wire.workspaces import Snapshot

_TURN_EVENTS = frozenset({"turn.started", "turn.ended"})
_ASK_EVENTS = frozenset({"permission.requested", "permission.resolved", "question.requested", "question.resolved"})
_STATEFUL = frozenset(CHANGES)
_encoder = msgspec.json.Encoder()
_LITTLE_BYTES = 8192
"""So much is packed here; for more it is worth to have the writer do that beside us."""


class ProjectFeed:
    """The live end of all sessions of one project; frames are numbered by position, which all projects share."""

    def __init__(self, feed: Feed, completed: Callable[[], object], written: Callable[[], object]) -> None:
        """`completed` is called when an item of a session is complete, `written` with all events."""
        self.feed = feed
        self._completed = completed
        self._written = written

    def committed(self, append: Append, last_position: int) -> None:
        """Show committed events of one session to whoever follows all of them."""
        self.publish(append, last_position)
        self._written()
        if any(mark.type == "item.completed" for mark in append.marks):
            self._completed()

    def publish(self, append: Append, last_position: int) -> None:
        """Add committed events of one session."""
        events = append.events
        if not self.feed.watchers:
            self.feed.skip(last_position)
            return
        first = last_position - len(events) + 1
        if first > self.feed.last + 1:  # events of other projects lie between
            self.feed.skip(first - 1)
        self.feed.publish([frame(number, event) for number, event in enumerate(events, first)])


class SharedProjectFeed(ProjectFeed):
    """The same where other servers write too: what they hold up is not passed by, so readers go by the store."""

    def __init__(
        self,
        feed: Feed,
        completed: Callable[[], object],
        written: Callable[[], object],
        project: str,
        ring: Callable[[Bell], object],
    ) -> None:
        super().__init__(feed, completed, written)
        self._project = project
        self._ring = ring

    def publish(self, append: Append, last_position: int) -> None:
        """Let everybody know, here and elsewhere."""
        self.notice(last_position)
        self._ring(Bell(append.session_id, append.last, last_position, append.epoch, self._project))

    def notice(self, position: int) -> None:
        """There may be events up to here."""
        if position > self.feed.last:
            self.feed.skip(position)


class ProjectFeeds:
    """The live ends of all projects; `ring` tells other servers of the same store, if there are any."""

    def __init__(
        self,
        completed: Callable[[], object],
        written: Callable[[], object],
        *,
        last: int,
        limit_bytes: int,
        ring: Callable[[Bell], object] | None = None,
    ) -> None:
        """`completed` is called when an item of a session is complete, `written` with all events."""
        self._completed = completed
        self._written = written
        self._last = last
        self._limit = limit_bytes
        self._ring = ring
        self._feeds: dict[str, ProjectFeed] = {}

    def of(self, project: str) -> ProjectFeed:
        """The one of this project; a log has it from its beginning, so nothing can come before it is there."""
        if project not in self._feeds:
            feed = Feed(last=self._last, limit_bytes=self._limit)
            self._feeds[project] = (
                ProjectFeed(feed, self._completed, self._written)
                if self._ring is None
                else SharedProjectFeed(feed, self._completed, self._written, project, self._ring)
            )
        return self._feeds[project]

    @property
    def is_watched(self) -> bool:
        """Whether anybody follows one of them."""
        return any(project.feed.watchers for project in self._feeds.values())

    def notice(self, project: str, position: int) -> None:
        """Another server has written."""
        if isinstance(found := self._feeds.get(project), SharedProjectFeed):
            found.notice(position)

    def notice_all(self, position: int) -> None:
        """Another server may have written, in whatever project."""
        self._last = max(self._last, position)
        for project in self._feeds:
            self.notice(project, position)

    def close(self) -> None:
        """Let every stream end."""
        for project in self._feeds.values():
            project.feed.close()


class LogSteps(msgspec.Struct, frozen=True, kw_only=True):
    """What follows on what happens to a log."""

    settled: Callable[[], object] = lambda: None
    """No append is on its way to the disk any more."""
    lost: Callable[[], object] = lambda: None
    """Another server has the session."""
    jobs_at_end: Callable[[SessionState, int, str], Sequence[NewJob]] = lambda *_: ()
    """What is to be done once the session is over, by its last event and the time of that; it is stored with it."""


NO_LOG_STEPS = LogSteps()


class SessionLog:
    """Appends in order; `state` runs ahead of the disk by what is in flight, clients never do."""

    def __init__(
        self,
        *,
        session_id: str,
        epoch: int,
        agent: str,
        state: SessionState,
        last: int,
        updated_at: str,
        store: Store,
        clock: Clock,
        project_feed: ProjectFeed,
        buffer_bytes: int,
        most_bytes: int = 0,
        redaction: Redaction | None = None,
        project: str = "",
        actor: str | None = None,
        steps: LogSteps = NO_LOG_STEPS,
    ) -> None:
        self.session_id = session_id
        self.agent = agent
        """Who has the session."""
        self.state = state
        self.updated_at = updated_at
        self.is_deleted = False
        self.in_flight = 0
        """How many appends are on their way to the disk."""
        self._steps = steps
        self._project = project
        self._actor = actor or ""
        """Who made the session."""
        self.feed = Feed(last=last, limit_bytes=buffer_bytes)
        self._epoch = epoch
        self._durable_state = state
        self._last = last
        self._generation = 0
        self._store = store
        self._clock = clock
        self._project_feed = project_feed
        self._most_bytes = most_bytes
        self.redaction = redaction
        """Takes the session's secrets out of what is written, if it has any."""
        self._size: int | None = None if last else 0
        """What it takes on disk, once somebody asked; that of a new one is known."""

    def take_over(self, agent: str, spec: SessionSpec) -> None:
        """Who has the session now, and whose secrets are kept out of what is written."""
        self.agent, self.redaction = agent, redaction_of(spec)

    def mark_deleted(self) -> None:
        """Nothing is written any more: the session is about to be removed."""
        self.is_deleted = True

    async def measure(self) -> None:
        """Look how large it is, unless that is known; `is_full` tells nothing before."""
        if self._most_bytes and self._size is None:
            self._size = await self._store.logs.size(self.session_id)

    @property
    def is_full(self) -> bool:
        """Whether the agent may add nothing more."""
        return self._size is not None and 0 < self._most_bytes <= self._size

    def full(self) -> LogFull:
        """What to tell whoever wants more."""
        return LogFull(session=self.session_id, size=self._size, limit=self._most_bytes)

    @property
    def shown(self) -> SessionState:
        """The state that clients may know of: what is on disk adds up to it."""
        return self._durable_state

    @property
    def last(self) -> int:
        """The sequence of the newest event a client may see."""
        return self.feed.last

    def now(self) -> str:
        """The time events are stamped with."""
        return self._clock.now()

    @property
    def _turn_id(self) -> str | None:
        return self.state.turn.turn_id if self.state.turn is not None else None

    async def with_history(self, prompt: Prompt) -> Prompt:
        """A prompt with what was said before it, for an agent that does not remember."""
        return await with_history(self._store, self.session_id, prompt)

    async def append(
        self,
        drafts: Sequence[Draft],
        progress: Progress | None = None,
        done: Done | None = None,
        placed: Placed | None = None,
    ) -> int:
        """Number, store and publish these events; returns the first sequence. On failure nothing happened."""
        append = self.prepare(drafts, progress, done, placed)
        try:
            await self.commit(append, self._store.append(append))
        except StaleOwner:
            if self.is_deleted:
                raise SessionNotFound(session=self.session_id) from None
            self._steps.lost()
            raise
        return append.first

    def prepare(
        self,
        drafts: Sequence[Draft],
        progress: Progress | None = None,
        done: Done | None = None,
        placed: Placed | None = None,
    ) -> Append:
        """Number and encode events and move the state on; must be followed by `commit` without an await between."""
        first, time, before = self._last + 1, self._clock.now(), self.state
        events: list[bytes] = []
        raws: list[bytes | None] = []
        turns: list[Turn] = []
        asks: list[Ask] = []
        snapshots: list[Snapshot] = []
        marks: list[Mark] = []
        for given in drafts:
            draft = sent = left_to_people(given) if self.state.title_chosen else given
            if self.redaction is not None:
                draft = self.redaction.hidden(sent)
            self._last += 1
            happened_at = draft.time or time
            if draft.type in _STATEFUL:  # a prompt that waits reaches its agent as it was sent
                self._move_on(sent if sent.type == "queue.updated" else draft, happened_at, turns, asks, snapshots)
            raws.append(draft.raw)
            events.append(_encoder.encode(self._event(draft, happened_at)))
            if (mark := mark_of(self._last, draft.type, draft.data, events[-1], self._turn_id)) is not None:
                marks.append(mark)
        return Append(
            session_id=self.session_id,
            epoch=self._epoch,
            time=time,
            first=first,
            events=tuple(events),
            raws=tuple(raws),
            packed=pack(self.session_id, events, tuple(raws)) if sum(map(len, events)) < _LITTLE_BYTES else None,
            change=None if self.state is before else self._change(time),
            turns=tuple(turns),
            asks=tuple(asks),
            snapshots=tuple(snapshots),
            marks=tuple(marks),
            progress=progress,
            done=done,
            jobs=self._jobs(before, time),
            placed=placed,
            used=self._used(before, time),
        )

    def _used(self, before: SessionState, time: str) -> Used | None:
        """What the turn under way has used, if this changes it; a fork does not count the turns that it copies."""
        if self.state.usage is None or self.state.usage is before.usage:
            return None
        tokens, cost = folds.since(self.state.usage, self.state.usage_before)
        return Used(self.state.turn_count, self._project, self._actor, time[:10], tokens, cost)

    def _jobs(self, before: SessionState, time: str) -> tuple[NewJob, ...]:
        is_news = self.state.ended or is_new_limit(self.state.limit, before.limit)
        if before.ended or not is_news:
            return ()
        return tuple(self._steps.jobs_at_end(self.state, self._last, time))

    async def commit(self, append: Append, written: "asyncio.Future[AppendResult]") -> None:
        """Wait until an append is durable; it is shown to clients even if the caller gives up waiting."""
        seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.in_flight += 1
        written.add_done_callback(functools.partial(self._settled, append, self.state, self._generation, seen))
        await seen

    def _settled(
        self,
        append: Append,
        state: SessionState,
        generation: int,
        seen: "asyncio.Future[None]",
        written: "asyncio.Future[AppendResult]",
    ) -> None:
        self.in_flight -= 1
        if (error := written.exception()) is not None:
            self._roll_back(generation)
        else:
            self._publish(append, state, written.result())
        if not seen.done():
            seen.set_exception(error) if error is not None else seen.set_result(None)
        if not self.in_flight:
            self._steps.settled()

    def _publish(self, append: Append, state: SessionState, result: AppendResult) -> None:
        failpoint("publish.before")
        self._durable_state = state
        self.updated_at = append.time
        if self.feed.watchers:
            self.feed.publish([frame(number, event) for number, event in enumerate(append.events, append.first)])
        else:
            self.feed.skip(append.last)
        self._project_feed.committed(append, result.position)
        if self._size is not None:
            self._size += result.size
        failpoint("publish.after")

    def _roll_back(self, generation: int) -> None:
        """Forget what never reached the disk, once for all appends that were in flight together."""
        if generation == self._generation:
            self._generation += 1
            self._last, self.state = self.feed.last, self._durable_state

    def _move_on(self, draft: Draft, time: str, turns: list[Turn], asks: list[Ask], snapshots: list[Snapshot]) -> None:
        happened = Happened(
            session_id=self.session_id,
            agent=self.agent,
            sequence=self._last,
            time=time,
            type=draft.type,
            data=draft.data,
        )
        if draft.type in _TURN_EVENTS and (turn := turn_of(self.state, happened)):
            turns.append(turn)
        if draft.type in _ASK_EVENTS:
            asks.append(ask_of(self.state, happened))
        if draft.type == "snapshot.created":
            snapshots.append(_snapshot_of(happened))
        self.state = apply(self.state, happened)

    def _event(self, draft: Draft, time: str) -> Event:
        return EVENTS[
            draft.type
        ](  # type: ignore[call-arg]  # each event class adds its own `data`
            event_id=f"evt_{self.session_id[4:]}_{self._last}",
            sequence=self._last,
            time=time,
            session_id=self.session_id,
            source=draft.source,
            synthetic=draft.synthetic,
            native_session_id=self.state.native_session_id,
            actor=draft.actor,
            data=draft.data,
        )

    def _change(self, time: str) -> StateChange:
        return StateChange(
            status=self.state.status,
            title=self.state.title,
            labels=self.state.labels,
            updated_at=time,
            state=_encoder.encode(self.state),
            workspace=self.state.workspace_id,
        )


def _snapshot_of(event: Happened) -> Snapshot:
    """What is listed for a snapshot event."""
    data: SnapshotCreatedData = event.data
    return Snapshot(
        snapshot_id=data.snapshot_id,
        workspace_id=data.workspace_id,
        turn=data.turn,
        created_at=event.time,
        sequence=event.sequence,
        tree=data.tree,
        turn_id=data.turn_id,
        note=data.note,
        native_session_id=data.native_session_id,
        memory_kept=data.memory_kept,
        restored_from=data.restored_from,
        changed_by=data.changed_by,
    )
