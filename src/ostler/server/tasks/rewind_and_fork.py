"""Going back, in the same session or in a new one: files, conversation and the agent's memory, or the files alone."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import msgspec

from ostler.base.errors import InvalidTransition, NotInConversation, SessionBusy, SnapshotNotFound, Unprocessable
from ostler.base.undo import async_undone_by
from ostler.link.workspaces import Workspaces
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.branching import spans_left_behind, turn_before
from ostler.server.sessions.log.reads import pages
from ostler.server.sessions.log.titles import fork_title
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.turns import comments_back
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.sessions.work.pipeline import created, snapshot_data
from ostler.server.sessions.work.restoring import put_back
from ostler.server.store.acting import deed
from ostler.server.store.records import NewSession, SessionSpec, StoredEvent
from ostler.server.tasks.states import snapshot_after, snapshot_at, workspace_of
from ostler.wire.events import (
    AnyEvent,
    EventSource,
    SessionHandoff,
    SessionRewound,
    SessionStarted,
    SnapshotCreated,
    TurnStarted,
    UnknownEvent,
    decode_event,
)
from ostler.wire.provisioning import FrozenState
from ostler.wire.running import Draft
from ostler.wire.workspace_events import (
    SessionForkedData,
    SessionHandoffData,
    SessionRewoundData,
    SnapshotCreatedData,
)
from ostler.wire.workspaces import ForkSession, Snapshot, Workspace

_COPIED = frozenset(
    {
        "session.info",
        "turn.started",
        "turn.ended",
        "item.started",
        "item.completed",
        "permission.requested",
        "permission.resolved",
        "question.requested",
        "question.resolved",
        "error",
        "plan.updated",
        "usage.updated",
        "file.changed",
        "artifact.created",
        "notice",
        "snapshot.created",
    }
)
"""What a fork has in common with its parent; deltas are in the items that they became."""


class Successor(NamedTuple):
    """The agent that a fork is for, and what it is started with."""

    agent: str
    spec: SessionSpec


class RewindAndFork:
    """Rewinds and forks sessions, and puts files back."""

    def __init__(self, sessions: Sessions, runners: Runners) -> None:
        self._sessions = sessions
        self._runners = runners

    def _workspaces(self, session: SessionCore) -> Workspaces:
        return self._runners.workspaces(session.record.runner)

    async def _snapshots(self, session: SessionCore) -> list[Snapshot]:
        """Those that are where the session is; others stayed on the runner that it left."""
        return [
            each
            for each in await self._sessions.store.logs.snapshots(session.id)
            if each.sequence > session.state.moved_at
        ]

    async def rewind(self, live: LiveSession, turn: int) -> None:
        """Make the session what it was at the end of a turn; later turns stay in the log but no longer count."""
        session = live.core
        session.refuse_if_over("rewinds")
        workspace_of(session)
        _refuse_in_place(session, "rewound")
        await live.chores.do(patience=REQUEST_SECONDS)
        await live.chores.alone(lambda: self._rewind(live, turn), patience=REQUEST_SECONDS)
        await live.turns.go_on()

    async def _rewind(self, live: LiveSession, turn: int) -> None:
        session = live.core
        _refuse_unless_idle(session, "be rewound")
        await self._workspaces(session).get(workspace_of(session))  # without its files the session would be over
        found = snapshot_at(session.id, await self._snapshots(session), turn)
        sequence = await self._end_of(session, turn)
        await live.agent.disconnect(force=False)
        data = SessionRewoundData(
            turn=turn,
            sequence=sequence,
            snapshot_id=found.snapshot_id,
            workspace_id=found.workspace_id,
            turn_id=found.turn_id,
            native_session_id=_memory(session, found),
        )
        await session.note(deed(drafts.rewound(data), *await _comments_back(session, sequence)))
        await live.chores.finish_rewind()

    async def restore(self, live: LiveSession, snapshot: str) -> None:
        """Make the files those of a snapshot; the conversation and the agent's memory stay."""
        session = live.core
        session.refuse_if_over("restored files")
        _refuse_in_place(session, "restored")
        if all(snapshot != known.snapshot_id for known in await self._snapshots(session)):
            raise SnapshotNotFound(snapshot=snapshot[:80])
        await live.chores.do(patience=REQUEST_SECONDS)
        await live.chores.alone(lambda: self._restore(live, snapshot), patience=REQUEST_SECONDS)
        await live.turns.go_on()

    async def _restore(self, live: LiveSession, snapshot: str) -> None:
        session = live.core
        _refuse_unless_idle(session, "get files back")
        workspace = workspace_of(session)
        await live.agent.disconnect(force=False)
        restored = await put_back(self._workspaces(session), workspace, snapshot, session=session.id, with_memory=False)
        await session.note(deed(drafts.restored(restored)))
        note = f"restored {snapshot}"
        frozen = await self._workspaces(session).snapshot(
            workspace, note, agent=session.record.agent, session=session.id
        )
        again = snapshot_data(session, frozen, session.state.stands_at, note, restored_from=snapshot)
        await session.note([drafts.snapshot(again)])

    async def _end_of(self, session: SessionCore, turn: int) -> int:
        """The last sequence of a turn, which must lead to where the conversation stands."""
        if turn == 0:
            first = await self._sessions.store.logs.find_turn(session.id, 1)
            return first.first_sequence - 1 if first is not None else session.last
        left = spans_left_behind(await self._sessions.store.logs.branching_turns(session.id), session.state)
        found = await self._sessions.store.logs.find_turn(session.id, turn)
        if found is None or any(first <= turn <= last for first, last in left):
            raise NotInConversation(session=session.id, turn=turn)
        return found.last_sequence or found.first_sequence

    async def fork(self, live: LiveSession, wanted: ForkSession, successor: Successor | None = None) -> LiveSession:
        """A new session that begins as this one was, for the same agent or another; this one does not notice."""
        session = live.core
        found = await self._begins_with(live, wanted.turn)
        agent, spec = successor or Successor(session.record.agent, session.settings)
        new = await self._sessions.creation.sibling(session, wanted.key, agent, spec)
        memory = _memory(session, found) if agent == session.record.agent else None

        async def beginning(made: Workspace, frozen: FrozenState) -> list[Draft]:
            return await self._beginning(session, new, wanted, found, made, frozen, memory)

        return await self._forked(session, new, found, beginning, with_memory=memory is not None)

    async def branch(
        self, live: LiveSession, key: str, spec: SessionSpec, title: str | None, labels: dict[str, str]
    ) -> LiveSession:
        """A new session with the files of this one as they are now, and nothing of the conversation."""
        session = live.core
        found = await self._begins_with(live, None)
        new = await self._sessions.creation.sibling(session, key, session.record.agent, spec)

        async def beginning(made: Workspace, frozen: FrozenState) -> list[Draft]:
            own = SnapshotCreatedData(
                snapshot_id=frozen.id,
                workspace_id=made.id,
                turn=0,
                tree=frozen.tree,
                note=f"branch of turn {found.turn}",
                too_large=frozen.too_large,
            )
            return deed(
                drafts.started({"agent": new.agent, "key": new.key, "forked_from": session.id}),
                drafts.info(title=title, title_chosen=True, labels=labels),
                drafts.workspace(created(made)),
                drafts.snapshot(own),
                drafts.status("running"),
            )

        return await self._forked(session, new, found, beginning, with_memory=False)

    async def _begins_with(self, live: LiveSession, turn: int | None) -> Snapshot:
        """The files that a fork of a turn begins with; of none, those of now, but for the turn under way."""
        session = live.core
        workspace_of(session)
        _refuse_in_place(session, "forked")
        await live.chores.do(patience=REQUEST_SECONDS)
        await live.turns.go_on()
        state = session.state
        if turn is not None:
            return snapshot_at(session.id, await self._snapshots(session), turn)
        head = turn_before(state.turn) if state.turn is not None else state.stands_at
        return snapshot_after(session.id, await self._snapshots(session), head)

    async def _forked(
        self,
        session: SessionCore,
        new: NewSession,
        found: Snapshot,
        beginning: Callable[[Workspace, FrozenState], Awaitable[list[Draft]]],
        *,
        with_memory: bool,
    ) -> LiveSession:
        workspaces = self._workspaces(session)
        made = await workspaces.fork(found.snapshot_id, session=new.id, with_memory=with_memory)

        async def undo() -> None:
            await workspaces.destroy(made.id)
            await workspaces.forget(new.id)  # the home that was made for it

        async with async_undone_by(undo):
            note = f"fork of turn {found.turn}"
            frozen = await workspaces.snapshot(made.id, note, agent=new.agent, session=new.id)
            return await self._sessions.creation.insert(new, await beginning(made, frozen))

    async def _beginning(
        self,
        session: SessionCore,
        new: NewSession,
        wanted: ForkSession,
        found: Snapshot,
        made: Workspace,
        frozen: FrozenState,
        memory: str | None,
    ) -> list[Draft]:
        copied, first_agent = await _copied(pages(self._sessions.store, session.id, 0), found.sequence)
        turns = sum(draft.type == "turn.started" for draft in copied)
        own = SnapshotCreatedData(
            snapshot_id=frozen.id,
            workspace_id=made.id,
            turn=turns,
            tree=frozen.tree,
            turn_id=found.turn_id,
            note=f"fork of turn {found.turn}",
            native_session_id=found.native_session_id,
            memory_kept=frozen.memory_kept and memory is not None,
            too_large=frozen.too_large,
        )
        origin = SessionForkedData(
            parent_id=session.id, turn=found.turn, snapshot_id=found.snapshot_id, native_session_id=memory
        )
        title = wanted.title or (fork_title(session.state.title) if session.state.title else None)
        is_chosen = wanted.title is not None or session.state.title_chosen
        return [
            *deed(
                drafts.started(
                    {"agent": first_agent or new.agent, "key": new.key, "forked_from": session.id, "turn": found.turn}
                )
            ),
            *copied,
            *deed(
                drafts.info(title=title, title_chosen=is_chosen, labels=session.state.labels or None),
                drafts.workspace(created(made)),
                drafts.snapshot(own),
                drafts.forked(origin),
                *_new_agent(_last_agent(copied, first_agent or new.agent), new),
                drafts.status("running"),
            ),
        ]


