"""The turns of a session and the prompts that wait for one.

Every decision is taken and put into the log's queue without an await in between, so two clients can never both win.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

import msgspec

from ostler.base.errors import (
    AgentExited,
    InternalError,
    InvalidTransition,
    OstlerError,
    QueueEntryNotFound,
    SessionBusy,
    StoreUnavailable,
)
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.server.sessions import drafts, handoff
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.continuing import Continuing, is_current, open_items
from ostler.server.sessions.log.state import is_waited_for
from ostler.server.sessions.log.titles import title_of
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.chores import Chores
from ostler.server.sessions.work.limit_wait import LimitWait
from ostler.server.store.acting import acting, current_trace, deed, marked, new_trace
from ostler.server.store.records import Done, Progress
from ostler.wire.events import SessionStatus
from ostler.wire.items import QueueEntry
from ostler.wire.parts import PromptPart, TextPart
from ostler.wire.running import AgentExit, Draft, Prompt
from ostler.wire.sessions import Interrupted, PromptReceipt, WhenBusy

log = Log(__name__)
_RETRY_SECONDS = 1.0
Beside = Callable[[str], Sequence[Draft]]
"""What is written together with a prompt of this id; one that is steered into a turn takes nothing along."""


def nothing_beside(_prompt_id: str) -> Sequence[Draft]:
    """A prompt alone."""
    return ()


class Turns:
    """Begins turns one after the other."""

    def __init__(self, session: SessionCore, agent: SessionAgent, chores: Chores, limit: LimitWait) -> None:
        self._session = session
        self._agent = agent
        self._chores = chores
        self._limit = limit
        self._continuing = Continuing(session, agent)

    async def take(
        self,
        parts: Sequence[PromptPart],
        when_busy: WhenBusy,
        claim: str | None = None,
        beside: Beside = nothing_beside,
    ) -> PromptReceipt:
        """Start a turn, or do what the client wants while one is under way; the log must have been measured."""
        self._session.refuse_if_over("prompts")
        if self._session.log.is_full:
            raise self._session.log.full()
        entry = QueueEntry(
            prompt_id=new_id("prm"), parts=tuple(parts), queued_at="", actor=acting(), trace_id=current_trace()
        )
        also = beside(entry.prompt_id)
        if self._can_begin():
            return await self._begin(entry, also, claim)
        if self._agent.is_away:
            return await self._wait_for_runner(entry, when_busy, claim, also)
        if when_busy == "reject":
            turn = self._session.state.turn
            raise SessionBusy(session=self._session.id, turn=turn.turn_id if turn else "none")
        if when_busy == "steer" and await self._steer(entry, claim):
            return self._receipt(entry, "steered")
        if self._can_begin():  # the turn ended while its images were read
            return await self._begin(entry, also, claim)
        if when_busy == "interrupt":
            return await self._jump_in(entry, claim, also)
        return await self._enqueue(entry, claim, also, front=False)

    def _can_begin(self) -> bool:
        state = self._session.state
        waits = state.queue or state.handoff or self._chores.are_blocking or self._session.holds_prompts
        return state.turn is None and not waits and state.status == "running" and not self._agent.is_away

    async def _begin(self, entry: QueueEntry, also: Sequence[Draft], claim: str | None = None) -> PromptReceipt:
        turn_id = new_id("trn")
        # a prompt that leaves the queue before its turn has begun was taken back, as readers of the log may count on
        started = drafts.turn_started(turn_id, entry.trace_id or new_trace())  # an older server queued it without
        written = [started, *self._new_agent(), *drafts.user_message(entry.prompt_id, entry.parts)]
        if self._session.state.title is None and (title := _title_of(entry.parts)):
            written.insert(0, drafts.info(title=title))
        # an agent that is started for this turn counts its steps from 0, whatever a start that failed had counted
        progress = Progress(self._session.state.starts + 1, 0) if self._agent.connection is None else None
        receipt = self._receipt(entry, "started", turn_id=turn_id)
        await self._session.log.append([*marked(entry.actor, written), *also], progress, _done(claim, receipt))
        self.begin_turn(Prompt(prompt_id=entry.prompt_id, turn_id=turn_id, parts=entry.parts))
        await asyncio.sleep(0)  # the agent hears of it first, then the client: to write an answer takes a while
        return receipt

    def _new_agent(self) -> list[Draft]:
        """That the turn which begins now is the first of another agent, for readers who see only turns."""
        if not self._session.state.is_new_to_agent:
            return []
        return [drafts.remark(f"{self._session.record.agent} has the session now.", "handed_over")]

    def begin_turn(self, prompt: Prompt) -> None:
        """Hand the prompt of a turn that is in the log to the agent, started first if need be."""
        self._agent.begin(self._run(prompt))

    async def _run(self, prompt: Prompt) -> None:
        await self._at_the_edge(prompt.turn_id, self._prompted(prompt))

    async def _prompted(self, prompt: Prompt) -> None:
        await self._chores.before_turn()
        try:
            await self._agent.prompt(prompt)
        except AgentExited:  # between two turns, just before it could hear of this one
            self._agent.forget()
            await self._agent.prompt(prompt)

    async def _at_the_edge(self, turn_id: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except RunnerUnavailable:
            _left_to_runner(self._session, turn_id)
        except OstlerError as error:
            await self._turn_failed(turn_id, error)
        except Exception as error:  # the edge of a background task
            reference = new_id("err")
            log.error("turn.crashed", session_id=self._session.id, reference=reference, exc_info=error)
            await self._turn_failed(turn_id, InternalError(reference=reference))

    def go_on_with(self, turn_id: str, end: AgentExit) -> None:
        """The process of a turn died, and another one can go on with it."""
        self.go_on_after(AgentExited(agent=self._session.record.agent, exit=_shown(end)), turn_id)

    def go_on_after(self, why: OstlerError, turn_id: str, *, rebooted: bool = False) -> None:
        """Have another process go on with a turn whose own is gone, perhaps because the machine stopped."""
        if is_current(self._session, turn_id) and not self._session.is_leaving and not self._session.log.is_deleted:
            self._agent.begin(self._at_the_edge(turn_id, self._continuing.go_on(turn_id, why, rebooted=rebooted)))

    async def _turn_failed(self, turn_id: str, error: OstlerError) -> None:
        """The agent could not be reached; if it never could, the session is over."""
        if not is_current(self._session, turn_id) or self._session.is_leaving:
            return
        written = [
            *await open_items(self._session),
            drafts.error_of(error),
            *drafts.asks_dropped(self._session.state.asks, "agent"),
            drafts.turn_ended(turn_id, "failed", error.code),
        ]
        if self._session.state.starts == 0 and not isinstance(error, StoreUnavailable):
            written += [drafts.status("failed", str(error)), drafts.ended_by_error(error)]
        await self._session.note(written)
        await self.begin_next()

    async def tell(self, text: str) -> bool:
        """Say something within the turn under way; False if its agent cannot hear it then."""
        entry = QueueEntry(prompt_id=new_id("prm"), parts=(TextPart(text=text),), queued_at="", actor=acting())
        return await self._steer(entry, None, status=self._session.state.status)

    async def _steer(self, entry: QueueEntry, claim: str | None, status: SessionStatus = "running") -> bool:
        images = await self._session.attachments.shown(entry.parts)
        turn, connection = self._session.state.turn, self._agent.connection
        if turn is None or connection is None or self._session.state.status != status:
            return False
        prompt = Prompt(
            prompt_id=entry.prompt_id,
            turn_id=turn.turn_id,
            parts=entry.parts,
            claim=claim,
            actor=entry.actor,
            images=images,
        )
        try:
            is_heard = await connection.steer(prompt)
        except (AgentExited, RunnerUnavailable):  # the end of the turn, or of the link, is on its way
            return False
        if is_heard:
            await self.take_up(prompt)
        return is_heard

    async def _wait_for_runner(
        self, entry: QueueEntry, when_busy: WhenBusy, claim: str | None, also: Sequence[Draft]
    ) -> PromptReceipt:
        """The prompt is durable now, and begun when the runner is back."""
        if when_busy == "reject":
            self._agent.refuse_if_away()
        return await self._enqueue(entry, claim, also, front=when_busy == "interrupt")

    async def _jump_in(self, entry: QueueEntry, claim: str | None, also: Sequence[Draft]) -> PromptReceipt:
        receipt = await self._enqueue(entry, claim, also, front=True)
        if self._session.state.status == "running":
            await self.interrupt()
        return receipt

    async def _enqueue(
        self, entry: QueueEntry, claim: str | None, also: Sequence[Draft], *, front: bool
    ) -> PromptReceipt:
        entry = msgspec.structs.replace(entry, queued_at=self._session.log.now())
        waiting, was_limited = self._session.state.queue, self._limit.is_waiting
        entries = (entry, *waiting) if front else (*waiting, entry)
        receipt = self._receipt(entry, "queued", position=1 if front else len(entries))
        written = [*marked(entry.actor, [drafts.queue(entries)]), *also]
        await self._session.log.append(written, done=_done(claim, receipt))
        self._agent.wait_for_runner()
        if self._chores.are_due or was_limited:  # perhaps they failed before, and it was not in memory since
            self._session.background.spawn(self.begin_next())
        return receipt

    def _receipt(self, entry: QueueEntry, disposition: Any, **more: Any) -> PromptReceipt:
        turn = self._session.state.turn
        more.setdefault("turn_id", turn.turn_id if turn and disposition == "steered" else None)
        return PromptReceipt(prompt_id=entry.prompt_id, disposition=disposition, **more)

    async def begin_next(self) -> None:
        """Take the next prompt from the queue, if one waits and nothing stands in its way, not even a full disk."""
        try:
            await self._begin_next()
        except StoreUnavailable as error:
            log.error("session.append_failed", session_id=self._session.id, reason=str(error))
            self._session.background.spawn(self._begin_later())
        except RunnerUnavailable as error:
            log.info("session.waits_for_runner", session_id=self._session.id, reason=str(error))

    async def _begin_later(self) -> None:
        await asyncio.sleep(_RETRY_SECONDS)
        await self.begin_next()

    async def _begin_next(self) -> None:
        if self._chores.are_blocking:
            await self._chores.do()
        if self._session.state.handoff is not None and self._is_clear():
            await self._chores.alone(self._hand_over)
        self._chores.keep()
        if is_waited_for(self._session.state.limit):
            self._limit.begin(self.begin_next)
        elif self._session.state.queue and self._is_clear():
            first, *rest = self._session.state.queue
            await self._begin(first, [drafts.queue(rest)])

    def _is_clear(self) -> bool:
        """Whether nothing stands in the way of a turn."""
        session, state = self._session, self._session.state
        is_over = session.log.is_deleted or session.is_leaving or session.is_ending or session.log.is_full
        is_idle = state.turn is None and state.status == "running"
        return is_idle and not (is_over or self._agent.is_away or session.holds_prompts)

    async def _hand_over(self) -> None:
        if self._is_clear():
            await handoff.finish(self._session, self._agent)

    async def go_on(self) -> None:
        """Begin what waits; what takes long goes on beside the caller."""
        if self._chores.are_due:
            self._session.background.spawn(self.begin_next())
        else:
            await self.begin_next()

    async def unqueue(self, prompt_id: str) -> None:
        """Take a waiting prompt back."""
        rest = tuple(entry for entry in self._session.state.queue if entry.prompt_id != prompt_id)
        if len(rest) == len(self._session.state.queue):
            raise QueueEntryNotFound(prompt=prompt_id, session=self._session.id)
        await self._session.log.append(deed(drafts.queue(rest), *comments_back(self._session, {prompt_id})))

    async def clear_queue(self) -> None:
        """Take all waiting prompts back."""
        if self._session.state.queue:
            waiting = {entry.prompt_id for entry in self._session.state.queue}
            await self._session.log.append(deed(drafts.queue(()), *comments_back(self._session, waiting)))

    async def take_up(self, prompt: Prompt) -> None:
        """Write down a message that the agent heard within a turn; it waits no longer, if nobody knew that it was."""
        waiting = self._session.state.queue
        rest = tuple(entry for entry in waiting if entry.prompt_id != prompt.prompt_id)
        left = [drafts.queue(rest)] if len(rest) < len(waiting) else []
        receipt = PromptReceipt(prompt_id=prompt.prompt_id, disposition="steered", turn_id=prompt.turn_id)
        done = _done(prompt.claim, receipt)
        written = marked(prompt.actor, drafts.user_message(prompt.prompt_id, prompt.parts))
        await self._session.note([*written, *left], done=done)

    async def interrupt(self) -> Interrupted:
        """End the turn under way, or the waiting for a limit; queued prompts go on afterwards."""
        turn = self._session.state.turn
        if turn is None:
            return Interrupted(interrupted=await self._stop_waiting())
        if self._session.state.status != "running":
            raise InvalidTransition(
                session=self._session.id, status=self._session.state.status, verb="be interrupted; resume it first"
            )
        self._agent.refuse_if_away()
        if await self._agent.stop_starting():  # the agent never heard of it
            await self._end_unheard(turn.turn_id)
        elif self._agent.connection is not None:
            self._session.interrupted()
            await self._agent.connection.interrupt()
        return Interrupted(interrupted=True, turn_id=turn.turn_id)

    async def _stop_waiting(self) -> bool:
        if dropped := self._limit.dropped():
            await self._session.log.append(dropped)
            await self.go_on()
        return bool(dropped)

    async def _end_unheard(self, turn_id: str) -> None:
        if is_current(self._session, turn_id):
            left = await open_items(self._session)
            left += drafts.asks_dropped(self._session.state.asks, "interrupted")
            await self._session.note(deed(*left, drafts.turn_ended(turn_id, "interrupted", "interrupted")))
            await self.begin_next()


def comments_back(session: SessionCore, prompts: Collection[str]) -> list[Draft]:
    """That the comments of prompts which are taken back wait to be sent again."""
    back = (comment for comment in session.state.comments if comment.prompt_id in prompts)
    return [drafts.comment(msgspec.structs.replace(comment, prompt_id=None)) for comment in back]


def _left_to_runner(session: SessionCore, turn_id: str) -> None:
    """Nobody knows whether the agent heard of it; the turn stays under way until its runner is back."""
    log.info("turn.left_to_runner", session_id=session.id, turn_id=turn_id)


def _shown(end: AgentExit) -> str:
    if end.exit_code is not None:
        return f"code {end.exit_code}"
    return f"signal {end.signal}" if end.signal is not None else "an unknown code"


def _done(claim: str | None, receipt: PromptReceipt) -> Done | None:
    return Done(claim, msgspec.json.encode(msgspec.structs.asdict(receipt))) if claim is not None else None


def _title_of(parts: Sequence[PromptPart]) -> str | None:
    return title_of("\n".join(part.text for part in parts if isinstance(part, TextPart)))
