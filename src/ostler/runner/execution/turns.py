"""What an agent is told in its turns, and how they end; it is noted first, so that another server can repeat it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ostler.agents.adapter import TurnDone
from ostler.base.errors import AgentExited, StoreUnavailable
from ostler.base.logs import Log
from ostler.runner.execution.dialogue import Dialogue
from ostler.runner.execution.images import placed
from ostler.runner.execution.limits import Limits
from ostler.runner.processes import journal as calls
from ostler.runner.processes.journal import Call, Entry, Journal
from ostler.runner.processes.process import Exit, Process
from ostler.runner.processes.waiting import TurnClock
from ostler.wire.events import ErrorData, NoticeData, PermissionData
from ostler.wire.items import StderrOutput
from ostler.wire.running import AgentSpec, Connected, Draft, Prompt
from ostler.wire.sessions import ProcessInfo

log = Log(__name__)
_SHORTEST_GRACE = 0.01
_STOPS = {"orphaned": "server_gone"}
_GOES_ON = (
    "The agent works on: its process is one for several sessions (setting shared_agents), so a pause only holds back "
    "what it says. Interrupt the turn to stop it."
)


class Turns:
    """The turns of one process. Nothing is stopped or noted before `begin`: until then the past is repeated."""

    def __init__(self, spec: AgentSpec, limits: Limits, dialogue: Dialogue, act: Callable[[Process], None]) -> None:
        """`act` sees to what the dialogue wants done."""
        self._spec = spec
        self._limits = limits
        self._dialogue = dialogue
        self._act = act
        self._process: Process | None = None
        self._journal: Journal | None = None
        self._heard: list[str] = []
        self._steered: list[Prompt] = []
        own = spec.turn_timeout_seconds
        self._timeout = limits.turn_timeout if own is None else own
        self.clock = TurnClock(self._timeout, self._on_deadline)
        self.ending: TurnDone | None = None
        """How the running turn is to end, once somebody wants it to."""
        self.stopping: asyncio.Task[None] | None = None
        self.expected = False
        """Whether the process ends because we want it to."""
        self.continues_turns = False
        """Whether another process can go on with a turn in which this one dies."""
        self.left_open: str | None = None
        """The turn that it is to go on with, once this process is gone."""

    def begin(self, process: Process, folder: Path) -> None:
        """The past has been repeated; what it is sent from now on is noted."""
        self._process = process
        self._journal = Journal(folder)

    def leave(self) -> None:
        """Note nothing more."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def report(self, process: Process, started_at: str) -> Connected:
        """What the server is told of the process."""
        asks = self._dialogue.guard.open_asks
        runs = ProcessInfo(pid=process.pid, keeper_pid=process.keeper, started_at=started_at)
        return Connected(
            process=None if process.is_gone else runs,
            remembers=self._dialogue.remembers,
            open_asks=tuple(ask.permission_id if isinstance(ask, PermissionData) else ask.question_id for ask in asks),
            heard=tuple(self._heard),
            steered=tuple(self._steered),
            reached=self._dialogue.ready.reached if self._dialogue.ready is not None else 0,
        )

    # The journal

    def note(self, call: Call) -> None:
        """Write a call down before anything comes of it; raises StoreUnavailable."""
        if self._journal is not None and self._process is not None:
            self._journal.add(call, at=self._process.offset)

    def noted(self, call: Call) -> bool:
        """Write a call down; False if that cannot be."""
        try:
            self.note(call)
        except StoreUnavailable as error:
            log.error("journal.failed", session_id=self._spec.session_id, reason=str(error))
            return False
        return True

    def repeat(self, entry: Entry) -> None:
        """Do again what an earlier server noted."""
        self.clock.now = lambda: entry.time
        match entry.call:
            case calls.Opened():
                self._dialogue.open()
            case calls.Prompted(prompt):
                self.prompt(prompt)
            case calls.Steered(prompt):
                self.steer(prompt)
            case calls.Answered(answer):
                self._dialogue.answer(answer)
            case calls.Ended(end, overdue):
                self._end(end, overdue)
            case calls.Frozen():
                self.clock.freeze()
            case calls.Thawed():
                self.clock.thaw()

    # Turns

    def prompt(self, prompt: Prompt) -> None:
        """Begin a turn with a prompt that was noted."""
        self._heard.append(prompt.prompt_id)
        self.clock.start()
        self._dialogue.prompt(self._placed(prompt))

    def _placed(self, prompt: Prompt) -> Prompt:
        return placed(prompt, self._spec.home) if prompt.images else prompt

    def steer(self, prompt: Prompt) -> bool:
        """Add a message that was noted to the turn; False if the agent cannot."""
        steered = self._dialogue.steer(self._placed(prompt))
        if steered:
            self._steered.append(msgspec.structs.replace(prompt, images={}))
        return steered

    def _on_deadline(self) -> None:
        self.end(TurnDone(outcome="failed", stop_reason="timeout"), overdue=self._timeout)

    def end(self, end: TurnDone, overdue: float | None = None) -> None:
        """Tell the agent to end its turn; when it has not after the grace, the process is stopped."""
        if self._dialogue.guard.turn_id is None or self.ending is not None or self._process is None:
            return
        if not self.noted(calls.Ended(end, overdue)):
            self.ending = end
            self.stop(self._process)  # what is not noted cannot be repeated, so nothing may follow it
            return
        self._end(end, overdue)
        self.end_by_force_later(self._process)
        self._act(self._process)

    def _end(self, end: TurnDone, overdue: float | None) -> None:
        self.ending = end
        self.clock.stop()
        complaints = []
        if overdue is not None:
            self._dialogue.forced_end = end
            message = f"The turn took longer than {overdue:g} seconds and was ended."
            complaints.append(_complaint(message, "turn_timeout", {"seconds": overdue}))
        self._dialogue.interrupt(end.stop_reason or end.outcome, *complaints)

    def end_by_force_later(self, process: Process) -> None:
        """Stop the process if the turn has not ended after its grace."""
        grace = max(self._limits.interrupt_grace, _SHORTEST_GRACE)
        self.clock.grace(grace, lambda: self._stop_disobedient(process))

    def end_unread(self, process: Process) -> None:
        """The agent does not read what it is sent."""
        self._dialogue.log(_complaint("The agent does not read its input.", "agent_not_reading", {}))
        self.ending = TurnDone(outcome="failed", stop_reason="agent_not_reading")
        self._stop_disobedient(process)

    def _stop_disobedient(self, process: Process) -> None:
        log.warning("agent.disobedient", session_id=self._spec.session_id, agent=self._spec.agent)
        self.stop(process)

    def stop(self, process: Process) -> None:
        """End the process, beside everything else."""
        self.expected = True
        if self.stopping is None:
            self.stopping = asyncio.create_task(process.stop(grace=self._limits.stop_grace))

    def tell_of_pause(self) -> bool:
        """Say that the turn under way is not stopped by a pause; False if there is none."""
        if self._dialogue.guard.turn_id is None:
            return False
        self._dialogue.log(_notice(_GOES_ON, "pause_is_shared"))
        return True

    def check(self, process: Process) -> None:
        """See whether the turn is over, and whether the process may go on at all."""
        if self._dialogue.guard.turn_id is None:
            self.clock.stop()
            self.ending = None
            self._unload(process)
        if self._dialogue.is_locked_out and self.stopping is None:
            log.warning("agent.not_logged_in", session_id=self._spec.session_id, agent=self._spec.agent)
            self.stop(process)
        if 0 < self._limits.max_output < process.offset and self.stopping is None:
            self._overflow(process)

    def _unload(self, process: Process) -> None:
        """What it said need not stay on disk between turns: that goes with its process, and a prompt starts another."""
        is_large = 0 < self._limits.max_idle_output < process.offset
        if is_large and self._dialogue.ready is not None and self._process is not None and self.stopping is None:
            log.info("agent.unloaded", session_id=self._spec.session_id, agent=self._spec.agent, bytes=process.offset)
            self.stop(process)

    def _overflow(self, process: Process) -> None:
        """It has said more than may lie on disk: that goes with its process, and the next prompt starts another."""
        limit = self._limits.max_output
        log.warning("agent.output_full", session_id=self._spec.session_id, agent=self._spec.agent, limit=limit)
        if self._dialogue.guard.turn_id is not None:
            self.ending = TurnDone(outcome="failed", stop_reason="output_full")
            message = f"The agent said more than {limit} bytes (max_output_bytes) and was stopped."
            self._dialogue.log(_complaint(message, "output_full", {"bytes": limit}))
        self.stop(process)

    def close(self, exit_: Exit, stderr: StderrOutput) -> None:
        """The process is gone: end what is open."""
        guard = self._dialogue.guard
        if guard.turn_id is None:
            self._dialogue.log(*guard.give_up())
            return
        if self.continues_turns and not self.expected and self.ending is None:
            self.left_open = guard.turn_id
            words = f"Agent '{self._spec.agent}' exited with {exit_}. A new process goes on with the turn."
            self._dialogue.log(_notice(words, "turn_continues"))
            return
        stopped = TurnDone(outcome="interrupted", stop_reason=_STOPS.get(exit_.ordered or "", "stopped"))
        died = TurnDone(outcome="failed", stop_reason="agent_exited")
        lost = TurnDone(outcome="interrupted", stop_reason="keeper_lost")
        end = stopped if self.expected else lost if exit_ == Exit() else died
        if not self.expected:
            gone = AgentExited(agent=self._spec.agent, exit=str(exit_))
            details = {"exit_code": exit_.exit_code, "signal": exit_.signal, "stderr": msgspec.to_builtins(stderr)}
            self._dialogue.log(_complaint(str(gone), gone.code, details))
        end = self.ending or end
        self._dialogue.log(*guard.end_turn(end.outcome, end.stop_reason or end.outcome))


def _notice(message: str, code: str) -> Draft:
    data = NoticeData(severity="warning", message=message, code=code)
    return Draft("notice", data, source="daemon", synthetic=True)


def _complaint(message: str, code: str, details: dict[str, Any]) -> Draft:
    return Draft("error", ErrorData(message=message, code=code, details=details), source="daemon", synthetic=True)