async def _comments_back(session: SessionCore, sequence: int) -> list[Draft]:
    """That the comments of prompts which came after an event wait to be sent again: the agent forgets them."""
    if all(comment.prompt_id is None for comment in session.state.comments):
        return []
    later = await session.reads.messages_since(session.id, sequence)
    return comments_back(session, {message.item.item_id.removeprefix("itm_") for message in later})


def _refuse_in_place(session: SessionCore, what: str) -> None:
    """Nobody's own files are made what they were as a whole."""
    if session.record.is_in_place:
        hint = "Work on a copy instead: a session with `repo` of mode `folder`."
        raise Unprocessable(reason=f"{session.record.cwd} is a folder of your own, so it cannot be {what}. {hint}")


def _refuse_unless_idle(session: SessionCore, verb: str) -> None:
    state = session.state
    if state.turn is not None:
        raise SessionBusy(session=session.id, turn=state.turn.turn_id)
    if state.status != "running":
        raise InvalidTransition(session=session.id, status=state.status, verb=verb)


def _memory(session: SessionCore, found: Snapshot) -> str | None:
    """The conversation that the agent's own memory goes on with, if it was kept and is of the agent that has it now."""
    is_of_another = found.sequence <= session.state.agent_since
    return found.native_session_id if found.memory_kept and not is_of_another else None


