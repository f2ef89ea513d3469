"""What the API can ask of sessions: finds them, creates them, keeps one live object for each that is in use."""

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import (
    AgentLost,
    AskNotFound,
    AskResolved,
    SessionAlreadyExists,
    SessionNotFound,
    SettingsInUse,
    StoreUnavailable,
)
from ostler.base.ids import follow, new_id
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.link.protocol import Runner
from ostler.server.sessions import drafts
from ostler.server.sessions.admission import Admission, check_choices, check_servers
from ostler.server.sessions.attachments import prompt_parts
from ostler.server.sessions.clearing import Clearing
from ostler.server.sessions.creation import agent_spec, checked_key, first_events, make_workspace, new_session
from ostler.server.sessions.history import transcript_of
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log import ProjectFeeds, SessionLog
from ostler.server.sessions.reading import Reading
from ostler.server.sessions.recovery import answer_of, go_on, needs_recovery, unheard
from ostler.server.sessions.settings import SessionChange, changes
from ostler.server.sessions.state import TERMINAL, SessionState
from ostler.server.sessions.trash import Trash
from ostler.server.sessions.work import Work
from ostler.server.store.claims import next_claim
from ostler.server.store.errors import KeyTaken
from ostler.server.store.protocol import Store
from ostler.server.store.records import DONE, Done, NewSession, SessionFilter, SessionRecord
from ostler.wire.events import TurnEnded
from ostler.wire.parts import PromptPart
from ostler.wire.running import Connected, Draft, KeptProcess
from ostler.wire.sessions import (
    Ask,
    CreateSession,
    PermissionReply,
    ProcessInfo,
    PromptReceipt,
    SendMessage,
    UpdateSession,
)
from ostler.wire.tasks import TaskSpec

log = Log(__name__)
_OWN_NAMES: Mapping[str, str] = {}
_NO_CHANGE = SessionChange()
_state = msgspec.json.Decoder(SessionState)


