"""A session that is being used: decides what may happen, writes it to the log, and talks to the agent.

Every decision is taken and put into the log's queue without an await in between, so two clients can never both win.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.base.errors import (
    AgentExited,
    AskNotFound,
    InternalError,
    InvalidTransition,
    OstlerError,
    QueueEntryNotFound,
    SessionBusy,
    SessionEndedError,
    StoreUnavailable,
)
from ostler.base.failpoints import failpoint
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.link.protocol import Connection, Runner
from ostler.server.sessions import drafts
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.answers import check_answers
from ostler.server.sessions.attachments import images_of
from ostler.server.sessions.log import SessionLog
from ostler.server.sessions.overflow import thinned
from ostler.server.sessions.policy import approves_plan, vet
from ostler.server.sessions.settings import SessionChange
from ostler.server.sessions.state import TRANSITIONS
from ostler.server.sessions.work import Chores, Work
from ostler.server.store.records import Done, Progress, SessionRecord
from ostler.wire.events import PermissionMode, PermissionStatus, QueueEntry, SessionStatus
from ostler.wire.parts import PromptPart, TextPart
from ostler.wire.running import (
    AgentExit,
    Answer,
    Draft,
    PermissionAnswer,
    Prompt,
    QuestionAnswer,
)
from ostler.wire.sessions import Ask, Interrupted, PermissionReply, ProcessInfo, PromptReceipt, WhenBusy

log = Log(__name__)
_OUTCOMES: dict[PermissionReply, PermissionStatus] = {
    "once": "accept",
    "always": "accept_for_session",
    "reject": "reject",
}
_WRITE_RETRY_SECONDS = 1.0
_INTERRUPT_SECONDS = 5.0
_TITLE_LENGTH = 72


class LiveSession:
    """One session in memory; exists while somebody uses it."""

    def __init__(
        self,
        *,
        record: SessionRecord,
        session_log: SessionLog,
        runner: Runner,
        work: Work,
        home: str,
        idle_seconds: float,
        wrap_up_seconds: float,
    ) -> None:
        self.record = record
        self.log = session_log
        self.log.owner = self
        self.home = home
        self.background = Background(log, "session.task_failed", session_id=record.id)
        self.chores = Chores(self, work)
        self.agent = SessionAgent(self, runner, idle_seconds)
        self._turn: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._wrap_up_seconds = wrap_up_seconds
        self._hurried = asyncio.Event()
        self._deleted = False
        self._shutting_down = False
        self._overflown = False

    @property
    def id(self) -> str:
        """The session's id."""
        return self.record.id

    @property
    def _connection(self) -> Connection | None:
        return self.agent.connection

    @property
    def process(self) -> ProcessInfo | None:
        """The agent's process, while one runs."""
        return self.agent.process

    # Prompts

    async def send(self, parts: Sequence[PromptPart], when_busy: WhenBusy, claim: str | None = None) -> PromptReceipt:
        """Start a turn, or do what the client wants while one is under way; the log must have been measured."""
        self.refuse_if_over("prompts")
        if self.log.is_full:
            raise self.log.full()
        entry = QueueEntry(prompt_id=new_id("prm"), parts=tuple(parts), queued_at="")
        if self._can_begin():
            return await self._begin(entry, [], claim)
        if when_busy == "reject":
            raise SessionBusy(session=self.id, turn=self.log.state.turn.turn_id if self.log.state.turn else "none")
        if when_busy == "steer" and await self._steer(entry, claim):
            return self._receipt(entry, "steered")
        if self._can_begin():  # the turn ended while its images were read
            return await self._begin(entry, [], claim)
        if when_busy == "interrupt":
            return await self._jump_in(entry, claim)
        return await self._enqueue(entry, claim, front=False)

    def _can_begin(self) -> bool:
        state = self.log.state
        return state.turn is None and not (state.queue or self.chores.stand_in_the_way) and state.status == "running"

    async def _begin(self, entry: QueueEntry, left: list[Draft], claim: str | None = None) -> PromptReceipt:
        turn_id = new_id("trn")
        # a prompt that leaves the queue before its turn has begun was taken back, as readers of the log may count on
        written = [drafts.turn_started(turn_id), *drafts.user_message(entry.prompt_id, entry.parts), *left]
        if self.log.state.title is None and (title := _title_of(entry.parts)):
            written.insert(0, drafts.info(title=title))
        # an agent that is started for this turn counts its steps from 0, whatever a start that failed had counted
        progress = Progress(self.log.state.starts + 1, 0) if self._connection is None else None
        receipt = self._receipt(entry, "started", turn_id=turn_id)
        await self.log.append(written, progress, _done(claim, receipt))
        self.begin_turn(Prompt(prompt_id=entry.prompt_id, turn_id=turn_id, parts=entry.parts))
        await asyncio.sleep(0)  # the agent hears of it first, then the client: to write an answer takes a while
        return receipt

    def begin_turn(self, prompt: Prompt) -> None:
        """Hand the prompt of a turn that is in the log to the agent, started first if need be."""
        self._turn = self.background.spawn(self._run(prompt))

    async def _run(self, prompt: Prompt) -> None:
        try:
            await self.agent.prompt(prompt)
        except AgentExited:
            await self._run_anew(prompt)
        except OstlerError as error:
            await self._turn_failed(prompt.turn_id, error)
        except Exception as error:  # the edge of a background task
            reference = new_id("err")
            log.error("turn.crashed", session_id=self.id, reference=reference, exc_info=error)
            await self._turn_failed(prompt.turn_id, InternalError(reference=reference))

    async def _run_anew(self, prompt: Prompt) -> None:
        """The process ended between two turns, just before it could hear of this one."""
        self.agent.forget()
        try:
            await self.agent.prompt(prompt)
        except OstlerError as error:
            await self._turn_failed(prompt.turn_id, error)

    async def _turn_failed(self, turn_id: str, error: OstlerError) -> None:
        """The agent could not be reached; if it never could, the session is over."""
        if not self.is_current(turn_id) or self._shutting_down:
            return
        written = [
            drafts.error_of(error),
            *self._dropped_asks("agent"),
            drafts.turn_ended(turn_id, "failed", error.code),
        ]
        if self.log.state.starts == 0 and not isinstance(error, StoreUnavailable):
            written += [drafts.status("failed", str(error)), drafts.ended_by_error(error)]
        await self._append_patiently(written)
        await self.begin_next()

    @property
    def may_sleep(self) -> bool:
        """Whether nothing is under way or waits."""
        state = self.log.state
        is_idle = state.turn is None and not state.asks and not state.queue and state.status == "running"
        return is_idle and not self._shutting_down

    def is_current(self, turn_id: str) -> bool:
        """Whether this turn is under way."""
        return self.log.state.turn is not None and self.log.state.turn.turn_id == turn_id

    async def _steer(self, entry: QueueEntry, claim: str | None) -> bool:
        images = await images_of(entry.parts)
        turn, connection = self.log.state.turn, self._connection
        if turn is None or connection is None or self.log.state.status != "running":
            return False
        prompt = Prompt(prompt_id=entry.prompt_id, turn_id=turn.turn_id, parts=entry.parts, claim=claim, images=images)
        try:
            is_heard = await connection.steer(prompt)
        except AgentExited:  # the end of the turn is on its way to the log
            return False
        if is_heard:
            await self.take_up(prompt)
        return is_heard

    async def _jump_in(self, entry: QueueEntry, claim: str | None) -> PromptReceipt:
        receipt = await self._enqueue(entry, claim, front=True)
        if self.log.state.status == "running":
            await self.interrupt()
        return receipt

    async def _enqueue(self, entry: QueueEntry, claim: str | None, *, front: bool) -> PromptReceipt:
        entry = msgspec.structs.replace(entry, queued_at=self.log.now())
        waiting = self.log.state.queue
        entries = (entry, *waiting) if front else (*waiting, entry)
        receipt = self._receipt(entry, "queued", position=1 if front else len(entries))
        await self.log.append([drafts.queue(entries)], done=_done(claim, receipt))
        return receipt

    def _receipt(self, entry: QueueEntry, disposition: Any, **more: Any) -> PromptReceipt:
        turn = self.log.state.turn
        more.setdefault("turn_id", turn.turn_id if turn and disposition == "steered" else None)
        return PromptReceipt(prompt_id=entry.prompt_id, disposition=disposition, **more)

    async def begin_next(self) -> None:
        """Take the next prompt from the queue, if one waits and nothing stands in its way, not even a full disk."""
        try:
            await self._begin_next()
        except StoreUnavailable as error:
            log.error("session.append_failed", session_id=self.id, reason=str(error))
            self.background.spawn(self._begin_later())

    async def _begin_later(self) -> None:
        await asyncio.sleep(_WRITE_RETRY_SECONDS)
        await self.begin_next()

    async def _begin_next(self) -> None:
        if self.chores.stand_in_the_way:
            await self.chores.do()
        state = self.log.state
        if (
            state.turn is None
            and state.queue
            and state.status == "running"
            and not (self._deleted or self._shutting_down or self.is_ending or self.log.is_full)
        ):
            first, *rest = state.queue
            await self._begin(first, [drafts.queue(rest)])

    async def go_on(self) -> None:
        """Begin what waits; what takes long goes on beside the caller."""
        if self.chores.are_due:
            self.background.spawn(self.begin_next())
        else:
            await self.begin_next()

    async def unqueue(self, prompt_id: str) -> None:
        """Take a waiting prompt back."""
        rest = tuple(entry for entry in self.log.state.queue if entry.prompt_id != prompt_id)
        if len(rest) == len(self.log.state.queue):
            raise QueueEntryNotFound(prompt=prompt_id, session=self.id)
        await self.log.append([drafts.queue(rest)])

    async def clear_queue(self) -> None:
        """Take all waiting prompts back."""
        if self.log.state.queue:
            await self.log.append([drafts.queue(())])

    async def take_up(self, prompt: Prompt) -> None:
        """Write down a message that the agent heard within a turn."""
        receipt = PromptReceipt(prompt_id=prompt.prompt_id, disposition="steered", turn_id=prompt.turn_id)
        done = _done(prompt.claim, receipt)
        await self._append_patiently(drafts.user_message(prompt.prompt_id, prompt.parts), done=done)

    # Asks

    async def reply_permission(self, ask_id: str, reply: PermissionReply, message: str | None) -> Ask:
        """Decide a permission; the first one to decide wins."""
        ask = self._open_ask(ask_id, "permission")
        if ask.permission is None:
            raise AskNotFound(session=self.id, kind="permission", ask=ask_id)
        await self.log.append([drafts.permission_resolved(ask.permission, _OUTCOMES[reply], message, "user")])
        await self.tell(PermissionAnswer(ask_id=ask_id, allow=reply != "reject", message=message))
        return ask

    async def answer_question(
        self, ask_id: str, answers: tuple[tuple[str, ...], ...] | None, message: str | None
    ) -> Ask:
        """Answer a question, or decline with None; the first one to answer wins."""
        ask = self._open_ask(ask_id, "question")
        if ask.question is None:
            raise AskNotFound(session=self.id, kind="question", ask=ask_id)
        if answers is not None:
            check_answers(ask.question, answers)
        decided = [drafts.question_resolved(ask.question, answers, "user")]
        if approves_plan(ask.question, answers) and self._permission_mode == "plan":
            decided.append(drafts.settings(SessionChange(permission_mode="default")))
        await self.log.append(decided)
        await self.tell(QuestionAnswer(ask_id=ask_id, answers=answers, message=message))
        return ask

    @property
    def _permission_mode(self) -> PermissionMode:
        return self.log.state.permission_mode or self.record.spec.permission_mode

    def _open_ask(self, ask_id: str, kind: str) -> Ask:
        for ask in self.log.state.asks:
            if ask.ask_id == ask_id and ask.kind == kind:
                return ask
        raise AskNotFound(session=self.id, kind=kind, ask=ask_id)

    async def tell(self, answer: Answer) -> None:
        """Hand a decision that is in the log to the agent; one that has just died will never need it."""
        if self._connection is not None:
            with contextlib.suppress(AgentExited):
                await self._connection.answer(answer)

    # Status

    async def interrupt(self) -> Interrupted:
        """End the turn under way; queued prompts go on afterwards."""
        turn = self.log.state.turn
        if turn is None:
            return Interrupted(interrupted=False)
        if self.log.state.status != "running":
            raise InvalidTransition(
                session=self.id, status=self.log.state.status, verb="be interrupted; resume it first"
            )
        if self._turn is not None and await _cancelled(self._turn):  # the agent never heard of it
            await self._end_unheard(turn.turn_id)
        elif self._connection is not None:
            await self._connection.interrupt()
        return Interrupted(interrupted=True, turn_id=turn.turn_id)

    async def _end_unheard(self, turn_id: str) -> None:
        if self.is_current(turn_id):
            await self._append_patiently([drafts.turn_ended(turn_id, "interrupted", "interrupted")])
            await self.begin_next()

    async def pause(self) -> None:
        """Freeze the agent where it stands; prompts wait until it goes on."""
        await self._move("pausing", "be paused")
        await self.finish_pause()

    async def finish_pause(self) -> None:
        """The second half of a pause."""
        if self._connection is not None:
            await self._connection.freeze()
        await self._move("paused", "be paused")

    async def resume(self) -> None:
        """Let a paused session go on."""
        await self._move("resuming", "be resumed")
        await self.finish_resume()

    async def finish_resume(self) -> None:
        """The second half of a resume."""
        if self._connection is not None:
            await self._connection.thaw()
        await self._move("running", "be resumed")
        await self.begin_next()

    async def finish_stop(self) -> None:
        """Go on with a stop that an earlier server began."""
        self._ending = self.background.spawn(self._wind_down("stopped", "stopped", force=False))

    async def stop(self) -> None:
        """Ask the agent to wrap up, then end the session."""
        await self._end("stopping", "stopped", force=False)

    async def cancel(self) -> None:
        """End the session at once."""
        await self._end("cancelled", "cancelled", force=True)

    async def _end(self, first: SessionStatus, final: SessionStatus, *, force: bool) -> None:
        if self.log.shown.status == final:  # not before it is durable: whoever asked is told what is shown
            return
        if self._ending is None or self._ending.done():
            self._check_move(first, "be stopped" if first == "stopping" else "be cancelled")
            self._ending = self.background.spawn(self._wind_down(first, final, force=force))
        elif force:
            self._hurried.set()
            await self.disconnect(force=True)
            await self.chores.stop()
        await asyncio.shield(self._ending)

    async def _wind_down(self, first: SessionStatus, final: SessionStatus, *, force: bool) -> None:
        self.agent.stay_awake()
        paused = self.log.state.status in {"pausing", "paused"}
        if first != final:
            await self.log.append([drafts.status(first)])
        if force:
            await self.chores.stop()
        elif self._connection is not None and (paused or first == final):
            await self._connection.thaw()
        if not force:
            await self._wrap_up()
        await self.disconnect(force=force)
        cleared = [drafts.queue(())] if self.log.state.queue else []
        if cut := [*self._turn_cut_off("interrupted"), *cleared]:
            await self._append_patiently(cut)
        if not force:
            await self.chores.finish()
        if not self.log.state.ended and not self._shutting_down:  # else it is over, or the next server goes on
            await self._append_patiently([drafts.status(final), drafts.ended_by_us()])

    async def _wrap_up(self) -> None:
        """Let the agent end its turn by itself; one that takes too long, or waits for a human, is interrupted."""
        await self._turn_over(self._wrap_up_seconds, unless_asked=True)
        if self._connection is not None and self.log.state.turn is not None and not self._hurried.is_set():
            await self._connection.interrupt()
            await self._turn_over(_INTERRUPT_SECONDS, unless_asked=False)

    async def _turn_over(self, seconds: float, *, unless_asked: bool) -> None:
        """Wait for the end of the turn, but not for ever."""
        hurry = asyncio.ensure_future(self._hurried.wait())
        waiting = asyncio.ensure_future(self._until_over(unless_asked=unless_asked))
        try:
            await asyncio.wait({hurry, waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()
            waiting.cancel()

    async def _until_over(self, *, unless_asked: bool) -> None:
        while self.log.state.turn is not None and self._connection is not None:
            if unless_asked and self.log.state.asks:
                return
            await self.log.feed.wait(self.log.last, timeout=_INTERRUPT_SECONDS)

    def _turn_cut_off(self, reason: str) -> list[Draft]:
        state = self.log.state
        ended = [drafts.turn_ended(state.turn.turn_id, "interrupted", reason)] if state.turn else []
        return [*self._dropped_asks(reason), *ended]

    def _dropped_asks(self, by: str) -> list[Draft]:
        return [drafts.ask_dropped(ask, by) for ask in self.log.state.asks]

    async def disconnect(self, *, force: bool) -> None:
        """End the agent's process, also one that is just starting."""
        if self._turn is not None:
            await _cancelled(self._turn)
        if self._connection is not None:
            await self._connection.close(force=force)

    async def delete(self) -> None:
        """End everything; the caller removes what is stored."""
        self._deleted = True
        self.agent.stay_awake()
        await self.chores.stop()
        await self.disconnect(force=True)
        self.log.feed.close()

    async def shut_down(self) -> None:
        """The server stops for good: end the turn and the agent, keep the session."""
        self.leave()
        await self.chores.stop()
        await self.disconnect(force=False)
        if cut := self._turn_cut_off("server_stopping"):
            await self.log.append(cut)

    def leave(self) -> None:
        """The server stops: begin nothing more; another server goes on."""
        self._shutting_down = True
        self.agent.stay_awake()
        self.chores.leave()

    async def _move(self, status: SessionStatus, verb: str) -> None:
        self._check_move(status, verb)
        await self.log.append([drafts.status(status)])

    def _check_move(self, status: SessionStatus, verb: str) -> None:
        current = self.log.state.status
        if status not in TRANSITIONS[current]:
            raise InvalidTransition(session=self.id, status=current, verb=verb)

    @property
    def is_ending(self) -> bool:
        """Whether somebody stops or cancels it just now: a cancelled session is `running` until its agent is gone."""
        return self._ending is not None and not self._ending.done()

    def refuse_if_over(self, what: str) -> None:
        """Raise if the session takes nothing more."""
        status = self.log.state.status
        if self.log.state.ended or status == "stopping" or self.is_ending:
            shown = status if self.log.state.ended else "stopping"
            raise SessionEndedError(session=self.id, status=shown, what=what)

    # What the agent's connection reports

    async def delivered(self, events: Sequence[Draft], progress: Progress) -> None:
        """Store what the agent did; decides by itself the asks that need no human."""
        await self.log.measure()
        if self.log.is_full:
            events = thinned(events)
        written, answers = vet(events, self.log.state, self._permission_mode)
        if not written or self._deleted:
            return
        failpoint("deliver.before")
        await self._append_patiently(written, progress)
        failpoint("deliver.after")
        for answer in answers:
            self.background.spawn(self.tell(answer))
        if self.log.is_full and not self._overflown:
            self._overflown = True
            self.background.spawn(self._overflow())
        if any(draft.type == "turn.ended" for draft in written):
            self.agent.rest()
            self.background.spawn(self.begin_next())

    async def _overflow(self) -> None:
        """The log is full: say so, and end the turn."""
        log.warning("session.log_full", session_id=self.id)
        await self._append_patiently([drafts.error_of(self.log.full())])
        if self._connection is not None:
            await self._connection.interrupt()

    async def disconnected(self, end: AgentExit) -> None:
        """The agent's process is gone; the next prompt starts a new one."""
        self.agent.stay_awake()
        if not end.expected:
            log.warning("agent.exited", session_id=self.id, exit_code=end.exit_code, signal=end.signal)

    async def note(self, events: Sequence[Draft]) -> None:
        """Append what must not be lost."""
        await self._append_patiently(events)

    async def _append_patiently(
        self, events: Sequence[Draft], progress: Progress | None = None, done: Done | None = None
    ) -> None:
        """Append what must not be lost; while the disk is full the agent simply waits."""
        while True:
            try:
                await self.log.append(events, progress, done)
            except StoreUnavailable as error:
                log.error("session.append_failed", session_id=self.id, reason=str(error))
                await asyncio.sleep(_WRITE_RETRY_SECONDS)
            else:
                break
        if any(draft.type == "session.ended" for draft in events):
            self.chores.ended()


def _done(claim: str | None, receipt: PromptReceipt) -> Done | None:
    return Done(claim, msgspec.json.encode(receipt)) if claim is not None else None


def _title_of(parts: Sequence[PromptPart]) -> str | None:
    text = " ".join(part.text for part in parts if isinstance(part, TextPart)).split()
    title = " ".join(text)
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"


async def _cancelled(task: "asyncio.Task[None]") -> bool:
    """Cancel a task and wait until it is over; False if it had come to its end by itself."""
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()
