"""Chat endpoints for the AI SDK: a turn as a UI Message Stream or as one JSON answer, and the history."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, Router, get, post
from litestar.params import HeaderParameter, Parameter, QueryParameter

from ostler.base.errors import SessionNotFound
from ostler.server.api.accept import JSON, SSE, form_for
from ostler.server.api.described import STATUS_ANSWER, answer
from ostler.server.api.edge.idempotency import RECEIPT_HEADER
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.requests import ANY_QUERY
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.dialects.ai_sdk.answers import WholeTurn, invoked, whole_turn
from ostler.server.dialects.ai_sdk.bodies import ChatHistory, ChatRequest, InvokeRequest, LoadSession, TurnResponse
from ostler.server.dialects.ai_sdk.chat import Chat, FollowedTurn, running_turn
from ostler.server.dialects.ai_sdk.profile import SAFE, Profile, Version
from ostler.server.dialects.ai_sdk.requests import checked_key, invoke_request, turn_request
from ostler.server.dialects.ai_sdk.turn_stream import TurnChunks, TurnStream
from ostler.server.dialects.formats import subject_of
from ostler.server.sessions.log.feed import Follower
from ostler.server.tasks.rewind_and_fork import RewindAndFork
from ostler.wire.sessions import Interrupted

_TAGS = ["chat"]
_HEADERS = {
    "content-type": SSE,
    "x-vercel-ai-ui-message-stream": "v1",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-accel-buffering": "no",
}
Sdk = Annotated[
    Version,
    QueryParameter(name="sdk", description="The client's major version of the AI SDK; from 6 on it gets approvals."),
]
SdkHeader = Annotated[
    Version,
    HeaderParameter(name="x-ai-sdk-version", description="The same as `sdk`, for clients that can set headers."),
]
ChatId = Annotated[str, Parameter(description="The chat's id: the session's id or key.")]


def _chat(services: Services, project: str) -> Chat:
    branch = RewindAndFork(services.sessions, services.runners).branch
    return Chat(services.sessions, project, services.default_agent, branch)


def _version(query: Version, header: Version) -> Version:
    return query if header == SAFE.version else header


@post(
    "/messages",
    operation_id="chat.send",
    tags=_TAGS,
    status_code=200,
    role="operator",
    answers={
        "200": answer("The turn, as one answer or as it happens.", {JSON: "TurnResponse", SSE: "UiMessageChunk"}),
        **STATUS_ANSWER,
    },
)
async def send(
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    data: ChatRequest,
    sdk: Sdk = SAFE.version,
    sdk_header: SdkHeader = SAFE.version,
) -> Response[Any]:
    """Run one turn of a chat: a UI Message Stream with `Accept: text/event-stream`, else one JSON answer."""
    wanted = turn_request(data, await request.json())
    form = form_for(request, *((SSE, JSON) if wanted.is_stock else (JSON, SSE)))
    version = _version(sdk, sdk_header) if form == SSE else SAFE.version
    if form == SSE:
        services.counters.streams.admit(client_of(request.scope))
    followed = await _chat(services, project).submit(wanted, version)
    if form == SSE:
        return _stream(services, followed, version)
    return _answer(await whole_turn(services.sessions, followed))


@post(
    "/load-session",
    operation_id="chat.load",
    tags=_TAGS,
    status_code=200,
    role="operator",
    answers={
        "200": answer("The conversation, as messages or as a stream.", {JSON: "ChatHistory", SSE: "UiMessageChunk"}),
        **STATUS_ANSWER,
    },
)
async def load(
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    data: LoadSession,
    sdk: Sdk = SAFE.version,
    sdk_header: SdkHeader = SAFE.version,
) -> ChatHistory | EventStream:
    """The conversation of a session, as `useChat` takes it for its first messages.

    With `Accept: text/event-stream` it is replayed: each answer as it came, and what the user said before it as a
    transient `data-message`.
    """
    form = form_for(request, JSON, SSE)
    chat, key = _chat(services, project), checked_key(data.session_id, "session_id")
    record = await chat.current(key)
    if record is None:
        raise SessionNotFound(session=key)
    profile = SAFE if _version(sdk, sdk_header) == SAFE.version else Profile(version="7")
    if form == SSE:
        headers = {**_HEADERS, "x-session-id": record.key}
        return EventStream(_Replay(chat.replay(record, profile)), None, services, headers=headers, farewell=b"")
    return ChatHistory(session_id=record.key, messages=await chat.history(record, profile))


@post("/invoke", operation_id="chat.invoke", tags=_TAGS, status_code=200, role="operator", answers=STATUS_ANSWER)
async def invoke(
    services: Services, project: str, request: Request[Any, Any, Any], data: InvokeRequest
) -> Response[TurnResponse]:
    """Run one prompt in a session that is gone with the answer."""
    form_for(request, JSON)
    wanted = invoke_request(data, await request.json())
    followed = await _chat(services, project).submit(wanted, SAFE.version)
    return _answer(await invoked(services.sessions, followed))


@post(
    "/chat",
    operation_id="chat.stream",
    tags=_TAGS,
    status_code=200,
    role="operator",
    answers={"200": answer("The turn as it happens.", {SSE: "UiMessageChunk"})},
)
async def stock_chat(
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    data: ChatRequest,
    sdk: Sdk = SAFE.version,
    sdk_header: SdkHeader = SAFE.version,
) -> Response[Any]:
    """Run one turn of a chat, always as a UI Message Stream; what `useChat` posts to."""
    version = _version(sdk, sdk_header)
    services.counters.streams.admit(client_of(request.scope))
    followed = await _chat(services, project).submit(turn_request(data, await request.json()), version)
    return _stream(services, followed, version)


@get(
    "/chat/{chat:str}/stream",
    operation_id="chat.resume",
    tags=_TAGS,
    status_code=200,
    opt={ANY_QUERY: True},
    role="viewer",
    answers={
        "200": answer("The turn from its beginning.", {SSE: "UiMessageChunk"}),
        "204": {"description": "No turn is under way."},
    },
)
async def resume(
    chat: ChatId, services: Services, project: str, sdk: Sdk = SAFE.version, sdk_header: SdkHeader = SAFE.version
) -> Response[Any]:
    """The turn under way from its beginning; 204 if there is none."""
    record = await _chat(services, project).current(chat)
    live = await services.sessions.registry.live(project, record.id) if record is not None else None
    followed = running_turn(live.core) if live is not None else None
    if followed is None:
        return Response(None, status_code=204)
    return _stream(services, followed, _version(sdk, sdk_header))


@post("/chat/{chat:str}/stop", operation_id="chat.stop", tags=_TAGS, status_code=200, role="operator")
async def stop(chat: ChatId, services: Services, project: str) -> Interrupted:
    """End the turn under way; leaving its stream does not."""
    record = await _chat(services, project).current(chat)
    if record is None:
        raise SessionNotFound(session=chat)
    return await (await services.sessions.registry.live(project, record.id)).turns.interrupt()


def _stream(services: Services, followed: FollowedTurn, version: Version) -> EventStream:
    session = followed.session

    def is_open(ask_id: str) -> bool:
        return ask_id in followed.answered or session.state.open_ask(ask_id) is not None

    profile = Profile(version=version, is_open=is_open)
    turn = TurnStream(subject_of(session.record), profile, followed.receipt, after=followed.offset, seen=followed.seen)
    follower = Follower(session.tail, offset=followed.offset)
    chunks = TurnChunks(follower, turn, heartbeat=services.settings.heartbeat_seconds)
    receipt = {RECEIPT_HEADER.decode(): msgspec.json.encode(followed.receipt).decode()}
    headers = {**_HEADERS, **_session_header(followed), **receipt}
    return EventStream(chunks, session.tail, services, headers=headers, farewell=b"")


class _Replay:
    """Chunks of a stream that ends by itself."""

    def __init__(self, pages: AsyncIterator[bytes]) -> None:
        self._pages = pages

    async def next(self) -> bytes | None:
        """A page, unless nothing came of it."""
        async for page in self._pages:
            if page:
                return page
        return None


def _session_header(followed: FollowedTurn) -> dict[str, str]:
    return {"x-session-id": followed.session.record.key}


def _answer(turn: WholeTurn) -> Response[TurnResponse]:
    return Response(turn.response, status_code=turn.response.status.code, headers={"x-session-id": turn.key})


HANDLERS = (send, load, invoke)
ROOT_HANDLERS = (
    Router(path="/", route_handlers=list(HANDLERS), include_in_schema=False),
    Router(path="/api", route_handlers=[stock_chat, resume, stop]),
)
"""The same at the place where the chat protocol has them, and what `useChat` calls by itself."""