class Sessions(Reading):
    """All sessions of this server."""

    def __init__(
        self,
        *,
        store: Store,
        runner: Runner,
        work: Work,
        clock: Clock,
        state_dir: Path,
        buffer_bytes: int,
        last_position: int,
        admission: Admission,
        max_log_bytes: int = 0,
        idle_seconds: float = 0.0,
        wrap_up_seconds: float = 0.0,
        default_instructions: str = "",
    ) -> None:
        super().__init__(store)
        self.project_feeds = ProjectFeeds(last=last_position, limit_bytes=buffer_bytes)
        self._runner = runner
        self._work = work
        self._clock = clock
        self._folder = state_dir / "sessions"
        self._trash = Trash(state_dir / "trash")
        self._background = Background(log, "sessions.task_failed")
        self._clearing = Clearing(store, self._background)
        self._buffer_bytes = buffer_bytes
        self._max_log_bytes = max_log_bytes
        self._idle_seconds = idle_seconds
        self._wrap_up_seconds = wrap_up_seconds
        self._default_instructions = default_instructions
        self._admission = admission
        self._opening = asyncio.Lock()
        self._live: WeakValueDictionary[str, LiveSession] = WeakValueDictionary()

    # Finding

    async def find(self, project: str, id_or_key: str) -> SessionRecord:
        """The row of a session, by id or key."""
        record = await self.store.find_session(project, id_or_key)
        if record is None:
            raise SessionNotFound(session=id_or_key)
        return record

    async def live(self, project: str, id_or_key: str) -> LiveSession:
        """The one live object of a session; hold on to it while you use it."""
        if (known := self._live.get(id_or_key)) is not None and known.record.project == project:
            return known
        async with self._opening:  # one at a time: what is not live stays so, and nobody appends to it
            held = list(self._live.values())  # and what is live stays so until the row was read
            record = await self.find(project, id_or_key)
            live = self._live.get(record.id) or self._enliven(record)
            del held
            return live

    def _enliven(self, record: SessionRecord) -> LiveSession:
        state = _state.decode(record.state)
        session_log = self._log_of(
            record.id, record.project, record.agent, state, record.last_sequence, record.updated_at
        )
        return self._register(record, session_log)

    def home(self, session_id: str) -> str:
        """The folder of the home of a session's agent."""
        return str(self._folder / session_id / "home")

    def attachments(self, session_id: str) -> Path:
        """The folder of the images that came with a session's prompts."""
        return self._folder / session_id / "attachments"

    def _register(self, record: SessionRecord, session_log: SessionLog) -> LiveSession:
        live = LiveSession(
            record=record,
            session_log=session_log,
            runner=self._runner,
            work=self._work,
            home=self.home(record.id),
            idle_seconds=self._idle_seconds,
            wrap_up_seconds=self._wrap_up_seconds,
        )
        self._live[record.id] = live
        return live

    def _log_of(
        self, session_id: str, project: str, agent: str, state: SessionState, last: int, updated_at: str
    ) -> SessionLog:
        return SessionLog(
            session_id=session_id,
            agent=agent,
            state=state,
            last=last,
            updated_at=updated_at,
            store=self.store,
            clock=self._clock,
            project_feed=self.project_feeds.of(project),
            buffer_bytes=self._buffer_bytes,
            most_bytes=self._max_log_bytes,
        )

    def state_of(self, record: SessionRecord) -> tuple[SessionState, int, str]:
        """What the log of a session adds up to, its last sequence, and when that was written."""
        if (live := self._live.get(record.id)) is not None:
            return live.log.shown, live.log.last, live.log.updated_at
        return _state.decode(record.state), record.last_sequence, record.updated_at

    def process_of(self, record: SessionRecord) -> ProcessInfo | None:
        """The process of the session's agent, while one runs."""
        live = self._live.get(record.id)
        return live.process if live is not None else None

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

    # Creating and deleting

    async def create(
        self, project: str, wanted: CreateSession, task: TaskSpec | None = None
    ) -> tuple[LiveSession, bool]:
        """A new session, or the one that has this key already; says whether it is new."""
        claim = next_claim()
        if (known_id := await self._done(claim)) is not None:
            return await self.live(project, known_id.decode()), True
        new = new_session(
            project,
            wanted,
            folder=self._folder,
            created_at=self._clock.now(),
            task=task,
            default_instructions=self._default_instructions,
            admission=self._admission,
        )
        agent = await self._runner.validate(agent_spec(new.id, new.agent, new.spec, home=self.home(new.id)))
        spec = new.spec
        await self._admission.check_addresses(spec)
        if wanted.cwd is not None:
            await self._work.check_folder(wanted.cwd)
        if spec.workspace is not None:
            spec = msgspec.structs.replace(spec, workspace=await self._work.checked(spec.workspace, task))
        new = msgspec.structs.replace(new, agent=agent, spec=spec)
        if wanted.key and (known := await self.store.find_session(project, new.key)):
            return await self._same_agent(known, new), False
        return await self._insert(new, wanted, claim)

    async def _same_agent(self, known: SessionRecord, new: NewSession) -> LiveSession:
        if known.agent != new.agent:
            raise SessionAlreadyExists(key=known.key, agent=known.agent)
        return await self.live(known.project, known.id)

    async def _insert(self, new: NewSession, wanted: CreateSession, claim: str | None) -> tuple[LiveSession, bool]:
        session_log = self._log_of(new.id, new.project, new.agent, SessionState(), 0, new.created_at)
        first = session_log.prepare(
            first_events(new, wanted), done=Done(claim, new.id.encode()) if claim is not None else None
        )
        if wanted.cwd is None and wanted.repo is None:
            make_workspace(new.spec.cwd)
        try:
            await session_log.commit(first, self.store.create_session(new, first))
        except KeyTaken:  # another client created the same key a moment ago
            self._forget(new.id)
            return await self._same_agent(await self.find(new.project, new.key), new), False
        except StoreUnavailable:
            self._forget(new.id)
            raise
        live = await self.live(new.project, new.id)  # another client may have it in use already
        await live.go_on()
        return live, True

    def _forget(self, session_id: str) -> None:
        """Remove the folder of a session that never came to be."""
        shutil.rmtree(self._folder / session_id, ignore_errors=True)

    async def sibling(self, live: LiveSession, key: str | None) -> NewSession:
        """A session like another one that delivers nothing and tells nobody by itself; raises if the key is taken."""
        session_id = new_id("ses")
        checked = checked_key(key)
        if checked and (known := await self.store.find_session(live.record.project, checked)):
            raise SessionAlreadyExists(key=checked, agent=known.agent)
        return NewSession(
            id=session_id,
            project=live.record.project,
            key=checked or session_id,
            agent=live.record.agent,
            created_at=self._clock.now(),
            spec=msgspec.structs.replace(live.record.spec, task=_open_ended(live.record.spec.task)),
        )

    async def insert(self, new: NewSession, begun: list[Draft]) -> LiveSession:
        """Store a session that begins with these events; raises if its key was taken meanwhile."""
        session_log = self._log_of(new.id, new.project, new.agent, SessionState(), 0, new.created_at)
        first = session_log.prepare(begun)
        try:
            await session_log.commit(first, self.store.create_session(new, first))
        except KeyTaken:
            raise SessionAlreadyExists(key=new.key, agent=new.agent) from None
        return await self.live(new.project, new.id)

    async def update(self, project: str, id_or_key: str, wanted: UpdateSession) -> LiveSession:
        """Change title or labels."""
        live = await self.live(project, id_or_key)
        if wanted.title is not None or wanted.labels is not None:
            await live.log.append([drafts.info(title=wanted.title, labels=wanted.labels)])
        return live

    async def configure(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str] = _OWN_NAMES) -> None:
        """Change how the agent works; between two turns only, since its process is started anew with the next one.

        `names` are what the client calls the fields, where it has other words.
        """
        await self._change(live, wanted, names)
        await live.go_on()

    async def _change(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> None:
        live.refuse_if_over("changes")
        if self._open_changes(live, wanted, names):
            await live.chores.alone(lambda: self._configure(live, wanted, names))

    def refuse_changes(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str] = _OWN_NAMES) -> None:
        """Raise if a request that joins a turn wants it to be another one."""
        if changed := changes(live.record.spec, live.log.state, wanted):
            raise _in_use(live, changed, names)

    def _open_changes(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> dict[str, Any]:
        """What is to be changed; raises if it cannot be now."""
        changed = changes(live.record.spec, live.log.state, wanted)
        if changed and (live.log.state.turn is not None or live.log.state.queue):
            raise _in_use(live, changed, names)
        return changed

    async def _configure(self, live: LiveSession, wanted: SessionChange, names: Mapping[str, str]) -> None:
        changed = self._open_changes(live, wanted, names)
        check_choices(wanted, names)
        check_servers(wanted.mcp_servers, names.get("mcp_servers", "mcp_servers"))
        spec = msgspec.structs.replace(live.record.spec, **changed)
        await self._runner.validate(agent_spec(live.id, live.record.agent, spec, home=self.home(live.id)))
        await self._admission.check_addresses(spec)
        await live.disconnect(force=False)  # first, or a crash would leave an agent that works the old way
        await self.store.update_spec(live.id, spec)
        live.record = msgspec.structs.replace(live.record, spec=spec)
        await live.log.append([drafts.settings(wanted)])

    async def delete(self, project: str, id_or_key: str) -> None:
        """End a session and remove everything of it; deleting it again does nothing."""
        try:
            live = await self.live(project, id_or_key)
        except SessionNotFound:
            if await self.store.was_deleted(project, id_or_key):
                return
            raise
        await live.delete()
        async with self._opening:  # or a row that was read before would bring it back
            await self.store.delete_session(live.id, self._clock.now())
            self._live.pop(live.id, None)
        self._clearing.add([live.id])
        await live.chores.dispose()
        self._trash.take(self._folder / live.id)

    # Conversation

    async def send(
        self,
        live: LiveSession,
        wanted: SendMessage,
        change: SessionChange = _NO_CHANGE,
        names: Mapping[str, str] = _OWN_NAMES,
    ) -> PromptReceipt:
        """Hand a prompt to a session, whose agent works as the change says from this turn on."""
        claim = next_claim()
        if (known := await self._done(claim)) is not None:
            return msgspec.json.decode(known, type=PromptReceipt)
        live.refuse_if_over("prompts")
        await live.log.measure()
        parts = await self._prompt_parts(live, wanted)
        if change == _NO_CHANGE:
            return await live.send(parts, wanted.when_busy, claim)
        await self._change(live, change, names)
        receipt = await live.send(parts, wanted.when_busy, claim)  # no pause since, so nobody has changed it again
        await live.go_on()
        return receipt

    async def _done(self, claim: str | None) -> bytes | None:
        """What came of an act that an earlier server did and had no time to answer for."""
        known = await self.store.find_response(DONE, claim) if claim is not None else None
        return known.body if known is not None else None

    async def _prompt_parts(self, live: LiveSession, wanted: SendMessage) -> list[PromptPart]:
        folder = self.attachments(live.id) / new_id("att")
        if wanted.parts is None:
            return prompt_parts(wanted.message, None, folder)
        return await asyncio.to_thread(prompt_parts, wanted.message, wanted.parts, folder)  # images may be large

    # Asks

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
        await self.store.settled()  # the winner's answer may still be on its way to the disk
        known = await self.store.logs.find_ask(live.id, ask_id)
        if known is None or known.kind != error.fields["kind"]:
            return error
        return AskResolved(kind=known.kind, ask=ask_id, outcome=_outcome(known))

    async def _ask(self, live: LiveSession, ask_id: str) -> Ask:
        known = await self.store.logs.find_ask(live.id, ask_id)
        if known is None:
            raise AskNotFound(session=live.id, kind="ask", ask=ask_id)
        return known

    # Life of the server

    async def recover(self) -> None:
        """Go on where an earlier server stopped: with the agents that are still there, and with what was begun."""
        self._trash.empty()
        self._clearing.add(await self.store.deleted_with_events())
        known = await self.store.session_ids()
        self._remove_strays(known)
        if known:
            follow(max(known))  # the list is sorted by id, and the clock may have been set back since
        await self._work.tidy(await self.store.workspaces_in_use())
        kept = {process.session_id: process for process in await self._runner.kept()}

        def is_wanted(session_id: str, state: bytes) -> bool:
            return session_id in kept or needs_recovery(_state.decode(state))

        wanted = await self.store.unfinished_sessions(TERMINAL, is_wanted)
        await asyncio.gather(*(self._recover(self._enliven(record), kept.pop(record.id, None)) for record in wanted))
        await asyncio.gather(*map(self._runner.discard, kept.values()))

    def _remove_strays(self, known: set[str]) -> None:
        """Remove folders of sessions that an earlier server had not yet created, or had just deleted."""
        for path in self._folder.glob("ses_*"):
            if path.name not in known:
                self._trash.take(path)

    async def _recover(self, live: LiveSession, kept: KeptProcess | None) -> None:
        try:
            await self._go_on(live, kept)
        except Exception as error:  # one session must not keep all others from their server
            log.error("session.not_recovered", session_id=live.id, exc_info=error)

    async def _go_on(self, live: LiveSession, kept: KeptProcess | None) -> None:
        turn = live.log.state.turn  # an agent that is adopted may end it at once, and the next one may begin
        lost = AgentLost(reason="the machine stopped while it was there.") if self.store.was_cut else None
        found: Connected | None = None
        if kept is not None:
            adopted = await self._adopt(live, kept)
            lost, found = (adopted, None) if isinstance(adopted, AgentLost) else (lost, adopted)
        transcript = await transcript_of(self.store, live.id, turn.first_sequence - 1 if turn else live.log.last)
        log.info("session.recovered", session_id=live.id, status=live.log.state.status, adopted=found is not None)
        await go_on(live, found, turn, transcript, lost=lost)

    async def _adopt(self, live: LiveSession, kept: KeptProcess) -> Connected | AgentLost:
        known = await self.store.logs.last_step(live.id, kept.start)
        try:
            found = await live.agent.adopt(kept, known=known)
        except Exception as error:  # whatever is wrong with it: the session can go on with a new process
            log.error("session.not_adopted", session_id=live.id, exc_info=error)
            await self._runner.discard(kept)
            return error if isinstance(error, AgentLost) else AgentLost(reason="it could not be gone on with.")
        for ask_id in unheard(live, found):
            if (ask := await self.store.logs.find_ask(live.id, ask_id)) is not None:
                await live.tell(answer_of(ask))
        return found

    def at_work(self) -> dict[str, str]:
        """What to call each session with a turn under way, by id."""
        busy = [live for live in list(self._live.values()) if live.log.state.turn]
        return {live.id: f"{live.record.agent} ({live.log.state.title or live.record.key})" for live in busy}

    def leave(self) -> None:
        """The server stops and another goes on: nothing new begins."""
        for live in list(self._live.values()):
            live.leave()

    async def close_agents(self) -> None:
        """End every turn and every agent; the sessions stay."""
        await asyncio.gather(*(live.shut_down() for live in list(self._live.values())), return_exceptions=True)

    def close(self) -> None:
        """Let every event stream end."""
        for live in list(self._live.values()):
            live.log.feed.close()
        self.project_feeds.close()
        self._trash.close()


def _in_use(live: LiveSession, changed: Iterable[str], names: Mapping[str, str]) -> SettingsInUse:
    fields = [names.get(name, name) for name in changed]
    errors = {field: ["cannot be changed now"] for field in fields}
    return SettingsInUse(session=live.id, fields=", ".join(fields), errors=errors)


def _open_ended(task: TaskSpec | None) -> TaskSpec | None:
    """A task as a fork has it: whose it is and what it was about, but without an end of its own."""
    return msgspec.structs.replace(task, delivery=None, webhooks=(), keep_open=True) if task is not None else None


def _outcome(ask: Ask) -> str:
    if ask.question is not None and ask.question.response is not None:
        return f"answered with '{ask.question.response}'"
    return {"accept": "allowed once", "accept_for_session": "allowed for the session", "reject": "rejected"}.get(
        ask.status, ask.status
    )
