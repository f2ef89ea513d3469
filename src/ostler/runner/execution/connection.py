"""The live link to one agent process: reads it, keeps its turns honest, and reports to the session."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents.adapter import Launch, Ready, Translator, TurnDone
from ostler.base.disk import is_full
from ostler.base.errors import AgentExited, AgentLost, AgentStartFailed, SessionBusy, StoreUnavailable, TimedOut
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.base.undo import undone_by, undone_later_by
from ostler.link.protocol import Sink
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.runner.execution.images import placed, write_images
from ostler.runner.processes import journal as calls
from ostler.runner.processes.bells import Bells
from ostler.runner.processes.journal import Call, Entry, Journal, Kept
from ostler.runner.processes.logins import hidden_text, is_about_login
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import ANSWER_SECONDS, CannotStart, Command, Exit, Process
from ostler.runner.processes.survey import is_whole
from ostler.runner.processes.waiting import Silence, TurnClock, finished
from ostler.runner.runtimes.home import environment, prepare_home
from ostler.wire.events import ErrorData, PermissionData, StderrOutput
from ostler.wire.running import AgentExit, Answer, Connected, Draft, Prompt
from ostler.wire.sessions import ProcessInfo

log = Log(__name__)
_ROOM_SECONDS = 30.0
_SILENT_SECONDS = 2.0
_LAST_WORDS_SECONDS = 10.0
_SHORTEST_GRACE = 0.01
_RETRY_SECONDS = 1.0
_ORDERS = frozenset({"stop", "kill", "orphaned"})
_STOPS = {"orphaned": "server_gone"}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take and how large they may be."""

    start_timeout: float
    turn_timeout: float
    """0 for no limit."""
    interrupt_grace: float
    stop_grace: float
    max_frame_bytes: int
    max_item_length: int = 8 * 2**20
    max_output: int = 0
    """Bytes that one process may say; 0 for no limit."""
    patience: float = 0.0
    """How long an agent works on when its server is gone."""