def _last_agent(copied: list[Draft], first: str) -> str:
    """Who had the session at the end of these events."""
    agents = [draft.data.to_agent for draft in copied if isinstance(draft.data, SessionHandoffData)]
    return agents[-1] if agents else first


def _new_agent(before: str, new: NewSession) -> list[Draft]:
    """That a fork has another agent than the turns it begins with."""
    if new.agent == before:
        return []
    return [drafts.handoff(SessionHandoffData(status="done", from_agent=before, to_agent=new.agent))]


def _is_copied(event: AnyEvent | UnknownEvent) -> bool:
    return event.type in _COPIED or (isinstance(event, SessionHandoff) and event.data.status == "done")


async def _copied(pages: AsyncIterator[list[StoredEvent]], last: int) -> tuple[list[Draft], str | None]:
    """The events up to one that a fork begins with, and the agent that began.

    What was rewound is left out, so that its turns are in a row; a rewind does not take the session from its agent.
    """
    copied: list[tuple[int, Draft]] = []
    turns, agent = 0, None
    async for page in pages:
        for stored in page:
            if stored.number > last:
                return [draft for _, draft in copied], agent
            event = decode_event(stored.body)
            if isinstance(event, SessionStarted):
                agent = (event.data.metadata or {}).get("agent")
            elif isinstance(event, SessionRewound):
                upto = event.data.sequence
                copied = [each for each in copied if each[0] <= upto or each[1].type == "session.handoff"]
                turns = sum(draft.type == "turn.started" for _, draft in copied)
            elif _is_copied(event):
                turns += isinstance(event, TurnStarted)
                data = event.data
                if isinstance(event, SnapshotCreated):
                    data = msgspec.structs.replace(event.data, turn=turns)
                source: EventSource = "agent" if event.source == "agent" else "daemon"
                draft = Draft(
                    event.type,
                    data,
                    source=source,
                    synthetic=event.synthetic,
                    time=event.time,
                    actor=event.actor,
                )
                copied.append((stored.number, draft))
    return [draft for _, draft in copied], agent
