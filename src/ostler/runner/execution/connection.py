"""The live link to one agent process: starts it or takes it over, and hands on what the session asks for."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents.adapter import Launch, Ready, Translator, TurnDone
from ostler.base.disk import is_full
from ostler.base.errors import AgentExited, AgentLost, AgentStartFailed, SessionBusy, StoreUnavailable, TimedOut
from ostler.base.failpoints import failpoint
from ostler.base.retry import delays
from ostler.base.undo import async_undone_by, undone_by
from ostler.link.protocol import Sink
from ostler.runner.execution.dialogue import Counts, Dialogue, OnOffer
from ostler.runner.execution.images import with_images, write_images
from ostler.runner.execution.life import Life
from ostler.runner.execution.limits import Limits
from ostler.runner.processes import journal as calls
from ostler.runner.processes.bells import Bells
from ostler.runner.processes.journal import StartRecord
from ostler.runner.processes.logins import hidden_text, is_about_login
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import ANSWER_SECONDS, CannotStart, Exit, Process
from ostler.runner.processes.survey import is_whole
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import Starter
from ostler.runner.starting.ways import under_keeper
from ostler.wire.parts import ImagePart
from ostler.wire.running import AgentSpec, Answer, Prompt

_ROOM_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 2.0


class AgentConnection:
    """One agent process of one session; made by `open`, over when `Sink.closed` was called.

    One task does everything that takes time: it reads a chunk and delivers what it gave while it reads the next one.
    So events reach the session in order, and an agent that talks faster than the log can write waits in its own pipe.
    """

    def __init__(
        self,
        record: StartRecord,
        folder: Path,
        sink: Sink,
        translator: Translator,
        *,
        limits: Limits,
        counts: Counts,
        hint: str = "",
        on_offer: OnOffer = lambda _: None,
        can_log_in: bool = False,
        continues_turns: bool = False,
    ) -> None:
        """`hint` is what a person can do when the agent is not let in; `can_log_in` is whether a new start is part.

        `continues_turns` says that another process can go on with a turn in which this one dies.
        """
        self._hint = hint
        self._record, self._spec = record, record.spec
        self._limits = limits
        self._dialogue = Dialogue(
            translator,
            start=record.spec.start,
            max_frame_bytes=record.max_frame_bytes,
            max_item_length=record.max_item_length,
            counts=counts,
            framing=record.framing,
            resume=record.spec.resume,
            continues=record.spec.continues,
            login_hint=hint,
            on_offer=on_offer,
            can_log_in=can_log_in,
        )
        self._life = Life(record.spec, folder, sink, limits, self._dialogue)
        self._turns = self._life.turns
        self._turns.continues_turns = continues_turns
        self._sink = sink
        self.over = self._life.over
        """Done when the process is gone and everything about it was reported, or when it never came up."""

    @property
    def ready(self) -> Ready | None:
        """What the agent said when it was ready, such as the models it offers."""
        return self._dialogue.ready

    @property
    def is_alive(self) -> bool:
        """Whether the process is there."""
        return self._life.process is not None and not self._life.process.is_gone

    def move(self, folder: Path) -> None:
        """Keep the process's files elsewhere from now on."""
        self._life.move(folder)

    async def detach(self) -> None:
        """Let go of the process so that another server can go on with it; returns when all that was read is durable."""
        await self._life.detach()

    # Start

    async def open(self, starter: Starter, nursery: NurseryHandle, launch: Launch) -> None:
        """Start the process and wait until it takes prompts; raises AgentStartFailed and leaves nothing behind."""
        async with async_undone_by(self._never_began):
            process = await self._start(starter, nursery, launch)
        try:
            await self._begin(process, fresh=True)
        except asyncio.CancelledError:  # also while its session is told of it
            await asyncio.shield(self.give_up())
            raise

    async def _never_began(self) -> None:
        await self._life.forget()
        self.over.set_result(None)

    async def _start(self, starter: Starter, nursery: NurseryHandle, launch: Launch) -> Process:
        held = under_keeper(
            nursery,
            self._life.folder,
            self._life.wake.set,
            patience=self._limits.patience,
            freeze_after=self._limits.freeze_after,
        )
        try:
            await asyncio.to_thread(calls.write_start_record, self._life.folder, self._record)
            return await starter.start(_start_of(self._spec, launch), held)
        except (CannotStart, OSError) as error:
            if is_full(error):
                raise StoreUnavailable(reason=f"the agent's folder: {error}") from error
            raise AgentStartFailed(agent=self._spec.agent, reason=str(error), exit_code=None, stderr=None) from error

    async def adopt(self, bells: Bells, *, known: int) -> None:
        """Go on with a process that an earlier server started; raises AgentLost if that cannot be.

        Everything is fed to a fresh translator again, as it happened. What came of the steps up to `known` has been
        delivered before, and what was sent before is not sent again.
        """
        failpoint("adopt.before")
        self._dialogue.known = known
        process = await Process.attach(self._life.folder, self._life.wake.set, bells, thaw=True)
        with undone_by(lambda: self._life.release(process)):
            if process.is_gone and not is_whole(self._life.folder):
                raise AgentLost(reason="the machine stopped while it was there.")
            entries = calls.read_calls(self._life.folder)
            for entry in entries:
                await self._feed(process, entry.at)
                self._turns.repeat(entry)
                self._life.act(process)
            await self._feed(process, None)  # so that the session sees which asks the agent waits for
        self._turns.clock.catch_up()
        if self._turns.ending is not None:
            self._turns.end_by_force_later(process)
        failpoint("adopt.after")
        await self._begin(process, fresh=not entries)

    async def _feed(self, process: Process, upto: int | None) -> None:
        """Tell the dialogue what was said before an offset, or (None) until it is where the log is."""
        while process.offset < upto if upto is not None else self._dialogue.steps < self._dialogue.known:
            chunk = process.read() if upto is None else process.read(upto - process.offset)
            if not chunk:
                return
            self._dialogue.feed(chunk)
            self._life.act(process)
            await asyncio.sleep(0)

    async def _begin(self, process: Process, *, fresh: bool) -> None:
        self._life.begin(process)
        if fresh:
            await self._become_ready(process, greet=True)
        self._life.is_reported = True
        await self._sink.connected(self._turns.report(process, self._record.started_at))

    async def _become_ready(self, process: Process, *, greet: bool) -> None:
        async with async_undone_by(self.give_up):
            if greet:
                self._greet(process)
            await self._until_ready(process)
        self._life.opened = True

    async def give_up(self) -> None:
        """Nobody wants it any more; one that was let go of works on."""
        if not self._life.leaving:
            await self.close(force=True)

    def _greet(self, process: Process) -> None:
        if self._turns.expected:
            raise AgentStartFailed(agent=self._spec.agent, reason="it was stopped.", exit_code=None, stderr=None)
        self._turns.note(calls.Opened())
        if not self._dialogue.open():
            raise self._start_failed(process, "its adapter failed; the event log has the details.")
        self._life.act(process)

    async def _until_ready(self, process: Process) -> None:
        either: set[asyncio.Future[Any]] = {self._life.ready, self.over}
        await asyncio.wait(either, timeout=self._limits.start_timeout, return_when=asyncio.FIRST_COMPLETED)
        if process.is_gone and not self._life.ready.done():
            raise self._start_failed(process, f"it exited with {process.exit} before it was ready.")
        if self._life.ready.done() and (refusal := self._life.ready.result()) is not None:
            hint = f" {self._hint}" if self._hint not in refusal and is_about_login(refusal) else ""
            raise self._start_failed(process, f"it refused to start: {hidden_text(refusal)}{hint}")
        if not self._life.ready.done():
            seconds = self._limits.start_timeout
            raise self._start_failed(process, f"it was not ready within {seconds:g} seconds.")

    def _start_failed(self, process: Process, reason: str) -> AgentStartFailed:
        line = process.stderr.last_line()
        return AgentStartFailed(
            agent=self._spec.agent,
            reason=f"{reason} It said: {line}" if line else reason,
            exit_code=process.exit.exit_code if process.is_gone else None,
            killed=process.is_gone and process.exit.exit_code is None and process.exit.ordered is None,
            stderr=msgspec.to_builtins(process.stderr.output()),
        )

    # What the session asks for

    async def prompt(self, prompt: Prompt) -> None:
        """Begin a turn; raises before anything is sent, or not at all."""
        prompt = await self._with_images(prompt)
        process = await self._listening()
        if (stopping := self._turns.stopping) is not None:  # what it heard now would end with it
            await asyncio.wait({stopping})
            raise AgentExited(agent=self._spec.agent, exit=str(process.exit))
        if not self._life.opened:  # an earlier server began to start it
            await self._become_ready(process, greet=False)
        if self._dialogue.guard.turn_id is not None:
            raise SessionBusy(session=self._spec.session_id, turn=self._dialogue.guard.turn_id)
        self._turns.note(calls.Prompted(prompt))
        self._turns.prompt(prompt)
        self._life.act(process)

    async def _with_images(self, prompt: Prompt) -> Prompt:
        if not prompt.images and not any(isinstance(part, ImagePart) for part in prompt.parts):
            return prompt
        prompt = await with_images(prompt)
        await write_images(prompt, self._spec.home)
        return prompt

    async def steer(self, prompt: Prompt) -> bool:
        """Give the running turn another message; False if that is not possible."""
        prompt = await self._with_images(prompt)
        process = await self._listening()
        if self._dialogue.guard.turn_id != prompt.turn_id or self._turns.ending is not None:
            return False
        self._turns.note(calls.Steered(prompt))
        steered = self._turns.steer(prompt)
        self._life.act(process)
        return steered

    async def interrupt(self) -> None:
        """Ask the agent to end its turn and see to it that it does; returns at once."""
        self._turns.end(TurnDone(outcome="interrupted", stop_reason="interrupted"))

    async def answer(self, answer: Answer) -> None:
        """Hand a decision to the agent once; while the disk is full it waits."""
        process = await self._listening()
        if not self._dialogue.guard.waits_for(answer.ask_id):
            return  # who adopted it has told it
        pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
        while not self._turns.noted(calls.Answered(answer)):  # noqa: ASYNC110  nobody tells when the disk has room again
            await asyncio.sleep(next(pauses))
        self._dialogue.answer(answer)
        self._life.act(process)

    async def freeze(self) -> None:
        """Stop the whole process tree where it stands, and the turn's clocks with it; a shared process goes on."""
        self._turns.noted(calls.Frozen())
        self._turns.clock.freeze()
        if self._spec.shared is not None and self._life.process is not None and self._turns.tell_of_pause():
            self._life.act(self._life.process)
        if self._life.process is not None and not await self._life.process.freeze():
            raise TimedOut(what="The agent's keeper", seconds=ANSWER_SECONDS, hint="Cancel the session.")

    async def thaw(self) -> None:
        """Let a frozen process tree go on."""
        if self._life.process is not None and not await self._life.process.thaw():
            raise TimedOut(what="The agent's keeper", seconds=ANSWER_SECONDS, hint="Cancel the session.")
        self._turns.noted(calls.Thawed())
        self._turns.clock.thaw()

    async def close(self, *, force: bool) -> None:
        """End the process tree; returns when nothing of it is alive and the session has heard everything."""
        await self._life.close(force=force)

    async def _listening(self) -> Process:
        """The process, once it has read most of what it was sent."""
        process = self._life.process
        if process is not None and not await process.input.room(_ROOM_SECONDS):
            hint = "It does not read its input; interrupt the turn or stop the session."
            raise TimedOut(what=f"Agent '{self._spec.agent}'", seconds=_ROOM_SECONDS, hint=hint)
        if process is None or process.is_gone:
            raise AgentExited(agent=self._spec.agent, exit=str(process.exit if process else Exit()))
        return process


def _start_of(spec: AgentSpec, launch: Launch) -> Start:
    return Start(
        grant=spec.grant,
        argv=launch.argv,
        env={**launch.env, **spec.env},
        home=spec.home,
        cwd=spec.cwd,
        workspace=spec.workspace,
        files=launch.files,
        links=launch.links,
    )