class AgentConnection:
    """One agent process of one session; made by `open`, over when `Sink.closed` was called.

    One task does everything that takes time: it reads a chunk and delivers what it gave while it reads the next one.
    So events reach the session in order, and an agent that talks faster than the log can write waits in its own pipe.
    """

    def __init__(
        self,
        kept: Kept,
        folder: Path,
        sink: Sink,
        translator: Translator,
        *,
        limits: Limits,
        counts: Counts,
        hint: str = "",
    ) -> None:
        """`hint` is what a person can do when the agent is not let in."""
        self._hint = hint
        self._kept, self._spec, self._folder = kept, kept.spec, folder
        self._sink = sink
        self._limits = limits
        self._dialogue = Dialogue(
            translator,
            start=kept.spec.start,
            max_frame_bytes=kept.max_frame_bytes,
            max_item_length=kept.max_item_length,
            counts=counts,
            framing=kept.framing,
            resume=kept.spec.resume,
            login_hint=hint,
        )
        self._process: Process | None = None
        self._journal: Journal | None = None
        self._heard: list[str] = []
        self._steered: list[Prompt] = []
        self._task: asyncio.Task[None] | None = None
        self._delivery: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._ready: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the process is gone and everything about it was reported, or when it never came up."""
        self._clock = TurnClock(self._turn_timeout, self._on_deadline)
        self._silence = Silence(_SILENT_SECONDS, self._is_awaited, self._on_silence)
        self._ending: TurnDone | None = None
        self._expected = False
        self._opened = False
        self._leaving = False

    @property
    def ready(self) -> Ready | None:
        """What the agent said when it was ready, such as the models it offers."""
        return self._dialogue.ready

    @property
    def is_alive(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and not self._process.is_gone

    def _report(self, process: Process) -> Connected:
        asks = self._dialogue.guard.open_asks
        runs = ProcessInfo(pid=process.pid, keeper_pid=process.keeper, started_at=self._kept.started_at)
        return Connected(
            process=None if process.is_gone else runs,
            remembers=self._dialogue.remembers,
            open_asks=tuple(ask.permission_id if isinstance(ask, PermissionData) else ask.question_id for ask in asks),
            heard=tuple(self._heard),
            steered=tuple(self._steered),
        )

    def move(self, folder: Path) -> None:
        """Keep the process's files elsewhere from now on."""
        if self._process is not None:
            self._process.move(folder)
        self._folder = folder

    # Start

    async def open(self, nursery: NurseryHandle, launch: Launch, environ: Mapping[str, str]) -> None:
        """Start the process and wait until it takes prompts; raises AgentStartFailed and leaves nothing behind."""
        async with undone_later_by(self._never_began):
            process = await self._start(nursery, launch, environ)
        await self._begin(process, [])

    async def _never_began(self) -> None:
        await self._forget()
        self.over.set_result(None)

    async def _start(self, nursery: NurseryHandle, launch: Launch, environ: Mapping[str, str]) -> Process:
        env = launch.starter_env if launch.starter_env is not None else environment(self._spec, launch, environ)
        command = Command(argv=launch.argv, env=env, cwd=self._spec.cwd)
        try:
            await asyncio.to_thread(self._prepare, launch)
            return await Process.start(nursery, command, self._folder, self._wake.set, patience=self._limits.patience)
        except (CannotStart, OSError) as error:
            if is_full(error):
                raise StoreUnavailable(reason=f"the agent's folder: {error}") from error
            raise AgentStartFailed(agent=self._spec.agent, reason=str(error), exit_code=None, stderr=None) from error

    def _prepare(self, launch: Launch) -> None:
        prepare_home(self._spec.home, launch.files)
        calls.keep(self._folder, self._kept)

    async def adopt(self, bells: Bells, *, known: int) -> None:
        """Go on with a process that an earlier server started; raises AgentLost if that cannot be.

        Everything is told to a fresh translator again, as it happened. What came of the steps up to `known` has been
        delivered before, and what was sent before is not sent again.
        """
        failpoint("adopt.before")
        self._dialogue.known = known
        process = await Process.attach(self._folder, self._wake.set, bells)
        with undone_by(lambda: self._release(process)):
            if process.is_gone and not is_whole(self._folder):
                raise AgentLost(reason="the machine stopped while it was there.")
            entries = calls.read_calls(self._folder)
            for entry in entries:
                await self._feed_upto(process, entry.at)
                self._repeat(process, entry)
            await self._feed_known(process)
        self._clock.catch_up()
        if self._ending is not None:
            self._end_by_force_later(process)
        failpoint("adopt.after")
        await self._begin(process, entries)

    async def _feed_upto(self, process: Process, offset: int) -> None:
        while process.offset < offset and (chunk := process.read(offset - process.offset)):
            self._dialogue.feed(chunk)
            self._act(process)
            await asyncio.sleep(0)

    async def _feed_known(self, process: Process) -> None:
        """Come to where the log is, so that the session sees which asks the agent waits for."""
        while self._dialogue.steps < self._dialogue.known and (chunk := process.read()):
            self._dialogue.feed(chunk)
            self._act(process)
            await asyncio.sleep(0)

    def _repeat(self, process: Process, entry: Entry) -> None:
        self._clock.now = lambda: entry.time
        match entry.call:
            case calls.Opened():
                self._dialogue.open()
            case calls.Prompted(prompt):
                self._prompt(prompt)
            case calls.Steered(prompt):
                self._steer(prompt)
            case calls.Answered(answer):
                self._dialogue.answer(answer)
            case calls.Ended(end, overdue):
                self._end(end, overdue)
            case calls.Frozen():
                self._clock.freeze()
            case calls.Thawed():
                self._clock.thaw()
        self._act(process)

    async def _begin(self, process: Process, entries: Sequence[Entry]) -> None:
        self._process = process
        self._journal = Journal(self._folder)
        self._task = asyncio.create_task(self._live(process), name=f"agent {self._spec.session_id}")
        self._opened = self._dialogue.ready is not None
        if not entries:
            await self._become_ready(process, greet=True)
        await self._sink.connected(self._report(process))

    async def _become_ready(self, process: Process, *, greet: bool) -> None:
        async with undone_later_by(self._give_up):
            if greet:
                self._greet(process)
            await self._until_ready(process)
        self._opened = True

    async def _give_up(self) -> None:
        if not self._leaving:
            await self.close(force=True)

    def _greet(self, process: Process) -> None:
        if self._expected:
            raise AgentStartFailed(agent=self._spec.agent, reason="it was stopped.", exit_code=None, stderr=None)
        self._note(calls.Opened())
        if not self._dialogue.open():
            raise self._start_failed(process, "its adapter failed; the event log has the details.")
        self._act(process)

    async def _until_ready(self, process: Process) -> None:
        either: set[asyncio.Future[Any]] = {self._ready, self.over}
        await asyncio.wait(either, timeout=self._limits.start_timeout, return_when=asyncio.FIRST_COMPLETED)
        if process.is_gone:
            raise self._start_failed(process, f"it exited with {process.exit} before it was ready.")
        if self._ready.done() and (refusal := self._ready.result()) is not None:
            hint = f" {self._hint}" if self._hint not in refusal and is_about_login(refusal) else ""
            raise self._start_failed(process, f"it refused to start: {hidden_text(refusal)}{hint}")
        if not self._ready.done():
            seconds = self._limits.start_timeout
            raise self._start_failed(process, f"it was not ready within {seconds:g} seconds.")

    def _start_failed(self, process: Process, reason: str) -> AgentStartFailed:
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
        await write_images(prompt, self._spec.home)
        process = await self._listening()
        if not self._opened:  # an earlier server began to start it
            await self._become_ready(process, greet=False)
        if self._dialogue.guard.turn_id is not None:
            raise SessionBusy(session=self._spec.session_id, turn=self._dialogue.guard.turn_id)
        self._note(calls.Prompted(prompt))
        self._prompt(prompt)
        self._act(process)

    def _prompt(self, prompt: Prompt) -> None:
        self._heard.append(prompt.prompt_id)
        self._clock.start()
        self._dialogue.prompt(placed(prompt, self._spec.home))

    async def steer(self, prompt: Prompt) -> bool:
        """Give the running turn another message; False if that is not possible."""
        await write_images(prompt, self._spec.home)
        process = await self._listening()
        if self._dialogue.guard.turn_id != prompt.turn_id or self._ending is not None:
            return False
        self._note(calls.Steered(prompt))
        steered = self._steer(prompt)
        self._act(process)
        return steered

    def _steer(self, prompt: Prompt) -> bool:
        steered = self._dialogue.steer(placed(prompt, self._spec.home))
        if steered:
            self._steered.append(msgspec.structs.replace(prompt, images={}))
        return steered

    async def interrupt(self) -> None:
        """Ask the agent to end its turn and see to it that it does; returns at once."""
        self._end_turn(TurnDone(outcome="interrupted", stop_reason="interrupted"))

    async def answer(self, answer: Answer) -> None:
        """Hand a decision to the agent; while the disk is full it waits."""
        process = await self._listening()
        while not self._noted(calls.Answered(answer)):  # noqa: ASYNC110  nobody tells when the disk has room again
            await asyncio.sleep(_RETRY_SECONDS)
        self._dialogue.answer(answer)
        self._act(process)

    async def freeze(self) -> None:
        """Stop the whole process tree where it stands, and the turn's clocks with it."""
        self._noted(calls.Frozen())
        self._clock.freeze()
        if self._process is not None and not await self._process.freeze():
            raise TimedOut(what="The agent's keeper", seconds=ANSWER_SECONDS, hint="Cancel the session.")

    async def thaw(self) -> None:
        """Let a frozen process tree go on."""
        if self._process is not None and not await self._process.thaw():
            raise TimedOut(what="The agent's keeper", seconds=ANSWER_SECONDS, hint="Cancel the session.")
        self._noted(calls.Thawed())
        self._clock.thaw()

    async def close(self, *, force: bool) -> None:
        """End the process tree; returns when nothing of it is alive and the session has heard everything."""
        self._expected = True
        if self._process is not None:
            await self._process.stop(grace=self._limits.stop_grace, force=force)
        if asyncio.current_task() in {self._task, self._delivery}:
            return  # the session closes us from within `deliver`
        if not await finished(self.over, _LAST_WORDS_SECONDS):
            log.warning("connection.unheard", session_id=self._spec.session_id)

    async def _listening(self) -> Process:
        """The process, once it has read most of what it was sent."""
        process = self._process
        if process is not None and not await process.room(_ROOM_SECONDS):
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
        self._end_turn(TurnDone(outcome="failed", stop_reason="timeout"), overdue=self._turn_timeout)

    def _end_turn(self, end: TurnDone, overdue: float | None = None) -> None:
        """Tell the agent to end its turn; when it has not after the grace, the process is stopped."""
        if self._dialogue.guard.turn_id is None or self._ending is not None or self._process is None:
            return
        if not self._noted(calls.Ended(end, overdue)):
            self._ending = end
            self._stop_for_good(self._process)  # what is not noted cannot be repeated, so nothing may follow it
            return
        self._end(end, overdue)
        self._end_by_force_later(self._process)
        self._act(self._process)

    def _end(self, end: TurnDone, overdue: float | None) -> None:
        self._ending = end
        self._clock.stop()
        complaints = []
        if overdue is not None:
            self._dialogue.forced_end = end
            message = f"The turn took longer than {overdue:g} seconds and was ended."
            complaints.append(_complaint(message, "turn_timeout", {"seconds": overdue}))
        self._dialogue.interrupt(end.stop_reason or end.outcome, *complaints)

    def _end_by_force_later(self, process: Process) -> None:
        grace = max(self._limits.interrupt_grace, _SHORTEST_GRACE)
        self._clock.grace(grace, lambda: self._stop_disobedient(process))

    def _stop_disobedient(self, process: Process) -> None:
        log.warning("agent.disobedient", session_id=self._spec.session_id, agent=self._spec.agent)
        self._stop_for_good(process)

    def _stop_for_good(self, process: Process) -> None:
        self._expected = True
        if self._stopping is None:
            self._stopping = asyncio.create_task(process.stop(grace=self._limits.stop_grace))

    def _overflow(self, process: Process) -> None:
        """It has said more than may lie on disk: that goes with its process, and the next prompt starts another."""
        limit = self._limits.max_output
        log.warning("agent.output_full", session_id=self._spec.session_id, agent=self._spec.agent, limit=limit)
        if self._dialogue.guard.turn_id is not None:
            self._ending = TurnDone(outcome="failed", stop_reason="output_full")
            message = f"The agent said more than {limit} bytes (max_output_bytes) and was stopped."
            self._dialogue.log(_complaint(message, "output_full", {"bytes": limit}))
        self._stop_for_good(process)

    # The journal

    def _note(self, call: Call) -> None:
        """Write a call down before anything comes of it; raises StoreUnavailable."""
        if self._journal is not None and self._process is not None:
            self._journal.add(call, at=self._process.offset)

    def _noted(self, call: Call) -> bool:
        try:
            self._note(call)
        except StoreUnavailable as error:
            log.error("journal.failed", session_id=self._spec.session_id, reason=str(error))
            return False
        return True

    # The one task

    def _act(self, process: Process) -> None:
        """Send what the dialogue wants sent, and have the rest seen to by the task."""
        for data in self._dialogue.take_sends():
            if not process.write(data):
                self._dialogue.log(_complaint("The agent does not read its input.", "agent_not_reading", {}))
                self._ending = TurnDone(outcome="failed", stop_reason="agent_not_reading")
                self._stop_disobedient(process)
                break
        dialogue = self._dialogue
        if not self._ready.done() and (dialogue.ready is not None or dialogue.start_failure is not None):
            self._ready.set_result(dialogue.start_failure)
        if self._dialogue.guard.turn_id is None:
            self._clock.stop()
            self._ending = None
        if dialogue.is_locked_out and self._stopping is None:
            log.warning("agent.not_logged_in", session_id=self._spec.session_id, agent=self._spec.agent)
            self._stop_for_good(process)
        if 0 < self._limits.max_output < process.offset and self._stopping is None:
            self._overflow(process)
        self._wake.set()

    async def detach(self) -> None:
        """Let go of the process so that another server can go on with it; returns when all that was read is durable."""
        self._leaving = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def _live(self, process: Process) -> None:
        try:
            await self._read(process)
        except Exception as error:
            log.error("connection.failed", session_id=self._spec.session_id, exc_info=error)
            await process.stop(grace=0, force=True)
        finally:
            await (self._leave(process) if self._leaving else self._bury(process))

    async def _read(self, process: Process) -> None:
        while not self._leaving:
            await self._deliver(ahead=not process.is_drained)
            chunk = process.read()
            if chunk is None:
                await self._delivered()
                await self._wait_for_more()
            elif chunk:
                self._dialogue.feed(chunk)
                self._act(process)
                if not process.is_drained:
                    await asyncio.sleep(0)  # a flood must not starve the other sessions
            else:
                if not self._expected:  # what we cut off ourselves in the middle is no frame
                    self._dialogue.end()
                self._act(process)
                return

    async def _wait_for_more(self) -> None:
        """Wait for output; this is done for nearly every event, so it must cost little."""
        self._silence.begins()
        await self._wake.wait()
        self._wake.clear()
        self._silence.ends()

    def _is_awaited(self) -> bool:
        guard = self._dialogue.guard
        return self._dialogue.ready is None or (guard.turn_id is not None and not guard.open_asks)

    def _on_silence(self) -> None:
        """An agent that is silent when it should work may be asking beside its frames to log in."""
        if self._process is not None:
            self._dialogue.hear_beside(self._process.stderr.last_words())
            self._act(self._process)

    async def _leave(self, process: Process) -> None:
        self._clock.stop()
        try:
            await self._deliver()
            await self._delivered()
        finally:
            self._release(process)

    def _release(self, process: Process) -> None:
        process.release()
        self._silence.cancel()
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self.over.set_result(None)

    async def _forget(self) -> None:
        """Remove what the process left on disk; all of it is in the log."""
        await asyncio.to_thread(self._remove_files)

    def _remove_files(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        home = Path(self._spec.home)
        if home.is_symlink():  # it was moved to where the session has it
            home.unlink(missing_ok=True)

    async def _deliver(self, *, ahead: bool = False) -> None:
        """Hand over what has piled up; `ahead` returns when the delivery before it is durable, so one is under way."""
        while drafts := self._dialogue.take_drafts():
            await self._delivered()
            delivery = self._sink.deliver(drafts, self._dialogue.steps)
            if ahead:
                self._delivery = asyncio.create_task(delivery)
                await asyncio.sleep(0)  # it takes its place in the log before anything else happens
            else:
                await delivery

    async def _delivered(self) -> None:
        if self._delivery is not None:
            try:
                await self._delivery
            finally:
                self._delivery = None

    async def _bury(self, process: Process) -> None:
        """The agent's output is over: wait for its end or bring it about, then report."""
        await process.wait_exit(_SILENT_SECONDS)
        await process.stop(grace=self._limits.stop_grace, why="silent")
        if self._stopping is not None:
            await self._stopping
        self._clock.stop()
        exit_, stderr = process.exit, process.stderr.output()
        self._expected = self._expected or exit_.ordered in _ORDERS
        self._dialogue.conclude()
        self._close_turn(exit_, stderr)
        try:
            await self._deliver()
            await self._delivered()
        except Exception as error:
            log.error("connection.failed", session_id=self._spec.session_id, exc_info=error)
        failpoint("bury.before")
        try:
            # no pause between the last event and this, or the session would send its next prompt to us
            if self._opened:
                end = AgentExit(expected=self._expected, exit_code=exit_.exit_code, signal=exit_.signal, stderr=stderr)
                await self._sink.closed(end)
            await self._forget()
            failpoint("bury.after")
        finally:
            self._release(process)

    def _close_turn(self, exit_: Exit, stderr: StderrOutput) -> None:
        guard = self._dialogue.guard
        if guard.turn_id is None:
            self._dialogue.log(*guard.give_up())
            return
        stopped = TurnDone(outcome="interrupted", stop_reason=_STOPS.get(exit_.ordered or "", "stopped"))
        died = TurnDone(outcome="failed", stop_reason="agent_exited")
        lost = TurnDone(outcome="interrupted", stop_reason="keeper_lost")
        end = stopped if self._expected else lost if exit_ == Exit() else died
        if not self._expected:
            gone = AgentExited(agent=self._spec.agent, exit=str(exit_))
            details = {"exit_code": exit_.exit_code, "signal": exit_.signal, "stderr": msgspec.to_builtins(stderr)}
            self._dialogue.log(_complaint(str(gone), gone.code, details))
        end = self._ending or end
        self._dialogue.log(*guard.end_turn(end.outcome, end.stop_reason or end.outcome))


def _complaint(message: str, code: str, details: dict[str, Any]) -> Draft:
    return Draft("error", ErrorData(message=message, code=code, details=details), source="daemon", synthetic=True)
