"""What the API can ask of sessions: finds them, creates them, keeps one live object for each that is in use."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import (
    AskNotFound,
    AskResolved,
    SessionAlreadyExists,
    SessionNotFound,
)
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.link.protocol import Runner
from ostler.server.sessions import drafts
from ostler.server.sessions.attachments import prompt_parts
from ostler.server.sessions.creation import agent_spec, first_events, make_workspace, new_session
from ostler.server.sessions.feed import Feed
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log import ProjectFeed, SessionLog
from ostler.server.sessions.recovery import needs_recovery, recovery_drafts
from ostler.server.sessions.state import TERMINAL, SessionState
from ostler.server.sessions.transcript import Transcript
from ostler.server.sessions.trash import Trash
from ostler.server.store import queries, statements
from ostler.server.store.records import NewSession, SessionFilter, SessionRecord, StoredEvent
from ostler.server.store.store import Store
from ostler.wire.events import decode_event
from ostler.wire.parts import PromptPart
from ostler.wire.sessions import (
    Ask,
    CreateSession,
    Message,
    PermissionReply,
    PromptReceipt,
    SendMessage,
    Turn,
    UpdateSession,
)

log = Log(__name__)
_state = msgspec.json.Decoder(SessionState)
_PAGE = 5000


class Sessions:
    """All sessions of this server."""

    def __init__(
        self, *, store: Store, runner: Runner, clock: Clock, state_dir: Path, buffer_bytes: int, last_position: int
    ) -> None:
        self.store = store
        self.project_feed = ProjectFeed(Feed(last=last_position, limit_bytes=buffer_bytes))
        self._runner = runner
        self._clock = clock
        self._folder = state_dir / "sessions"
        self._trash = Trash(state_dir / "trash")
        self._buffer_bytes = buffer_bytes
        self._live: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()

    # Finding

    async def find(self, project: str, id_or_key: str) -> SessionRecord:
        """The row of a session, by id or key."""
        record = await self.store.read(queries.find_session, project, id_or_key)
        if record is None:
            raise SessionNotFound(session=id_or_key)
        return record

    async def live(self, project: str, id_or_key: str) -> LiveSession:
        """The one live object of a session; hold on to it while you use it."""
        if (known := self._live.get(id_or_key)) is not None and known.record.project == project:
            return known
        # Read and registered in one step: an await in between could bring a row that is older than another's append.
        record = self.store.read_now(queries.find_session, project, id_or_key)
        if record is None:
            raise SessionNotFound(session=id_or_key)
        return self._live.get(record.id) or self._enliven(record)

    def _enliven(self, record: SessionRecord) -> LiveSession:
        state = _state.decode(record.state)
        session_log = self._log_of(record.id, record.agent, state, record.last_sequence, record.updated_at)
        return self._register(record, session_log)

    def _home(self, session_id: str) -> str:
        return str(self._folder / session_id / "home")

    def _register(self, record: SessionRecord, session_log: SessionLog) -> LiveSession:
        live = LiveSession(record=record, session_log=session_log, runner=self._runner, home=self._home(record.id))
        self._live[record.id] = live
        return live

    def _log_of(self, session_id: str, agent: str, state: SessionState, last: int, updated_at: str) -> SessionLog:
        return SessionLog(
            session_id=session_id,
            agent=agent,
            state=state,
            last=last,
            updated_at=updated_at,
            store=self.store,
            clock=self._clock,
            project_feed=self.project_feed,
            buffer_bytes=self._buffer_bytes,
        )

    def state_of(self, record: SessionRecord) -> tuple[SessionState, int, str]:
        """What the log of a session adds up to, its last sequence, and when that was written."""
        if (live := self._live.get(record.id)) is not None:
            return live.log.state, live.log.last, live.log.updated_at
        return _state.decode(record.state), record.last_sequence, record.updated_at

    async def page(self, wanted: SessionFilter) -> tuple[list[SessionRecord], int]:
        """One page of sessions and how many match."""
        return await self.store.read(queries.list_sessions, wanted)

    # Creating and deleting

    async def create(self, project: str, wanted: CreateSession) -> tuple[LiveSession, bool]:
        """A new session, or the one that has this key already; says whether it is new."""
        new = new_session(project, wanted, folder=self._folder, created_at=self._clock.now())
        agent = await self._runner.validate(agent_spec(new.id, new.agent, new.spec, home=self._home(new.id)))
        new = msgspec.structs.replace(new, agent=agent)
        if wanted.key and (known := self.store.read_now(queries.find_session, project, new.key)):
            return self._same_agent(known, new), False
        return await self._insert(new, wanted)

    def _same_agent(self, known: SessionRecord, new: NewSession) -> LiveSession:
        if known.agent != new.agent:
            raise SessionAlreadyExists(key=known.key, agent=known.agent)
        return self._live.get(known.id) or self._enliven(known)

    async def _insert(self, new: NewSession, wanted: CreateSession) -> tuple[LiveSession, bool]:
        session_log = self._log_of(new.id, new.agent, SessionState(), 0, new.created_at)
        first = session_log.prepare(first_events(new, wanted))
        if wanted.cwd is None:
            make_workspace(new.spec.cwd)
        try:
            await session_log.commit(first, self.store.write(statements.insert_session, new, first))
        except sqlite3.IntegrityError:  # another client created the same key a moment ago
            known = await self.live(new.project, new.key)
            return self._same_agent(known.record, new), False
        record = await self.find(new.project, new.id)
        return self._register(record, session_log), True

    async def update(self, project: str, id_or_key: str, wanted: UpdateSession) -> LiveSession:
        """Change title or labels."""
        live = await self.live(project, id_or_key)
        if wanted.title is not None or wanted.labels is not None:
            await live.log.append([drafts.info(title=wanted.title, labels=wanted.labels)])
        return live

    async def delete(self, project: str, id_or_key: str) -> None:
        """End a session and remove everything of it; deleting it again does nothing."""
        try:
            live = await self.live(project, id_or_key)
        except SessionNotFound:
            if await self.store.read(queries.was_deleted, project, id_or_key):
                return
            raise
        await live.delete()
        await self.store.write(statements.delete_session, live.id, self._clock.now())
        self._live.pop(live.id, None)
        self._trash.take(self._folder / live.id)

    # Conversation

    async def send(self, live: LiveSession, wanted: SendMessage) -> PromptReceipt:
        """Hand a prompt to a session."""
        live.refuse_if_over("prompts")
        return await live.send(await self._prompt_parts(live, wanted), wanted.when_busy)

    async def _prompt_parts(self, live: LiveSession, wanted: SendMessage) -> list[PromptPart]:
        folder = self._folder / live.id / "attachments" / new_id("att")
        if wanted.parts is None:
            return prompt_parts(wanted.message, None, folder)
        return await asyncio.to_thread(prompt_parts, wanted.message, wanted.parts, folder)  # images may be large

    async def messages(self, record: SessionRecord) -> list[Message]:
        """The folded transcript."""
        return (await self._transcript(record.id, 0)).messages()

    async def _transcript(self, session_id: str, offset: int) -> Transcript:
        transcript = Transcript()
        async for page in self.pages(session_id, offset):
            transcript.add(decode_event(event.body) for event in page)
        return transcript

    async def pages(self, session_id: str, offset: int) -> AsyncIterator[list[StoredEvent]]:
        """The whole log after the offset, page by page."""
        while page := await self.events(session_id, offset, _PAGE):
            yield page
            offset = page[-1].number

    async def events(self, session_id: str, offset: int, limit: int, *, raw: bool = False) -> list[StoredEvent]:
        """Stored events after the offset."""
        return await self.store.read(queries.session_events, session_id, offset, limit, raw)

    async def project_events(self, project: str, offset: int, limit: int) -> list[StoredEvent]:
        """Stored events of all sessions after a position."""
        return await self.store.read(queries.project_events, project, offset, limit)

    async def turns(self, session_id: str) -> list[Turn]:
        """All turns of a session."""
        return await self.store.read(queries.session_turns, session_id)

    # Asks

    async def asks(self, project: str, session_id: str | None, *, only_open: bool) -> list[Ask]:
        """The inbox."""
        return await self.store.read(queries.list_asks, project, session_id, only_open)

    async def reply_permission(
        self, live: LiveSession, ask_id: str, reply: PermissionReply, message: str | None
    ) -> Ask:
        """Decide a permission; the second one to try hears what was decided."""
        try:
            await live.reply_permission(ask_id, reply, message)
        except AskNotFound as error:
            raise await self._why_not_open(live, ask_id, error) from None
        return await self._ask(live, ask_id)

    async def answer_question(
        self, live: LiveSession, ask_id: str, answers: tuple[tuple[str, ...], ...] | None, message: str | None
    ) -> Ask:
        """Answer or decline a question; the second one to try hears what was decided."""
        try:
            await live.answer_question(ask_id, answers, message)
        except AskNotFound as error:
            raise await self._why_not_open(live, ask_id, error) from None
        return await self._ask(live, ask_id)

    async def _why_not_open(self, live: LiveSession, ask_id: str, error: AskNotFound) -> AskNotFound | AskResolved:
        await self.store.write(_nothing)  # the winner's answer may still be on its way to the disk
        known = await self.store.read(queries.find_ask, live.id, ask_id)
        if known is None or known.kind != error.fields["kind"]:
            return error
        return AskResolved(kind=known.kind, ask=ask_id, outcome=_outcome(known))

    async def _ask(self, live: LiveSession, ask_id: str) -> Ask:
        known = await self.store.read(queries.find_ask, live.id, ask_id)
        if known is None:
            raise AskNotFound(session=live.id, kind="ask", ask=ask_id)
        return known

    # Life of the server

    async def recover(self) -> None:
        """Bring sessions to rest that an earlier server left in the middle of something; go on with their queues."""
        self._trash.empty()
        for record in await self.store.read(queries.unfinished_sessions, tuple(TERMINAL)):
            state = _state.decode(record.state)
            if needs_recovery(state) or state.queue:
                await self._recover(self._enliven(record))

    async def _recover(self, live: LiveSession) -> None:
        state = live.log.state
        since = state.turn.first_sequence - 1 if state.turn else live.log.last
        transcript = await self._transcript(live.id, since)
        if written := recovery_drafts(state, transcript):
            log.info("session.recovered", session_id=live.id, status=state.status)
            await live.log.append(written)
        await live.begin_next()

    async def close_agents(self) -> None:
        """End every turn and every agent; the sessions stay."""
        await asyncio.gather(*(live.shut_down() for live in list(self._live.values())), return_exceptions=True)

    def close(self) -> None:
        """Let every event stream end."""
        for live in list(self._live.values()):
            live.log.feed.close()
        self.project_feed.feed.close()
        self._trash.close()


def _nothing(_: sqlite3.Connection) -> None:
    """A job that only waits for those before it."""


def _outcome(ask: Ask) -> str:
    if ask.question is not None and ask.question.response is not None:
        return f"answered with '{ask.question.response}'"
    return {"accept": "allowed once", "accept_for_session": "allowed for the session", "reject": "rejected"}.get(
        ask.status, ask.status
    )
