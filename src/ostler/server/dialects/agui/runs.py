"""Runs: what a client's request does to its session, and the stream it gets."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from ostler.base.errors import AskResolved, SessionNotFound, SettingsFixed, Unprocessable
from ostler.server.dialects.agui.bodies import NAMES, ResumeEntry, RunAgentInput, forwarded
from ostler.server.dialects.agui.interrupts import Answers, Approval, Json, answer_of, interrupt_of
from ostler.server.dialects.agui.projection import AguiProjection
from ostler.server.dialects.agui.prompts import instructions_of, prompt_of
from ostler.server.dialects.beginning import begin, send
from ostler.server.dialects.following import Rendering, turn_boundary
from ostler.server.dialects.formats import subject_of
from ostler.server.dialects.turns import PromptTurn
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.feed import Follower
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.store.records import StoredEvent
from ostler.wire.events import AnyEvent, UnknownEvent, decode_event
from ostler.wire.sessions import Ask, CreateSession, PromptReceipt


class RunRefused(Exception):
    """The request breaks the rules of interrupts; the client is told within the protocol."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has begun."""

    session: SessionCore
    receipt: PromptReceipt | None
    """None if there is no turn to follow any more."""
    after: int
    unanswered: tuple[Ask, ...] = ()
    """What was asked besides, and the client left out or never heard of."""


async def begin_run(
    sessions: Sessions, project: str, wanted: RunAgentInput, agent: Callable[[str | None], Awaitable[str]]
) -> Run:
    """Hand over what the client sent: the answers to interrupts, or the user's last message.

    `agent` gives the id of the agent that the request names, or of the one it is given.
    """
    try:
        live: LiveSession | None = await sessions.registry.live(project, wanted.thread_id)
    except SessionNotFound:
        live = None
    props = forwarded(wanted.forwarded_props)
    if live is not None and live.core.record.agent != (chosen := await agent(live.core.record.agent)):
        raise SettingsFixed(session=wanted.thread_id, field="agent", value=f"{live.core.record.agent}, not {chosen}")
    if wanted.resume:
        if live is None:
            raise RunRefused(f"There is no thread '{wanted.thread_id}' to resume.", "unknown_interrupt")
        sessions.refuse_changes(live.core, props.change, NAMES)
        return await _resume(sessions, live, wanted.resume)
    if live is not None and live.core.state.asks:
        waiting = ", ".join(ask.ask_id for ask in live.core.state.asks)
        raise RunRefused(f"The thread waits for answers; resume it with: {waiting}.", "interrupt_pending")
    prompt = prompt_of(wanted, live.core.settings if live is not None else None)
    if live is not None:
        begun = await send(sessions, live, prompt, props.change, NAMES)
    else:
        created = CreateSession(
            agent=await agent(None),
            key=wanted.thread_id,
            instructions=instructions_of(wanted),
            model=props.model,
            variant=props.variant,
            mode=props.mode,
            permission_mode=props.permission_mode or "default",
        )
        begun = await begin(sessions, project, created, prompt)
    return Run(session=begun.live.core, receipt=begun.receipt, after=begun.offset)


async def _resume(sessions: Sessions, live: LiveSession, entries: tuple[ResumeEntry, ...]) -> Run:
    session = live.core
    asked = await sessions.reads.known_asks(session.id, [entry.interrupt_id for entry in entries])
    known = {ask.ask_id: ask for ask in asked}
    answers = [(_known(known, entry), _checked(known, entry)) for entry in entries]
    before, turn = session.last, session.state.turn
    answered = {entry.interrupt_id for entry in entries}
    unanswered = tuple(ask for ask in session.state.asks if ask.ask_id not in answered)
    for ask, answer in answers:
        await _decide(sessions, live, ask, answer)
    receipt = PromptReceipt(prompt_id="", disposition="steered", turn_id=turn.turn_id) if turn else None
    return Run(session=session, receipt=receipt, after=before, unanswered=unanswered)


def _known(known: dict[str, Ask], entry: ResumeEntry) -> Ask:
    if (ask := known.get(entry.interrupt_id)) is None:
        raise RunRefused(f"The thread has no interrupt '{entry.interrupt_id}'.", "unknown_interrupt")
    return ask


