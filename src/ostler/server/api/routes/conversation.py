"""Prompts, transcript, queue and turns."""

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, delete, get, post
from litestar.params import Parameter

from ostler.base.casing import shown_as
from ostler.server.api.accept import JSON, SSE, wants_stream
from ostler.server.api.described import answer
from ostler.server.api.edge.idempotency import RECEIPT_HEADER
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.routes.events import turn_stream
from ostler.server.api.services import Services
from ostler.server.dialects.beginning import send
from ostler.server.dialects.conversation import turns_left_behind
from ostler.server.dialects.turns import PromptTurn
from ostler.wire.sessions import MessageList, Queue, QueuedPrompt, SendMessage, TurnList, TurnView

_TAGS = ["conversation"]


@post(
    "/sessions/{session:str}/messages",
    operation_id="sessions.send",
    tags=_TAGS,
    status_code=202,
    role="operator",
    answers={
        "200": answer(
            "The events of the turn, until it ends.", {SSE: "Event"}, ("Ostler-Receipt", "A PromptReceipt as JSON.")
        ),
        "202": answer("What became of the prompt.", {JSON: "PromptReceipt"}),
    },
)
async def send_message(
    session: str, services: Services, project: str, request: Request[Any, Any, Any], data: SendMessage
) -> Response[Any]:
    """Send a prompt; with `Accept: text/event-stream` the answer is the stream of its turn."""
    live = await services.sessions.registry.live(project, session)
    is_streamed = wants_stream(request)
    if is_streamed:
        services.counters.streams.admit(client_of(request.scope))
    if not is_streamed:
        return Response(await services.sessions.send(live, data), status_code=202)
    begun = await send(services.sessions, live, data)
    headers = {RECEIPT_HEADER.decode(): msgspec.json.encode(begun.receipt).decode()}
    turn = PromptTurn(begun.receipt, after=begun.offset)
    return turn_stream(services, live.core, turn, offset=begun.offset, headers=headers)


@get("/sessions/{session:str}/messages", operation_id="sessions.messages", tags=_TAGS, role="viewer")
async def list_messages(
    session: str,
    services: Services,
    project: str,
    offset: Annotated[int, Parameter(ge=0, le=2**53, description="How many messages to skip.")] = 0,
    limit: Annotated[int, Parameter(ge=1, le=10_000)] = 200,
) -> MessageList:
    """The folded transcript: items with their final content."""
    record = await services.sessions.registry.find(project, session)
    messages, has_more = await services.sessions.reads.messages(record.id, offset, limit)
    return MessageList(messages=tuple(messages), has_more=has_more)


@get("/sessions/{session:str}/queue", operation_id="sessions.queue", tags=_TAGS, role="viewer")
async def get_queue(session: str, services: Services, project: str) -> Queue:
    """Prompts that wait for the current turn to end."""
    record = await services.sessions.registry.find(project, session)
    state, *_ = services.sessions.registry.state_of(record)
    return Queue(entries=tuple(QueuedPrompt(**msgspec.structs.asdict(entry)) for entry in state.queue))


@delete("/sessions/{session:str}/queue/{prompt_id:str}", operation_id="sessions.unqueue", tags=_TAGS, role="operator")
async def delete_queued(session: str, prompt_id: str, services: Services, project: str) -> None:
    """Take a waiting prompt back."""
    await (await services.sessions.registry.live(project, session)).turns.unqueue(prompt_id)


@delete("/sessions/{session:str}/queue", operation_id="sessions.clear-queue", tags=_TAGS, role="operator")
async def clear_queue(session: str, services: Services, project: str) -> None:
    """Take all waiting prompts back."""
    await (await services.sessions.registry.live(project, session)).turns.clear_queue()


@get("/sessions/{session:str}/turns", operation_id="sessions.turns", tags=_TAGS, role="viewer")
async def list_turns(session: str, services: Services, project: str) -> TurnList:
    """All turns with their outcome."""
    record = await services.sessions.registry.find(project, session)
    past = {turn.number for turn in await turns_left_behind(services.sessions, record)}
    turns = await services.sessions.store.logs.turns(record.id)
    shown = (shown_as(TurnView, turn) for turn in turns)
    return TurnList(turns=tuple(msgspec.structs.replace(turn, rewound=turn.number in past) for turn in shown))


HANDLERS = (send_message, list_messages, get_queue, delete_queued, clear_queue, list_turns)
