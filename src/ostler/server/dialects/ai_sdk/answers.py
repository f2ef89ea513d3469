"""A whole turn as one answer, for clients that do not stream."""

import asyncio
import hashlib

import msgspec

from ostler.base.errors import Stopping, Unprocessable
from ostler.server.dialects.ai_sdk.bodies import OutputData, Outputs, Status, TurnResponse
from ostler.server.dialects.ai_sdk.chat import FollowedTurn
from ostler.server.dialects.turns import PromptTurn
from ostler.server.sessions.log.feed import Follower
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.wire.events import (
    AnyEvent,
    ErrorRaised,
    ItemCompleted,
    PermissionRequested,
    QuestionRequested,
    UnknownEvent,
    decode_event,
)
from ostler.wire.parts import TextPart
from ostler.wire.sessions import Turn

_WAIT_SECONDS = 60.0


class WholeTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a turn."""

    key: str
    response: TurnResponse
    waits_for: str | None = None
    """What the agent asks; the turn goes on when it is answered."""


class _Heard:
    """Collects what matters of a turn."""

    def __init__(self, session: SessionCore) -> None:
        self.texts: list[str] = []
        self.error: ErrorRaised | None = None
        self.waits_for: str | None = None
        self._session = session

    def add(self, event: AnyEvent | UnknownEvent) -> None:
        match event:
            case ItemCompleted() if event.data.item.kind == "message" and event.data.item.role != "user":
                parts = event.data.item.content
                self.texts += [part.text for part in parts if isinstance(part, TextPart) and part.text.strip()]
            case ErrorRaised():
                self.error = event
            case PermissionRequested() if self._session.state.open_ask(event.data.permission_id):
                self.waits_for = f"permission to {event.data.action}"
            case QuestionRequested() if self._session.state.open_ask(event.data.question_id):
                self.waits_for = f"an answer to: {event.data.prompt}"


async def whole_turn(sessions: Sessions, followed: FollowedTurn) -> WholeTurn:
    """Wait until the turn is over or needs a human."""
    session = followed.session
    follower = Follower(session.tail, offset=followed.offset)
    turn, heard = PromptTurn(followed.receipt, after=followed.offset), _Heard(session)
    while not turn.is_over and heard.waits_for is None:
        found = await follower.next(timeout=_WAIT_SECONDS)
        if found is None:
            await sessions.registry.find(session.record.project, session.id)  # raises if it was deleted
            raise Stopping
        for stored in found:
            event = decode_event(stored.body)
            turn.feed(event)
            if turn.has_begun:
                heard.add(event)
            if turn.is_over or heard.waits_for is not None:
                break
    known = await sessions.store.logs.find_turn(session.id, turn.turn_id) if turn.turn_id is not None else None
    return _summary(session.record.key, turn, heard, known)


async def invoked(sessions: Sessions, followed: FollowedTurn) -> WholeTurn:
    """A turn whose session is gone with it; nobody is there to be asked."""
    try:
        turn = await whole_turn(sessions, followed)
    finally:
        await asyncio.shield(sessions.delete(followed.session.record.project, followed.session.id))
    if turn.waits_for is not None:
        raise Unprocessable(
            reason=f"The agent wants {turn.waits_for}; /invoke cannot wait for that. "
            "Use /messages, or set data.parameters.agent.permissions to bypass."
        )
    return msgspec.structs.replace(turn, response=msgspec.structs.replace(turn.response, session_id=None))


def _summary(key: str, turn: PromptTurn, heard: _Heard, stored: Turn | None) -> WholeTurn:
    digest = hashlib.sha256((turn.turn_id or "").encode()).hexdigest()
    trace = stored.trace_id if stored is not None else None
    outputs = Outputs(role="assistant", content="\n\n".join(heard.texts))
    response = TurnResponse(
        status=_status(turn, heard),
        trace_id=trace or digest[:32],  # turns of older servers have none
        span_id=digest[32:48],
        session_id=key,
        data=OutputData(outputs=outputs),
    )
    return WholeTurn(key=key, response=response, waits_for=heard.waits_for)


def _status(turn: PromptTurn, heard: _Heard) -> Status:
    if heard.waits_for is not None:
        return Status(code=200, message=f"The agent wants {heard.waits_for}.", type="urn:ostler:turn:waiting")
    outcome = turn.end.data.outcome if turn.end is not None else "failed"
    match outcome:
        case "completed":
            return Status(code=200)
        case "interrupted":
            return Status(code=200, message="The turn was interrupted.", type="urn:ostler:turn:interrupted")
        case "failed":
            why = heard.error.data if heard.error is not None else None
            code = (why.code if why else None) or "turn_failed"
            message = why.message if why else "The turn failed or never began."
            return Status(code=502, message=message, type=f"urn:ostler:error:{code}")
