"""One agent's dialogue without its process: bytes to frames, frames to drafts, prompts to frames to send."""

import hashlib
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, assert_never

import msgspec

from ostler.agents.adapter import Offered, Output, Ready, Send, StartFailed, Translator, TurnDone, Unreadable
from ostler.base.logs import Log
from ostler.runner.execution.cutting import MOST_VALUES, Cutter, has_too_many_values
from ostler.runner.execution.frames import FRAMINGS, Frame, Overlong, Trimmed
from ostler.runner.execution.guard import TurnGuard
from ostler.runner.processes.logins import asks_for_login, hidden, hidden_text, waits_for_login
from ostler.wire.agents import Command
from ostler.wire.events import AgentUnparsedData, ErrorData, PermissionData, QuestionData, SessionInfoData
from ostler.wire.running import Answer, Continued, Draft, PermissionAnswer, Prompt, QuestionAnswer

log = Log(__name__)
RAW_BYTES = 65536
_MOST_LOGGED = 10
_ERROR_LENGTH = 500
LAST_STEP = 2**62


class Counts:
    """How many frames an agent's processes sent, and how many of them nobody understood."""

    def __init__(self) -> None:
        self.frames = 0
        self.unparsed = 0


OnOffer = Callable[[tuple[Command, ...]], None]
"""Hears which commands the agent takes, as often as it tells."""


