"""The agent of a session: started when it is needed, taken over from an earlier server, put to sleep when idle."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ostler.base.errors import AgentLost, AgentStartFailed
from ostler.base.tasks import Background
from ostler.link.protocol import Connection, Runner
from ostler.server.sessions import drafts
from ostler.server.sessions.attachments import SessionAttachments
from ostler.server.sessions.creation import agent_spec
from ostler.server.sessions.log.session_log import SessionLog
from ostler.server.sessions.secrets import keep_secret
from ostler.server.sessions.settings import settings_now
from ostler.server.store.records import Progress, SessionRecord
from ostler.wire.running import AgentExit, AgentSpec, Connected, Draft, ProcessRef, Prompt
from ostler.wire.sessions import ProcessInfo


class Served(Protocol):
    """A session as its agent sees it."""

    record: SessionRecord
    log: SessionLog
    background: Background
    attachments: SessionAttachments

    def look_around(self) -> None:
        """Something came to its end."""

    @property
    def may_sleep(self) -> bool:
        """Whether nobody needs the process now."""

    async def delivered(self, events: Sequence[Draft], progress: Progress) -> None:
        """Store what the agent did."""

    async def disconnected(self, end: AgentExit) -> None:
        """The process is gone."""


class _Link:
    """One process of the agent: passes its reports on and remembers whether it still lives."""

    def __init__(self, session: Served, start: int, links: "set[_Link]") -> None:
        self.alive = True
        self.connection: Connection | None = None
        self.report: Connected | None = None
        self._session = session
        self._start = start
        self._links = links

    async def connected(self, report: Connected) -> None:
        self.report = report

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        await self._session.delivered(drafts, Progress(self._start, step))

    async def closed(self, end: AgentExit) -> None:
        self.alive = False
        await self._session.disconnected(end)
        self._links.discard(self)
        self._session.look_around()


class SessionAgent:
    """One agent, which may be many processes one after another."""

    def __init__(self, session: Served, runner: Runner, idle_seconds: float) -> None:
        self._session = session
        self._runner = runner
        self._idle_seconds = idle_seconds
        self._idle_timer: asyncio.TimerHandle | None = None
        self._falling_asleep: asyncio.Task[None] | None = None
        self._link: _Link | None = None
        self._links: set[_Link] = set()
        """All that may still have something to say."""

    @property
    def is_there(self) -> bool:
        """Whether there is a process, though it may have stopped to listen."""
        return bool(self._links)

    @property
    def connection(self) -> Connection | None:
        """The way to its process, while one runs."""
        return self._link.connection if self._link is not None and self._link.alive else None

    @property
    def process(self) -> ProcessInfo | None:
        """Who runs, for operators."""
        link = self._link
        return link.report.process if link is not None and link.alive and link.report is not None else None

    async def prompt(self, prompt: Prompt) -> None:
        """Hand a prompt over, to a new process if there is none; one that remembers nothing is told what was said."""
        self.stay_awake()
        if self._falling_asleep is not None:
            await asyncio.shield(self._falling_asleep)
        fresh = self.connection is None
        connection = self.connection or await self._started()
        if fresh and not self._remembers:
            prompt = await self._session.log.with_history(prompt)
        images = await self._session.attachments.shown(prompt.parts)
        await connection.prompt(msgspec.structs.replace(prompt, images=images))

    @property
    def _remembers(self) -> bool:
        return self._link is not None and self._link.report is not None and self._link.report.remembers

    def forget(self) -> None:
        """Its process is gone, though nobody has said so yet."""
        self._link = None

    async def adopt(self, survivor: ProcessRef, *, known: int) -> Connected:
        """Go on with a process that an earlier server started."""
        link = _Link(self._session, survivor.start, self._links)
        link.connection = await self._runner.adopt(survivor, link, known=known)
        self._begin(link)
        if link.report is None:
            raise AgentLost(reason="its runner reported nothing of it.")
        return link.report

    async def _started(self) -> Connection:
        spec = self._spec()
        try:
            return await self._connect(spec)
        except AgentStartFailed as error:
            if spec.resume is None or error.fields["exit_code"] is None:
                raise
            # it ended by itself, so it may have lost its memory: the log takes the place of that
            lost = f"The agent could not go on with its own conversation and is started anew. {error}"
            await self._session.log.append([drafts.warning(lost, "resume_failed")], Progress(spec.start, 0))
        return await self._connect(msgspec.structs.replace(spec, resume=None))

    async def _connect(self, spec: AgentSpec) -> Connection:
        link = self._link = _Link(self._session, spec.start, self._links)
        link.connection = await self._runner.connect(spec, link)
        self._begin(link)
        return link.connection

    def _begin(self, link: _Link) -> None:
        self._link = link
        if link.alive:  # it may have ended by now
            self._links.add(link)

    def _spec(self) -> AgentSpec:
        record, state = self._session.record, self._session.log.state
        keep_secret(record.spec)
        return agent_spec(
            record.id,
            record.agent,
            settings_now(record, state),
            start=state.starts + 1,
            resume=state.native_session_id,
            workspace=state.workspace,
        )

    # Sleep

    def rest(self) -> None:
        """Nothing is to be done: end the process if that stays so for a while; the next prompt starts another."""
        self.stay_awake()
        if self._idle_seconds > 0 and self.connection is not None:
            self._idle_timer = asyncio.get_running_loop().call_later(self._idle_seconds, self._fall_asleep)

    def stay_awake(self) -> None:
        """Somebody needs the process."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _fall_asleep(self) -> None:
        connection = self.connection
        if connection is not None and self._link is not None and self._session.may_sleep:
            self._link.alive = False  # a prompt that comes now waits until this process is gone, and starts another
            self._falling_asleep = self._session.background.spawn(connection.close(force=False))
