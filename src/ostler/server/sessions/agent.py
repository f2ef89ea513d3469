"""The agent of a session: started when it is needed, taken over from an earlier server, put to sleep when idle."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import msgspec

from ostler.base.errors import AgentExited, AgentLost, AgentStartFailed
from ostler.base.errors.runners import LinkLost, NotPlaced, RunnerUnavailable
from ostler.base.logs import Log
from ostler.link.protocol import Connection, Runner
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.creation import agent_spec
from ostler.server.sessions.secrets import keep_secret, names_for_agent, used_by
from ostler.server.sessions.session import SessionCore
from ostler.server.store.records import Progress, SessionSpec
from ostler.wire.running import AgentExit, AgentSpec, Answer, Connected, Continued, Draft, ProcessRef, Prompt
from ostler.wire.sessions import ProcessInfo

log = Log(__name__)


class _Link:
    """One process of the agent: passes its reports on and remembers whether it still lives."""

    def __init__(self, agent: "SessionAgent", start: int) -> None:
        self.alive = True
        self.connection: Connection | None = None
        self.report: Connected | None = None
        self.is_held = False
        """Whether the session stays in memory until it ends."""
        self.falls_asleep = False
        """Whether it is being ended because it has nothing to do."""
        self.is_cut = False
        """Whether its runner cannot be reached: what it did since is told when the process is adopted."""
        self._agent = agent
        self._start = start

    @property
    def remembers(self) -> bool:
        return self.report is not None and self.report.remembers

    async def connected(self, report: Connected) -> None:
        self.report = report
        self._agent.reached = report.reached

    async def deliver(self, drafts: Sequence[Draft], step: int) -> None:
        if self.is_cut:
            raise LinkLost(reason="a newer link has its place")
        await self._agent.delivered(drafts, Progress(self._start, step))

    async def closed(self, end: AgentExit) -> None:
        if self.is_cut:
            raise LinkLost(reason="a newer link has its place")
        self.alive = self.falls_asleep = False
        is_held, self.is_held = self.is_held, False
        self._agent.closed(end, is_held=is_held)


class SessionAgent:
    """One agent, which may be many processes one after another."""

    def __init__(
        self,
        session: SessionCore,
        runners: Runners,
        delivered: Callable[[Sequence[Draft], Progress], Awaitable[None]],
        idle_seconds: float,
        left_open: Callable[[AgentExit, str], None],
    ) -> None:
        """`delivered` stores what the agent did; `left_open` hears of a turn that another process is to go on with."""
        self._left_open = left_open
        self.delivered = delivered
        self.starting: asyncio.Task[None] | None = None
        """Hands the prompt of the newest turn over, to a process that is started first if need be."""
        self._session = session
        self._runners = runners
        self.reached = 0
        """How much its newest process had in its memory when it was ready, if it can go on with a turn."""
        self.was_lost = False
        """Whether the link broke while something was under way, and is not back."""
        self._away = not runners.is_linked(session.record.runner)
        self._waits = False
        self._idle_seconds = idle_seconds
        self._idle_timer: asyncio.TimerHandle | None = None
        self._falling_asleep: asyncio.Task[None] | None = None
        self._link: _Link | None = None
        self._waking = asyncio.Lock()
        """Held while a process is started, so that there is one."""
        self.adopting = asyncio.Lock()
        """Held while a process is adopted: who wants to end it waits until it is known."""

    @property
    def connection(self) -> Connection | None:
        """The way to its process, while one runs."""
        return self._link.connection if self._link is not None and self._link.alive else None

    @property
    def falls_asleep(self) -> bool:
        """Whether its process is being ended because it has nothing to do."""
        return self._link is not None and self._link.falls_asleep

    @property
    def process(self) -> ProcessInfo | None:
        """Who runs, for operators."""
        link = self._link
        return link.report.process if link is not None and link.alive and link.report is not None else None

    async def prompt(self, prompt: Prompt, continued: Continued | None = None) -> None:
        """Hand a prompt over, to a new process if there is none; one that remembers nothing is told what was said.

        `continued` is what came of the prompt before its process died.
        """
        self.stay_awake()
        if self._falling_asleep is not None:
            await asyncio.shield(self._falling_asleep)
        fresh = self.connection is None
        connection = await self._awake(continued)
        if fresh and not (self._link is not None and self._link.remembers):
            prompt = await self._session.log.with_history(prompt)
        images = await self._session.attachments.shown(prompt.parts)
        await connection.prompt(msgspec.structs.replace(prompt, images=images))

    async def start(self) -> None:
        """Start its process before there is a prompt; raises if it cannot be started."""
        await self._awake()
        self.rest()

    async def _awake(self, continued: Continued | None = None) -> Connection:
        async with self._waking:
            return self.connection or await self._started(continued)

    def forget(self) -> None:
        """Its process is gone, though nobody has said so yet."""
        self._link = None

    async def adopt(self, runner: Runner, survivor: ProcessRef, *, known: int) -> Connected:
        """Go on with a process that an earlier server started, or an earlier link had."""
        link = _Link(self, survivor.start)
        link.connection = await runner.adopt(survivor, link, known=known)
        self._begin(link)
        if link.report is None:
            raise AgentLost(reason="its runner reported nothing of it.")
        return link.report

    async def _started(self, continued: Continued | None) -> Connection:
        spec = msgspec.structs.replace(self._spec(), continues=continued)
        if names := names_for_agent(self._session.settings):
            self._runners.secrets_used(used_by(self._session.record, names))
        try:
            return await self._connect(spec)
        except AgentStartFailed as error:
            if error.fields.get("killed"):  # from outside, before it was told anything
                notice = drafts.warning(f"The agent was killed while it started and is started anew. {error}", "killed")
            elif spec.resume is None or error.fields["exit_code"] is None:
                raise
            else:  # it ended by itself, so it may have lost its memory: the log takes the place of that
                lost = f"The agent could not go on with its own conversation and is started anew. {error}"
                notice, spec = drafts.warning(lost, "resume_failed"), msgspec.structs.replace(spec, resume=None)
            await self._session.log.append([notice], Progress(spec.start, 0))
        return await self._connect(spec)

    async def _connect(self, spec: AgentSpec) -> Connection:
        link = self._link = _Link(self, spec.start)
        link.connection = await self._runners.runner(self._session.record.runner).connect(spec, link)
        self._begin(link)
        return link.connection

    def _begin(self, link: _Link) -> None:
        self._link = link
        if link.alive:  # else it has ended by now
            self._session.hold()
            link.is_held = True

    def closed(self, end: AgentExit, *, is_held: bool) -> None:
        """A process is gone; the next prompt starts a new one."""
        self.stay_awake()
        if not end.expected:
            log.warning("agent.exited", session_id=self._session.id, exit_code=end.exit_code, signal=end.signal)
        if end.continues is not None:
            self._left_open(end, end.continues)
        if is_held:
            self._session.release()
        self._runners.room()

    async def check(self, agent: str, settings: SessionSpec) -> None:
        """Raise if another agent could never be started in its place."""
        record = self._session.record
        spec = agent_spec(record.id, agent, settings, workspace=self._session.state.workspace)
        await self._runners.runner(record.runner).validate(spec)

    # Its runner

    @property
    def runner_name(self) -> str:
        """What the runner is called."""
        return self._session.record.runner_name

    @property
    def is_away(self) -> bool:
        """Whether its runner cannot be reached, or what became of its process there is not known yet."""
        return self._away

    def refuse_if_away(self) -> None:
        """Raise if nothing can be asked of its process now."""
        if self._session.record.runner is None:
            raise NotPlaced
        if self._away:
            raise RunnerUnavailable(runner=self.runner_name)

    def wait_for_runner(self) -> None:
        """Something is to be done when the runner is back: until then the session stays in memory."""
        if self._away and not self._waits and self._session.record.runner is not None:
            self._waits = True
            self._session.hold()

    async def lose_runner(self) -> None:
        """Its runner cannot be reached: the process may go on there, and is adopted when it is back."""
        self._away = True
        self.was_lost = self.was_lost or self._link is not None or self._session.state.turn is not None
        link, self._link = self._link, None
        self.stay_awake()
        if self.was_lost:
            self.wait_for_runner()
        if link is not None:
            link.is_cut, link.alive = True, False
        await self.stop_starting()
        if link is not None and link.is_held:
            link.is_held = False
            self._session.release()

    def regain_runner(self) -> None:
        """Its runner is back, and it is known what became of its process."""
        self._away = self.was_lost = False
        if self._waits:
            self._waits = False
            self._session.release()

    def forget_runner(self) -> None:
        """It is on no runner any more: whatever finds another one has it in memory then."""
        self.was_lost = False
        if self._waits:
            self._waits = False
            self._session.release()

    # What is asked of its process

    async def tell(self, answer: Answer) -> None:
        """Hand a decision that is in the log over; a process that has just died will never need it."""
        if self.connection is not None:
            with contextlib.suppress(AgentExited, RunnerUnavailable):  # who adopts it tells it then
                await self.connection.answer(answer)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Hand the prompt of the newest turn over, by this work."""
        self.starting = self._session.background.spawn(work)

    async def stop_starting(self) -> bool:
        """Break off what hands a prompt over; False if it had come to its end by itself."""
        if self.starting is None:
            return False
        self.starting.cancel()
        await asyncio.wait([self.starting])
        return self.starting.cancelled()

    async def disconnect(self, *, force: bool) -> None:
        """End the process, also one that is just starting or being adopted."""
        await self.stop_starting()
        async with self.adopting:
            connection = self.connection
        if connection is not None:
            await connection.close(force=force)

    def _spec(self) -> AgentSpec:
        record, state = self._session.record, self._session.log.state
        keep_secret(record.spec)
        return agent_spec(
            record.id,
            record.agent,
            self._session.settings,
            start=state.starts + 1,
            resume=state.native_session_id,
            workspace=state.workspace,
        )

    # Sleep

    def rest(self) -> None:
        """Nothing is to be done: end the process if that stays so for a while; the next prompt starts another."""
        self.stay_awake()
        if self._idle_seconds > 0 and self.connection is not None:
            self._idle_timer = asyncio.get_running_loop().call_later(self._idle_seconds, self.fall_asleep)

    def stay_awake(self) -> None:
        """Somebody needs the process."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def fall_asleep(self) -> None:
        """End the process if nothing is to be done; the next prompt starts another."""
        self.stay_awake()
        connection = self.connection
        if connection is not None and self._link is not None and self._session.may_sleep:
            self._link.falls_asleep = True
            self._link.alive = False  # a prompt that comes now waits until this process is gone, and starts another
            self._falling_asleep = self._session.background.spawn(connection.close(force=False))