class Dialogue:
    """Runs the translator behind the guard; what should be sent and logged piles up until it is taken."""

    def __init__(
        self,
        translator: Translator,
        *,
        start: int,
        max_frame_bytes: int,
        max_item_length: int = 8 * 2**20,
        counts: Counts,
        framing: str = "lines",
        resume: str | None = None,
        continues: Continued | None = None,
        login_hint: str = "",
        on_offer: OnOffer = lambda _: None,
        can_log_in: bool = False,
    ) -> None:
        """`login_hint` is what a person can do when the agent is not let in.

        `can_log_in` is whether another process of the session may be let in when somebody has done it.
        """
        self._on_offer = on_offer
        self._login_hint = login_hint
        self._can_log_in = can_log_in
        self._translator = translator
        self._start = start
        self._resume = resume
        self._continues = continues
        self._wrap = FRAMINGS[framing].wrap
        self._splitter = FRAMINGS[framing].splitter(max_frame_bytes, max_item_length)
        self._counts = counts
        self._failures = 0
        self.guard = TurnGuard(max_item_length)
        self._cutter = Cutter(max_item_length)
        self.steps = 0
        """Frames and calls so far; what comes of one step is delivered together."""
        self.known = 0
        """What comes of steps up to this one has been delivered before, by an earlier server."""
        self._sends: list[bytes] = []
        self._drafts: list[Draft] = []
        self.ready: Ready | None = None
        self.start_failure: str | None = None
        self._wants_login = False
        self.is_locked_out = False
        """Whether only another process, with another login, could do more; nothing it says counts any more."""
        self._was_refused = False
        self.forced_end: TurnDone | None = None
        """What every end of the running turn is replaced by, when we have decided how it ends."""

    def take_drafts(self) -> list[Draft]:
        """The drafts so far, once."""
        drafts, self._drafts = self._drafts, []
        return drafts

    def log(self, *drafts: Draft) -> None:
        """Add to what should be logged, within bounds."""
        fitting = self._cutter.cut(drafts)
        if self.steps > self.known:
            self._drafts += fitting

    def take_sends(self) -> list[bytes]:
        """The frames to send so far, as they are written, once."""
        sends, self._sends = self._sends, []
        return [self._wrap(frame) for frame in sends]

    # What the agent says

    def feed(self, chunk: bytes) -> None:
        """Take output of the agent, cut anywhere."""
        for frame in self._splitter.feed(chunk):
            self._on_frame(frame)
        if (question := self._splitter.unfinished) and question[:1] != b"{" and asks_for_login(question):
            self._locked_out()

    def hear_beside(self, words: bytes) -> None:
        """Take what the agent said last beside its frames, when it has been silent for a while."""
        if waits_for_login(words):
            self._locked_out()

    def _locked_out(self) -> None:
        self._wants_login = True
        why = f"The agent is not logged in and waits for somebody to do that. {self._login_hint}".strip()
        if self.ready is None:
            self.start_failure = self.start_failure or why
        elif self.guard.turn_id is not None:
            self.is_locked_out = True
            self.log(Draft("error", ErrorData(message=why, code="auth"), source="daemon", synthetic=True))
            self.log(*self.guard.end_turn("failed", "auth"))

    def end(self) -> None:
        """The agent's output is over; what stands without a line end is a frame."""
        for frame in self._splitter.end():
            self._on_frame(frame)

    def conclude(self) -> None:
        """The process is gone: what is logged from now on is its last step."""
        self.steps = LAST_STEP

    def _on_frame(self, frame: Frame) -> None:
        if self.is_locked_out:
            return
        self.steps += 1
        self._counts.frames += 1
        if isinstance(frame, Overlong):
            self._unparsed(f"Frame is longer than {frame.size} bytes", "frame", frame.head, frame.sha256)
        elif isinstance(frame, Trimmed):
            self.log(self._cutter.shortened(frame.cut))
            self._on_bytes(frame.frame)
        else:
            self._on_bytes(frame)

    def _on_bytes(self, frame: bytes) -> None:
        if has_too_many_values(frame):
            self._unparsed(f"Frame has more than {MOST_VALUES} values", "frame", frame)
        elif frame.isascii() or _is_utf8(frame):
            self._run(partial(self._translator.feed, frame), frame)
        else:
            self._unparsed("Frame is not valid UTF-8", "frame", frame)

    # What we say

    def open(self) -> bool:
        """Begin the handshake; False if the translator failed."""
        self.steps += 1
        return self._run(self._translator.open)

    def prompt(self, prompt: Prompt) -> None:
        """Begin a turn; a translator that fails ends it."""
        self.steps += 1
        self.forced_end = None
        self._was_refused = False
        self.guard.begin(prompt.turn_id)
        if self._continues is not None and self._continues.turn_id == prompt.turn_id:
            self.guard.go_on(self._continues)
        if self._wants_login:
            self._locked_out()
            return
        if not self._run(lambda: self._translator.prompt(prompt)):
            self.log(*self.guard.end_turn("failed", "adapter_error"))

    def steer(self, prompt: Prompt) -> bool:
        """Add to the running turn; False if the agent cannot."""
        self.steps += 1
        outputs: Sequence[Output] | None = None

        def steer() -> Sequence[Output]:
            nonlocal outputs
            outputs = self._translator.steer(prompt)
            return outputs or ()

        return self._run(steer) and outputs is not None

    def answer(self, answer: Answer) -> None:
        """Hand over a decision."""
        self.steps += 1
        self.guard.answered(answer.ask_id)
        self._run(lambda: self._translator.answer(answer))

    def interrupt(self, reason: str, *complaints: Draft) -> None:
        """Cancel open asks first (some agents hang otherwise), then ask the agent to end its turn."""
        self.steps += 1
        self.log(*complaints)
        if self.guard.open_asks and self.forced_end is None:  # an agent may end its turn over the refusal alone
            self.forced_end = TurnDone(outcome="interrupted", stop_reason=reason)
        for ask in self.guard.open_asks:
            self._run(partial(self._translator.answer, _refusal(ask)))
        self.log(*self.guard.cancel_asks(reason))
        self._run(self._translator.interrupt)

    # The translator's outputs

    def _run(self, step: Callable[[], Sequence[Output]], frame: bytes | None = None) -> bool:
        """Let the translator do one step; whatever goes wrong in it is recorded and never raised."""
        try:
            for output in step():
                self._apply(output, frame)
        except Unreadable as error:
            self._unparsed(str(error), error.location, frame)
            return False
        except Exception as error:
            self._failures += 1
            if self._failures <= _MOST_LOGGED:
                log.error("translator.failed", exc_info=error)
            self._unparsed(f"{type(error).__name__}: {error}", _place(error), frame)
            return False
        return True

    def _apply(self, output: Output, frame: bytes | None) -> None:
        match output:
            case Draft():
                output.raw = frame
                self.log(*self.guard.take(self._explained(output)))
            case Send(frame=data):
                self._sends.append(data)
            case TurnDone():
                done = self.forced_end or output
                self.is_locked_out |= self._was_refused and self._can_log_in and done.outcome == "failed"
                self.log(*self.guard.done(done, frame))
            case Ready():
                self._on_ready(self._cutter.fitted(output))
            case Offered():
                self._on_offer(self._cutter.fitted(output).commands)
            case StartFailed():
                self.start_failure = self._cutter.fitted(output).reason
            case _:
                assert_never(output)

    def _explained(self, draft: Draft) -> Draft:
        """An error without secrets, and with what can be done about it."""
        if not isinstance(draft.data, ErrorData):
            return draft
        message = hidden_text(draft.data.message)
        self._was_refused |= draft.data.code == "auth"
        if draft.data.code == "auth" and self._login_hint:
            message = f"{message.rstrip('.')}. {self._login_hint}"
        draft.raw = hidden(draft.raw) if draft.raw is not None else None
        draft.data = msgspec.structs.replace(draft.data, message=message)
        return draft

    def _on_ready(self, ready: Ready) -> None:
        data = SessionInfoData(
            native_session_id=ready.native_session_id,
            agent_version=ready.agent_version,
            model=ready.model,
            mode=ready.mode,
            start=self._start if self.ready is None else None,
            memory=None if self._start == 1 or self.ready is not None else self._memory(ready),
        )
        self.ready = ready
        self.log(Draft("session.info", data, source="daemon", synthetic=True))

    def _memory(self, ready: Ready) -> Literal["native", "replayed"]:
        return "native" if self._is_resumed(ready) else "replayed"

    def _is_resumed(self, ready: Ready) -> bool:
        if self._resume is None:
            return False
        return ready.native_session_id == self._resume if ready.resumed is None else ready.resumed

    @property
    def remembers(self) -> bool:
        """Whether the agent knows what was said in this session before."""
        return self._start == 1 or (self.ready is not None and self._is_resumed(self.ready))

    @property
    def is_awaited(self) -> bool:
        """Whether it should be saying something now."""
        return self.ready is None or (self.guard.turn_id is not None and not self.guard.open_asks)

    def _unparsed(self, error: str, location: str, frame: bytes | None, sha256: str | None = None) -> None:
        self._counts.unparsed += 1
        raw = None
        if frame is not None:
            sha256 = sha256 or hashlib.sha256(frame).hexdigest()
            raw = msgspec.json.encode(hidden(frame[:RAW_BYTES]).decode(errors="replace"))
        data = AgentUnparsedData(error=hidden_text(error[:_ERROR_LENGTH]), location=location, raw_hash=sha256)
        self.log(Draft("agent.unparsed", data, source="daemon", synthetic=True, raw=raw))
        if frame is not None and frame[:1] != b"{" and asks_for_login(frame):
            self._locked_out()


def _is_utf8(frame: bytes) -> bool:
    try:
        frame.decode()
    except UnicodeDecodeError:
        return False
    return True


def _place(error: Exception) -> str:
    """The line of code that failed."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "translator"


def _refusal(ask: PermissionData | QuestionData) -> Answer:
    message = "The turn was interrupted."
    if isinstance(ask, PermissionData):
        return PermissionAnswer(ask_id=ask.permission_id, allow=False, message=message, withdrawn=True)
    return QuestionAnswer(ask_id=ask.question_id, answers=None, message=message, withdrawn=True)
