"""What the tools do, in plain data; nothing here knows the protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ostler.base.errors import AskNotFound, InvalidRequest
from ostler.server.dialects.beginning import begin
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.proposing import PROPOSAL, Policy, Proposed
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange
from ostler.server.store.records import SessionFilter
from ostler.wire.agents import Agent
from ostler.wire.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.schedules import NewSchedule
from ostler.wire.sessions import Ask, CreateSession, Message, PermissionReply, SendMessage, Turn
from ostler.wire.tasks import HandoffSession
from ostler.wire.triggers import NewTrigger

Json = dict[str, Any]
_LONGEST_WAIT = 600.0
_WRITE_SECONDS = 1.0
_MOST_SESSIONS = 200
_MOST_MESSAGES = 500

READING = frozenset({"list_agents", "list_sessions", "read_transcript", "wait_for_turn"})
"""Tools that change nothing."""


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one project."""

    sessions: Sessions
    catalogue: Callable[[], Awaitable[list[Agent]]]
    give_over: Callable[[LiveSession, HandoffSession], Awaitable[LiveSession]]
    """Lets another agent go on; gives the session that it has."""
    check_proposal: Callable[[NewSchedule | NewTrigger | Policy, str], Awaitable[Proposed]]
    """As people are asked about it, with the reason; raises if it could not be made."""
    project: str
    default_agent: Callable[[], str]

    async def list_agents(self) -> list[Json]:
        """Every agent with its modes and models."""
        return [
            {
                "id": agent.id,
                "name": agent.name,
                "installed": agent.installed,
                "modes": [mode.id for mode in agent.modes],
                "models": [model.id for model in agent.models],
            }
            for agent in await self.catalogue()
        ]

    async def list_sessions(self, limit: int) -> list[Json]:
        """The newest sessions."""
        per_page = max(1, min(limit, _MOST_SESSIONS))
        records, _ = await self.sessions.store.page_sessions(
            SessionFilter(project=self.project, page=1, per_page=per_page)
        )
        return [
            {"session_id": record.id, "agent": record.agent, "title": record.title, "status": record.status}
            for record in records
        ]

    async def start_session(self, wanted: CreateSession, prompt: str | None) -> Json:
        """A new session, and its first turn if there is a prompt."""
        if prompt is None:
            live, _ = await self.sessions.creation.create(self.project, wanted)
            return _started(live.core)
        _check_text("prompt", prompt)
        begun = await begin(self.sessions, self.project, wanted, SendMessage(message=prompt))
        return {**_started(begun.live.core), "turn_id": begun.receipt.turn_id}

    async def send_message(self, session_id: str, prompt: SendMessage, change: SessionChange) -> Json:
        """One more prompt."""
        _check_text("message", prompt.message or "")
        receipt = await self.sessions.send(await self._live(session_id), prompt, change)
        return _known(receipt)

    async def hand_over(self, session_id: str, wanted: HandoffSession) -> Json:
        """Another agent takes the next turn; tells who has the session, and who will."""
        live = await self.give_over(await self._live(session_id), wanted)
        pending = live.core.state.handoff
        return {
            **_started(live.core),
            "next_agent": pending.to_agent if pending is not None else live.core.record.agent,
        }

    async def wait_for_turn(self, session_id: str, seconds: float) -> Json:
        """Wait until the agent is done, or asks something, or the time is up; tells where the session stands."""
        live = await self._live(session_id)
        try:
            async with asyncio.timeout(max(0.0, min(seconds, _LONGEST_WAIT))):
                while _is_working(live.core):
                    await live.core.tail.wait(live.core.last, timeout=_LONGEST_WAIT)
        except TimeoutError:
            pass  # the answer says that the agent still works
        return await self._standing(live.core)

    async def _standing(self, session: SessionCore) -> Json:
        latest = await self._latest(session)
        messages = await self.sessions.reads.messages_since(session.id, latest.first_sequence - 1) if latest else []
        texts = [_text(found) for found in messages if latest and found.turn_id == latest.turn_id]
        return {
            "session_id": session.id,
            "status": session.state.status,
            "activity": session.state.activity,
            "outcome": latest.outcome if latest else None,
            "answer": "\n\n".join(filter(None, texts)),
            "error": session.state.error,
            "asks": [_ask_view(ask) for ask in session.state.asks],
        }

    async def _latest(self, session: SessionCore) -> Turn | None:
        """The turn that began last, once the end that the session knows of is stored too."""
        while session.shown.turn is not None and session.state.turn is None:
            await session.tail.wait(session.last, timeout=_WRITE_SECONDS)
        return session.shown.turn or session.shown.last_turn

    async def read_transcript(self, session_id: str, offset: int, limit: int) -> Json:
        """A part of the conversation."""
        record = await self.sessions.registry.find(self.project, session_id)
        wanted = max(1, min(limit, _MOST_MESSAGES))
        messages, has_more = await self.sessions.reads.messages(record.id, max(0, offset), wanted)
        return {"messages": [_message_view(found) for found in messages], "has_more": has_more}

    async def answer_ask(
        self,
        session_id: str,
        ask_id: str,
        reply: PermissionReply | None,
        answers: list[list[str]] | None,
        message: str | None,
    ) -> Json:
        """Decide a permission or answer a question."""
        live = await self._live(session_id)
        ask = live.core.state.open_ask(ask_id)
        if ask is None:
            raise AskNotFound(session=session_id, kind="open ask", ask=ask_id)
        if ask.permission is not None:
            if reply is None:
                raise _refused("reply", "a permission needs once, always or reject")
            if reply != "reject" and PROPOSAL in (ask.permission.metadata or {}):
                raise _refused(
                    "reply", "what an agent proposes is confirmed by a person: in the inbox, or `ostler asks`"
                )
            return _ask_view(await live.asks.reply_permission(ask_id, reply, message))
        if answers is None and reply != "reject":
            raise _refused("answers", "a question needs a list of answers for each question, or reply reject")
        given = None if answers is None else tuple(tuple(answer) for answer in answers)
        return _ask_view(await live.asks.answer_question(ask_id, given, message))

    async def propose(self, session_id: str, wanted: NewSchedule | NewTrigger | Policy, reason: str) -> Json:
        """Ask the people of a session for what goes beyond it; gives the ask."""
        proposed = await self.check_proposal(wanted, reason)
        live = await self._live(session_id)
        return _ask_view(await live.asks.propose(proposed.action, proposed.proposal))

    async def interrupt(self, session_id: str) -> Json:
        """End the turn under way."""
        return _known(await (await self._live(session_id)).turns.interrupt())

    async def stop_session(self, session_id: str) -> Json:
        """End a session."""
        live = await self._live(session_id)
        await live.lifecycle.stop()
        return {"session_id": live.core.id, "status": live.core.state.status}

    async def _live(self, session_id: str) -> LiveSession:
        return await self.sessions.registry.live(self.project, session_id)


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field}: {reason}.", errors={field: [reason]})


