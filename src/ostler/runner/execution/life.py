"""The one task of an agent's process: it reads, delivers, and reports the end."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

from ostler.base.errors import AgentExited
from ostler.base.errors.runners import LinkLost
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.link.protocol import Sink
from ostler.runner.execution.dialogue import Dialogue
from ostler.runner.execution.limits import Limits
from ostler.runner.execution.turns import Turns
from ostler.runner.processes.process import Process
from ostler.runner.processes.waiting import Silence, finished
from ostler.wire.running import AgentExit, AgentSpec

log = Log(__name__)
_SILENT_SECONDS = 2.0
_LAST_WORDS_SECONDS = 10.0
_ORDERS = frozenset({"stop", "kill", "orphaned"})


class Life:
    """A process from the moment it is there until nothing is left of it."""

    def __init__(self, spec: AgentSpec, folder: Path, sink: Sink, limits: Limits, dialogue: Dialogue) -> None:
        self._spec = spec
        self.folder = folder
        self._sink = sink
        self._limits = limits
        self._dialogue = dialogue
        self.turns = Turns(spec, limits, dialogue, self.act)
        self._deliveries = Deliveries(sink, dialogue)
        self.process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self.wake = asyncio.Event()
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[str | None] = loop.create_future()
        """Done when the agent takes prompts, or has said why it does not."""
        self.over: asyncio.Future[None] = loop.create_future()
        self._silence = Silence(_SILENT_SECONDS, lambda: dialogue.is_awaited, self._on_silence)
        self.opened = False
        """Whether it takes prompts."""
        self.is_reported = False
        """Whether the session has it, and hears of its end."""
        self.leaving = False

    def begin(self, process: Process) -> None:
        """Start the task."""
        self.process = process
        self.turns.begin(process, self.folder)
        self._task = asyncio.create_task(self._live(process), name=f"agent {self._spec.session_id}")
        self.opened = self._dialogue.ready is not None

    def move(self, folder: Path) -> None:
        """Keep the process's files elsewhere from now on."""
        if self.process is not None:
            self.process.move(folder)
        self.folder = folder

    def act(self, process: Process) -> None:
        """Send what the dialogue wants sent, and have the rest seen to by the task."""
        for data in self._dialogue.take_sends():
            if not process.input.write(data):
                self.turns.end_unread(process)
                break
        dialogue = self._dialogue
        if not self.ready.done() and (dialogue.ready is not None or dialogue.start_failure is not None):
            self.ready.set_result(dialogue.start_failure)
        self.turns.check(process)
        self.wake.set()

    async def close(self, *, force: bool) -> None:
        """End the process tree; returns when nothing of it is alive and the session has heard everything."""
        self.turns.expected = True
        if self.process is not None:
            await self.process.stop(grace=self._limits.stop_grace, force=force)
        if asyncio.current_task() in {self._task, self._deliveries.task}:
            return  # the session closes us from within `deliver`
        if not await finished(self.over, _LAST_WORDS_SECONDS):
            log.warning("connection.unheard", session_id=self._spec.session_id)

    async def detach(self) -> None:
        """Let go of the process so that another server can go on with it; returns when all that was read is durable."""
        self.leaving = True
        self.wake.set()
        if self._task is not None:
            await self._task

    async def _live(self, process: Process) -> None:
        try:
            await self._read(process)
        except LinkLost:
            self.leaving = True  # the agent works on; whoever is linked next goes on with it
        except Exception as error:
            log.error("connection.failed", session_id=self._spec.session_id, exc_info=error)
            await process.stop(grace=0, force=True)
        finally:
            await (self._leave(process) if self.leaving else self._bury(process))

    async def _read(self, process: Process) -> None:
        while not self.leaving:
            await self._deliveries.hand_over(ahead=not process.is_drained)
            chunk = process.read()
            if chunk is None:
                await self._deliveries.settled()
                await self._wait_for_more()
            elif chunk:
                self._dialogue.feed(chunk)
                self.act(process)
                if not process.is_drained:
                    await asyncio.sleep(0)  # a flood must not starve the other sessions
            else:
                if not self.turns.expected and not self.turns.continues_turns:  # what was cut off is no frame
                    self._dialogue.end()
                self.act(process)
                return

    async def _wait_for_more(self) -> None:
        """Wait for output; this is done for nearly every event, so it must cost little."""
        self._silence.begins()
        await self.wake.wait()
        self.wake.clear()
        self._silence.ends()

    def _on_silence(self) -> None:
        """An agent that is silent when it should work may be asking beside its frames to log in."""
        if self.process is not None:
            self._dialogue.hear_beside(self.process.stderr.last_words())
            self.act(self.process)

    async def _leave(self, process: Process) -> None:
        self.turns.clock.stop()
        try:
            with suppress(LinkLost):
                await self._deliveries.hand_over()
                await self._deliveries.settled()
        finally:
            self.release(process)

    def release(self, process: Process) -> None:
        """Let go of the process."""
        process.release()
        self._silence.cancel()
        self.turns.leave()
        self.over.set_result(None)

    async def forget(self) -> None:
        """Remove what the process left on disk; all of it is in the log."""
        await asyncio.to_thread(self._remove_files)

    def _remove_files(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        home = Path(self._spec.home)
        if home.is_symlink():  # it was moved to where the session has it
            home.unlink(missing_ok=True)

    async def _bury(self, process: Process) -> None:
        """The agent's output is over: wait for its end or bring it about, then report."""
        await process.wait_exit(_SILENT_SECONDS)
        await process.stop(grace=self._limits.stop_grace, why="silent")
        if self.turns.stopping is not None:
            await self.turns.stopping
        self.turns.clock.stop()
        exit_, stderr = process.exit, process.stderr.output()
        self.turns.expected = self.turns.expected or exit_.ordered in _ORDERS
        self._dialogue.conclude()
        self.turns.close(exit_, stderr)
        try:
            await self._deliveries.hand_over()
            await self._deliveries.settled()
        except LinkLost:
            self.release(process)  # its files stay: whoever is linked next hears of its end
            return
        except Exception as error:
            log.error("connection.failed", session_id=self._spec.session_id, exc_info=error)
        failpoint("bury.before")
        try:
            # no pause between the last event and this, or the session would send its next prompt to us
            if self.is_reported:
                end = AgentExit(
                    expected=self.turns.expected,
                    exit_code=exit_.exit_code,
                    signal=exit_.signal,
                    stderr=stderr,
                    continues=self.turns.left_open,
                )
                await self._sink.closed(end)
            await self.forget()
            failpoint("bury.after")
        except LinkLost:
            log.info("connection.unheard", session_id=self._spec.session_id)
        except AgentExited:  # the session has given it up
            await self.forget()
        finally:
            self.release(process)


class Deliveries:
    """At most one delivery is under way; the next one waits until it is durable."""

    def __init__(self, sink: Sink, dialogue: Dialogue) -> None:
        self._sink = sink
        self._dialogue = dialogue
        self.task: asyncio.Task[None] | None = None

    async def hand_over(self, *, ahead: bool = False) -> None:
        """Hand over what has piled up; `ahead` returns when the delivery before it is durable, so one is under way."""
        while drafts := self._dialogue.take_drafts():
            await self.settled()
            delivery = self._sink.deliver(drafts, self._dialogue.steps)
            if ahead:
                self.task = asyncio.create_task(delivery)
                await asyncio.sleep(0)  # it takes its place in the log before anything else happens
            else:
                await delivery

    async def settled(self) -> None:
        """Wait until what was handed over is durable."""
        if self.task is not None:
            try:
                await self.task
            finally:
                self.task = None
