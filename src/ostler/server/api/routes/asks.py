"""The inbox: what waits for a human, and the answers."""

from typing import Annotated, Any, Literal

import msgspec
from litestar import get, post
from litestar.params import Parameter

from ostler.base.casing import shown_as
from ostler.server.api.services import Services
from ostler.wire.sessions import AskList, AskView, RejectQuestion, ReplyPermission, ReplyQuestion

_TAGS = ["asks"]


@get("/asks", operation_id="asks.list", tags=_TAGS, role="viewer", limits={"status": {}})
async def list_asks(
    services: Services,
    project: str,
    status: Literal["open", "all"] = "open",
    session: Annotated[str | None, Parameter(description="Only asks of this session.")] = None,
) -> AskList:
    """Everything that waits for a human, oldest first."""
    session_id = (await services.sessions.registry.find(project, session)).id if session else None
    found = await services.sessions.store.logs.asks(project, session_id, only_open=status == "open")
    return AskList(items=tuple(shown_as(AskView, ask) for ask in found))


@post(
    "/sessions/{session:str}/permissions/{permission_id:str}/reply",
    operation_id="asks.permission",
    tags=_TAGS,
    status_code=200,
    role="operator",
)
async def reply_permission(
    session: str, permission_id: str, services: Services, project: str, data: ReplyPermission
) -> AskView:
    """Allow once, allow for the session, or reject."""
    live = await services.sessions.registry.live(project, session)
    return shown_as(AskView, await live.asks.reply_permission(permission_id, data.reply, data.message))


@post(
    "/sessions/{session:str}/questions/{question_id:str}/reply",
    operation_id="asks.answer",
    tags=_TAGS,
    status_code=200,
    role="operator",
)
async def answer_question(
    session: str, question_id: str, services: Services, project: str, data: ReplyQuestion
) -> AskView:
    """Answer a question, or a call of a tool of the client's own."""
    live = await services.sessions.registry.live(project, session)
    answers = data.answers if data.result is None else ((_text_of(data.result),),)
    return shown_as(AskView, await live.asks.answer_question(question_id, answers, None))


def _text_of(result: Any) -> str:
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()


@post(
    "/sessions/{session:str}/questions/{question_id:str}/reject",
    operation_id="asks.reject",
    tags=_TAGS,
    status_code=200,
    role="operator",
)
async def reject_question(
    session: str, question_id: str, services: Services, project: str, data: RejectQuestion | None = None
) -> AskView:
    """Decline to answer a question."""
    live = await services.sessions.registry.live(project, session)
    message = data.message if data else None
    return shown_as(AskView, await live.asks.answer_question(question_id, None, message))


HANDLERS = (list_asks, reply_permission, answer_question, reject_question)