def _started(session: SessionCore) -> Json:
    return {"session_id": session.id, "agent": session.record.agent, "cwd": session.record.cwd}


def _check_text(field: str, text: str) -> None:
    if not text.strip():
        raise _refused(field, "must not be empty")


def _is_working(session: SessionCore) -> bool:
    state = session.state
    return not state.asks and not state.ended and (state.turn is not None or bool(state.queue))


def _text(message: Message) -> str:
    if message.item.kind != "message" or message.item.role == "user":
        return ""
    return "".join(part.text for part in message.item.content if isinstance(part, TextPart))


def _message_view(message: Message) -> Json:
    texts = list(filter(None, map(_part_text, message.item.content)))
    return {
        "role": message.item.role,
        "kind": message.item.kind,
        "status": message.item.status,
        "text": "\n".join(texts),
    }


def _part_text(part: Any) -> str:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return text
        case ToolCallPart(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case ToolResultPart(output=output):
            return output
        case _:
            return ""


def _ask_view(ask: Ask) -> Json:
    view: Json = {"ask_id": ask.ask_id, "kind": ask.kind, "status": ask.status}
    if ask.permission is not None:
        return {**view, "action": ask.permission.action}
    if ask.question is None:
        return view
    questions = msgspec.to_builtins(ask.question.questions)
    return {**view, "prompt": ask.question.prompt, "options": list(ask.question.options), "questions": questions}


def _known(struct: msgspec.Struct) -> Json:
    return {name: value for name, value in msgspec.structs.asdict(struct).items() if value is not None}
