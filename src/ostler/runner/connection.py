"""The live link to one agent process: reads it, keeps its turns honest, and reports to the session."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.agents.adapter import Launch, Ready, Translator, TurnDone
from ostler.base.errors import AgentExited, AgentStartFailed, SessionBusy, TimedOut
from ostler.base.logs import Log
from ostler.link.protocol import Sink
from ostler.runner.channel import Channel
from ostler.runner.dialogue import Counts, Dialogue
from ostler.runner.home import environment, prepare_home
from ostler.runner.http_channel import HttpChannel
from ostler.runner.nursery import NurseryHandle
from ostler.runner.process import ANSWER_SECONDS, CannotStart, Command, Exit, Process
from ostler.runner.waiting import Countdown, finished
from ostler.wire.events import ErrorData, StderrOutput
from ostler.wire.running import AgentExit, AgentSpec, Answer, Draft, Prompt

log = Log(__name__)
_ROOM_SECONDS = 30.0
_SILENT_SECONDS = 2.0
_LAST_WORDS_SECONDS = 10.0
_SHORTEST_GRACE = 0.01


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take and how large they may be."""

    start_timeout: float
    turn_timeout: float
    """0 for no limit."""
    interrupt_grace: float
    stop_grace: float
    max_frame_bytes: int


class AgentConnection:
    """One agent process of one session; made by `open`, over when `Sink.closed` was called.

    One task does everything that takes time: it reads a chunk and delivers what it gave while it reads the next one.
    So events reach the session in order, and an agent that talks faster than the log can write waits in its own pipe.
    """

    def __init__(
        self,
        spec: AgentSpec,
        sink: Sink,
        translator: Translator,
        *,
        limits: Limits,
        counts: Counts,
        framing: str = "lines",
    ) -> None:
        self._spec = spec
        self._sink = sink
        self._limits = limits
        largest = limits.max_frame_bytes
        self._dialogue = Dialogue(translator, start=spec.start, max_frame_bytes=largest, counts=counts, framing=framing)
        self._process: Channel | None = None
        self._task: asyncio.Task[None] | None = None
        self._delivery: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the process is gone and everything about it was reported, or when it never came up."""
        self._deadline = Countdown()
        self._grace = Countdown()
        self._ending: TurnDone | None = None
        self._expected = False
        self._opened = False

    @property
    def native_session_id(self) -> str | None:
        """The agent's own id of the session, once known."""
        ready = self._dialogue.ready
        return ready.native_session_id if ready else None

    @property
    def ready(self) -> Ready | None:
        """What the agent said when it was ready, such as the models it offers."""
        return self._dialogue.ready

    # Start

    async def open(self, nursery: NurseryHandle, launch: Launch, environ: Mapping[str, str]) -> None:
        """Start the process and wait until it takes prompts; raises AgentStartFailed and leaves nothing behind."""
        try:
            process = await self._start(nursery, launch, environ)
        except BaseException:
            self.over.set_result(None)
            raise
        self._process = process
        self._task = asyncio.create_task(self._live(process), name=f"agent {self._spec.session_id}")
        try:
            await self._until_ready(process)
        except BaseException:
            await asyncio.shield(self.close(force=True))
            raise
        self._opened = True

    async def _start(self, nursery: NurseryHandle, launch: Launch, environ: Mapping[str, str]) -> Channel:
        env = environment(self._spec, launch, environ)
        command = Command(argv=launch.argv, env=env, cwd=self._spec.cwd)
        try:
            await asyncio.to_thread(prepare_home, self._spec.home, launch.files)
            if launch.http is None:
                return await Process.start(nursery, command, self._wake.set)
            largest = self._limits.max_frame_bytes
            return await HttpChannel.start(nursery, command, launch.http, self._wake.set, max_frame_bytes=largest)
        except (CannotStart, OSError) as error:
            raise AgentStartFailed(agent=self._spec.agent, reason=str(error), exit_code=None, stderr=None) from error

    async def _until_ready(self, process: Channel) -> None:
        if self._expected:
            raise AgentStartFailed(agent=self._spec.agent, reason="it was stopped.", exit_code=None, stderr=None)
        if not self._dialogue.open():
            raise self._start_failed(process, "its adapter failed; the event log has the details.")
        self._act(process)
        await asyncio.wait(
            {self._ready, self.over}, timeout=self._limits.start_timeout, return_when=asyncio.FIRST_COMPLETED
        )
        if process.is_gone:
            raise self._start_failed(process, f"it exited with {process.exit} before it was ready.")
        if not self._ready.done():
            seconds = self._limits.start_timeout
            raise self._start_failed(process, f"it was not ready within {seconds:g} seconds.")

    def _start_failed(self, process: Channel, reason: str) -> AgentStartFailed:
        line = process.stderr.last_line()
        return AgentStartFailed(
            agent=self._spec.agent,
            reason=f"{reason} It said: {line}" if line else reason,
            exit_code=process.exit.exit_code if process.is_gone else None,
            stderr=msgspec.to_builtins(process.stderr.output()),
        )

    # What the session asks for

    async def prompt(self, prompt: Prompt) -> None:
        """Begin a turn; raises before anything is sent, or not at all."""
        process = await self._listening()
        if self._dialogue.guard.turn_id is not None:
            raise SessionBusy(session=self._spec.session_id, turn=self._dialogue.guard.turn_id)
        self._deadline.start(self._turn_timeout, self._on_deadline)
        self._dialogue.prompt(prompt)
        self._act(process)

    async def steer(self, prompt: Prompt) -> bool:
        """Give the running turn another message; False if that is not possible."""
        process = await self._listening()
        if self._dialogue.guard.turn_id is None or self._ending is not None:
            return False
        steered = self._dialogue.steer(prompt)
        self._act(process)
        return steered

    async def interrupt(self) -> None:
        """Ask the agent to end its turn and see to it that it does; returns at once."""
        self._end_turn(TurnDone(outcome="interrupted", stop_reason="interrupted"))

    async def answer(self, answer: Answer) -> None:
        """Hand a decision to the agent."""
        process = await self._listening()
        self._dialogue.answer(answer)
        self._act(process)

    async def freeze(self) -> None:
        """Stop the whole process tree where it stands, and the turn's clocks with it."""
        self._deadline.pause()
        self._grace.pause()
        if self._process is not None and not await self._process.freeze():
            raise TimedOut(what="The agent's keeper", seconds=ANSWER_SECONDS, hint="Cancel the session.")

    async def thaw(self) -> None:
        """Let a frozen process tree go on."""
        if self._process is not None and not await self._process.thaw():
            raise TimedOut(what="The agent's keeper", seconds=ANSWER_SECONDS, hint="Cancel the session.")
        self._deadline.resume()
        self._grace.resume()

    async def close(self, *, force: bool) -> None:
        """End the process tree; returns when nothing of it is alive and the session has heard everything."""
        self._expected = True
        if self._process is not None:
            await self._process.stop(grace=self._limits.stop_grace, force=force)
        if asyncio.current_task() in {self._task, self._delivery}:
            return  # the session closes us from within `deliver`
        if not await finished(self.over, _LAST_WORDS_SECONDS):
            log.warning("connection.unheard", session_id=self._spec.session_id)

    async def _listening(self) -> Channel:
        """The process, once it has read most of what it was sent."""
        process = self._process
        if process is not None and not await process.stdin.room(_ROOM_SECONDS):
            hint = "It does not read its input; interrupt the turn or stop the session."
            raise TimedOut(what=f"Agent '{self._spec.agent}'", seconds=_ROOM_SECONDS, hint=hint)
        if process is None or process.is_gone:
            raise AgentExited(agent=self._spec.agent, exit=str(process.exit if process else Exit()))
        return process

    # Ends of turns

    @property
    def _turn_timeout(self) -> float:
        own = self._spec.turn_timeout_seconds
        return self._limits.turn_timeout if own is None else own

    def _on_deadline(self) -> None:
        message = f"The turn took longer than {self._turn_timeout:g} seconds and was ended."
        self._complain(message, "turn_timeout", {"seconds": self._turn_timeout})
        self._dialogue.forced_end = TurnDone(outcome="failed", stop_reason="timeout")
        self._end_turn(self._dialogue.forced_end)

    def _end_turn(self, end: TurnDone) -> None:
        """Tell the agent to end its turn; when it has not after the grace, the process is stopped."""
        if self._dialogue.guard.turn_id is None or self._ending is not None or self._process is None:
            return
        self._ending = end
        self._deadline.cancel()
        self._dialogue.interrupt(end.stop_reason or end.outcome)
        process = self._process
        self._grace.start(max(self._limits.interrupt_grace, _SHORTEST_GRACE), lambda: self._stop_disobedient(process))
        self._act(process)

    def _stop_disobedient(self, process: Channel) -> None:
        log.warning("agent.disobedient", session_id=self._spec.session_id, agent=self._spec.agent)
        self._expected = True
        if self._stopping is None:
            self._stopping = asyncio.create_task(process.stop(grace=self._limits.stop_grace))

    def _complain(self, message: str, code: str, details: dict[str, Any]) -> None:
        data = ErrorData(message=message, code=code, details=details)
        self._dialogue.drafts.append(Draft("error", data, source="daemon", synthetic=True))

    # The one task

    def _act(self, process: Channel) -> None:
        """Send what the dialogue wants sent, and have the rest seen to by the task."""
        for data in self._dialogue.take_sends():
            if not process.stdin.write(data):
                self._complain("The agent does not read its input.", "agent_not_reading", {})
                self._ending = TurnDone(outcome="failed", stop_reason="agent_not_reading")
                self._stop_disobedient(process)
                break
        if self._dialogue.ready is not None and not self._ready.done():
            self._ready.set_result(None)
        if self._dialogue.guard.turn_id is None:
            self._deadline.cancel()
            self._grace.cancel()
            self._ending = None
        self._wake.set()

    async def _live(self, process: Channel) -> None:
        try:
            await self._read(process)
        except Exception as error:
            log.error("connection.failed", session_id=self._spec.session_id, exc_info=error)
            await process.stop(grace=0, force=True)
        finally:
            await self._bury(process)

    async def _read(self, process: Channel) -> None:
        while True:
            await self._deliver()
            chunk = process.read()
            if chunk is None:
                await self._delivered()
                await self._wake.wait()
                self._wake.clear()
            elif chunk:
                self._dialogue.feed(chunk)
                self._act(process)
                await asyncio.sleep(0)  # a flood must not starve the other sessions
            else:
                break
        self._dialogue.end()
        self._act(process)

    async def _deliver(self) -> None:
        """Hand over what has piled up; returns when the delivery before it is durable, so one is always under way."""
        while drafts := self._dialogue.take_drafts():
            await self._delivered()
            self._delivery = asyncio.create_task(self._sink.deliver(drafts))
            await asyncio.sleep(0)  # it takes its place in the log before anything else happens

    async def _delivered(self) -> None:
        if self._delivery is not None:
            try:
                await self._delivery
            finally:
                self._delivery = None

    async def _bury(self, process: Channel) -> None:
        """The agent's output is over: wait for its end or bring it about, then report."""
        await process.wait_exit(_SILENT_SECONDS)
        await process.stop(grace=self._limits.stop_grace)
        if self._stopping is not None:
            await self._stopping
        self._deadline.cancel()
        self._grace.cancel()
        exit_, stderr = process.exit, process.stderr.output()
        self._close_turn(exit_, stderr)
        try:
            await self._deliver()
            await self._delivered()
        except Exception as error:
            log.error("connection.failed", session_id=self._spec.session_id, exc_info=error)
        try:
            # no pause between the last event and this, or the session would send its next prompt to us
            if self._opened:
                end = AgentExit(expected=self._expected, exit_code=exit_.exit_code, signal=exit_.signal, stderr=stderr)
                await self._sink.closed(end)
        finally:
            process.release()
            self.over.set_result(None)

    def _close_turn(self, exit_: Exit, stderr: StderrOutput) -> None:
        guard = self._dialogue.guard
        if guard.turn_id is None:
            self._dialogue.drafts += guard.give_up()
            return
        if not self._expected:
            gone = AgentExited(agent=self._spec.agent, exit=str(exit_))
            details = {
                "exit_code": exit_.exit_code,
                "signal": exit_.signal,
                "stderr": msgspec.to_builtins(stderr),
            }
            self._complain(str(gone), gone.code, details)
        stopped = TurnDone(outcome="interrupted", stop_reason="stopped")
        died = TurnDone(outcome="failed", stop_reason="agent_exited")
        end = self._ending or (stopped if self._expected else died)
        self._dialogue.drafts += guard.end_turn(end.outcome, end.stop_reason or end.outcome)