def _checked(known: dict[str, Ask], entry: ResumeEntry) -> Approval | Answers:
    try:
        return answer_of(_known(known, entry), entry.status, entry.payload)
    except (ValueError, Unprocessable) as error:  # msgspec's errors are ValueErrors
        why = str(error).rstrip(".")
        reason = f"The payload for interrupt '{entry.interrupt_id}' does not fit its responseSchema: {why}."
        raise RunRefused(reason, "invalid_payload") from None


async def _decide(sessions: Sessions, live: LiveSession, ask: Ask, answer: Approval | Answers) -> None:
    try:
        if isinstance(answer, Approval):
            await live.asks.reply_permission(ask.ask_id, answer.reply, answer.message)
        else:
            await live.asks.answer_question(ask.ask_id, answer.answers, None)
    except AskResolved:  # the same answer sent twice, or somebody else was faster: the run goes on either way
        return


class RunStream:
    """The events of one run as bytes."""

    def __init__(self, sessions: Sessions, run: Run, wanted: RunAgentInput, heartbeat: float) -> None:
        self._sessions = sessions
        self._run = run
        self._names = {"threadId": wanted.thread_id, "runId": wanted.run_id}
        self._heartbeat = heartbeat
        self._over = False
        self._own_item = f"itm_{run.receipt.prompt_id}" if run.receipt and run.receipt.prompt_id else None
        self._projection = AguiProjection(subject_of(run.session.record))
        self._turn = PromptTurn(run.receipt, after=run.after) if run.receipt else None
        self._rest: Rendering | None = None

    async def next(self) -> bytes | None:
        """The next bytes to write; first that the run began."""
        if self._rest is None:
            begun = {"type": "RUN_STARTED", **self._names}
            return _encoded([begun, *await self._open()])
        return await self._rest.next()

    async def _open(self) -> list[Json]:
        """What can be said at once: a run that has nothing to wait for ends here."""
        session = self._run.session
        start = await turn_boundary(self._sessions, session.id, self._run.after)
        follower = Follower(session.tail, offset=start.offset)
        self._rest = Rendering(follower, self._render, heartbeat=self._heartbeat, is_over=lambda: self._over)
        outcome: Json = {"type": "success"}
        if self._run.unanswered:
            outcome = {"type": "interrupt", "interrupts": [_interrupt(ask) for ask in self._run.unanswered]}
        elif self._turn is not None:
            return []
        self._over = True
        return [{"type": "RUN_FINISHED", **self._names, "outcome": outcome}]

    def _render(self, events: Sequence[StoredEvent]) -> bytes:
        written: list[Json] = []
        for stored in events:
            if self._over:
                break
            written += self._messages(decode_event(stored.body))
        return _encoded(written)

    def _messages(self, event: AnyEvent | UnknownEvent) -> Iterator[Json]:
        messages = self._projection.feed(event)
        turn = self._turn
        if turn is None or event.sequence <= self._run.after:
            return
        turn.feed(event)
        for message in messages if turn.has_begun else ():
            if self._over:
                return
            if (named := self._named(message)) is not None:
                yield named
        if turn.is_over and not self._over:
            self._over = True
            yield {"type": "RUN_ERROR", "message": "The session ended.", "code": "session_ended"}

    def _named(self, message: Json) -> Json | None:
        """A message of the run under the client's own names; None for what the client knows already."""
        match message["type"]:
            case "RUN_STARTED":
                return None
            case "RUN_FINISHED":
                self._over = True
                return {**message, **self._names}
            case "RUN_ERROR":
                self._over = True
                return message
            case _:
                return None if self._own_item and message.get("messageId") == self._own_item else message


class ShortStream:
    """A run that was refused."""

    def __init__(self, refused: RunRefused) -> None:
        self._bytes: bytes | None = _encoded([{"type": "RUN_ERROR", "message": str(refused), "code": refused.code}])

    async def next(self) -> bytes | None:
        """All there is to say, once."""
        written, self._bytes = self._bytes, None
        return written


def _encoded(messages: Sequence[Any]) -> bytes:
    return b"".join(b"data: %b\n\n" % msgspec.json.encode(message) for message in messages)


def _interrupt(ask: Ask) -> Json:
    asked = ask.permission or ask.question
    return interrupt_of(asked, known_calls=()) if asked is not None else {"id": ask.ask_id, "reason": "confirmation"}
