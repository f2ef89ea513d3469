"""The Agent Client Protocol at /acp: over a WebSocket, or with POST, event streams and DELETE."""

import functools
from typing import Annotated, Any, cast

import msgspec
from litestar import MediaType, Request, Response, WebSocket, delete, get, post, websocket
from litestar.datastructures import State
from litestar.params import Parameter
from msgspec.structs import replace

from ostler.base.errors import InvalidRequest, NotFound, NotSupported, UnsupportedMedia
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.redaction import printable
from ostler.server.api.accept import JSON, SSE, form_for
from ostler.server.api.described import NO_MESSAGE, answer, request_header
from ostler.server.api.edge.asgi import Scope
from ostler.server.api.edge.relay_socket import dialler
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.requests import ANY_QUERY
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.auth.scope import attempt_of, scope_of
from ostler.server.dialects.acp.connection import (
    CHANGES,
    REPLY,
    SESSION_METHODS,
    AcpConnection,
    ConnectionServices,
    read,
    server_of,
)
from ostler.server.dialects.acp.messages import INVALID_REQUEST, Incoming, Refusal, failure
from ostler.server.dialects.acp.transports import Channel, HttpClient, HttpClients, SessionStream
from ostler.server.runners.agents import agent_named

_CONNECTION = "acp-connection-id"
_SESSION = "acp-session-id"
_STATE = "acp_clients"
_TAGS = ["acp"]
_GIVEN_BEFORE = "What the answer to `initialize` gave in this header."
_ACP_SESSION = request_header("Acp-Session-Id", "The session that it is about.")
Agent = Annotated[str | None, Parameter(description="The agent of new sessions.")]


def services_for(scope: Scope, services: Services, project: str, agent: str | None) -> ConnectionServices:
    return ConnectionServices(
        sessions=services.sessions,
        find_agent=functools.partial(agent_named, services.runners),
        project=project,
        default_agent=agent or services.default_agent,
        background=services.background,
        dial=dialler(scope, services),
        server=services.peers.id if services.peers is not None else None,
    )


def _clients(state: State, services: Services) -> HttpClients:
    found: HttpClients = state.setdefault(_STATE, HttpClients(services.clock))
    return found


@websocket("/acp", role="operator")
async def acp_socket(socket: WebSocket[Any, Any, Any], services: Services, project: str, agent: Agent = None) -> None:
    """One client on one socket."""
    scope = cast(Scope, socket.scope)
    found = replace(services_for(scope, services, project, agent), note=functools.partial(_note, scope, services))
    connection = AcpConnection(found, Channel(socket.send_text))
    await socket.accept(headers={_CONNECTION: connection.id})
    try:
        while (event := await socket.receive())["type"] == "websocket.receive":
            if (text := event.get("text")) is not None:  # binary frames mean nothing
                await connection.receive(text)
    finally:
        await connection.close()


async def _note(scope: Scope, services: Services, action: str, session: str) -> None:
    """Add a line about a message on a socket to the audit log."""
    asks, client = scope_of(scope), client_of(scope)
    about = {"tenant": asks.tenant, "project": asks.project, "actor": asks.actor, "client": client}
    line = services.audit.line(action=f"acp.{action}", outcome="done", status=200, target=printable(session), **about)
    await services.audit.written(line)


@post(
    "/acp",
    operation_id="acp.send",
    tags=_TAGS,
    status_code=200,
    role="operator",
    answers={
        "200": answer(
            "The answer to `initialize`.",
            {JSON: "JsonRpcMessage"},
            ("Acp-Connection-Id", "Names the client from now on."),
        ),
        "202": {"description": "Taken; what there is to say comes on a stream."},
        "400": NO_MESSAGE,
    },
    request_headers=[request_header("Acp-Connection-Id", f"{_GIVEN_BEFORE} Left out with `initialize`."), _ACP_SESSION],
    body="JsonRpcMessage",
)
async def acp_post(
    request: Request[Any, Any, Any], services: Services, project: str, state: State, agent: Agent = None
) -> Response[Any]:
    """One message of a client; all but the first are answered on a stream."""
    if request.content_type[0].lower() != "application/json":
        raise UnsupportedMedia(given=request.content_type[0], possible="application/json")
    body = await request.body()
    if body.lstrip().startswith(b"["):
        raise NotSupported(reason="Batches of messages are not supported. Send them one by one.")
    try:
        incoming = posted(body)
    except Refusal as refusal:
        return _json(failure(None, refusal), status=400)
    if incoming.method == "initialize" and _CONNECTION not in request.headers:
        own = services_for(cast(Scope, request.scope), services, project, agent)
        return await _initialize(_clients(state, services), own, services, incoming)
    client = _client(request, state, services, project)
    if incoming.method in SESSION_METHODS and _SESSION not in request.headers:
        raise _missing("Acp-Session-Id")
    note_message(request, incoming)
    client.accept(incoming)
    return _accepted()


def note_message(request: Request[Any, Any, Any], incoming: Incoming) -> None:
    """What a message asks for, for the audit log."""
    if (attempt := attempt_of(request.scope)) is not None:
        attempt.changes = incoming.method is None or incoming.method in CHANGES
        attempt.action = f"acp.{incoming.method or REPLY}"
        attempt.target = incoming.session_id or ""


def posted(body: bytes) -> Incoming:
    incoming = read(body)
    if incoming.method == "initialize" and not incoming.is_request:
        raise Refusal(INVALID_REQUEST, "initialize needs an id: its answer tells the connection.")
    return incoming


async def _initialize(
    clients: HttpClients, own: ConnectionServices, services: Services, incoming: Incoming
) -> Response[bytes]:
    client = await clients.open(own, services.settings.heartbeat_seconds)
    answered = await client.connection.first(incoming)
    if "error" in answered:
        await clients.close(client.connection.id)
        return _json(answered, status=400)
    answered["result"]["connectionId"] = client.connection.id
    return _json(answered, status=200, connection=client.connection.id)


def _json(message: Any, *, status: int, connection: str | None = None) -> Response[bytes]:
    headers = {_CONNECTION: connection} if connection else {}
    return Response(msgspec.json.encode(message), status_code=status, media_type=MediaType.JSON, headers=headers)


def _accepted() -> Response[bytes]:
    return Response(b"", status_code=202, media_type=MediaType.TEXT)


def _missing(header: str) -> InvalidRequest:
    return InvalidRequest(reason=f"The header {header} is missing.", errors={header: ["is required"]})


def _client(request: Request[Any, Any, Any], state: State, services: Services, project: str) -> HttpClient:
    connection_id = request.headers.get(_CONNECTION)
    if not connection_id:
        raise _missing("Acp-Connection-Id")
    client = _clients(state, services).find(connection_id)
    if client is not None and client.connection.project != project:
        client = None
    if client is None and (there := server_of(connection_id)) is not None and _is_other(services, there):
        raise OwnedElsewhere(what=f"connection '{connection_id}'", owner=there)
    if client is None:
        raise NotFound(what="connection", value=connection_id, hint="Send initialize to get a new one.")
    return client


def _is_other(services: Services, server: str) -> bool:
    return services.peers is not None and server != services.peers.id and services.peers.address_of(server) is not None


@get(
    "/acp",
    operation_id="acp.stream",
    tags=_TAGS,
    opt={ANY_QUERY: True},
    role="viewer",
    answers={"200": answer("What the server has to say, as it happens.", {SSE: "JsonRpcMessage"})},
    request_headers=[request_header("Acp-Connection-Id", _GIVEN_BEFORE, required=True), _ACP_SESSION],
)
async def acp_stream(request: Request[Any, Any, Any], services: Services, project: str, state: State) -> Response[Any]:
    """What the server has to say to a client, about one session or about everything else."""
    form_for(request, SSE)
    client = _client(request, state, services, project)
    if (wanted := request.headers.get(_SESSION)) is None:
        return EventStream(SessionStream(client, None), None, services)
    try:
        live = await services.sessions.registry.live(project, wanted)
    except OwnedElsewhere as left:
        return EventStream(SessionStream(client, left.fields["session"]), None, services)
    return EventStream(SessionStream(client, live.core.id), live.core.tail, services)


@delete(
    "/acp",
    operation_id="acp.leave",
    tags=_TAGS,
    status_code=202,
    role="operator",
    answers={"202": {"description": "The client is forgotten."}},
    request_headers=[request_header("Acp-Connection-Id", _GIVEN_BEFORE, required=True)],
)
async def acp_delete(
    request: Request[Any, Any, Any], services: Services, project: str, state: State
) -> Response[bytes]:
    """A client leaves; its sessions go on."""
    client = _client(request, state, services, project)
    await _clients(state, services).close(client.connection.id)
    return _accepted()


HANDLERS = (acp_post, acp_stream, acp_delete, acp_socket)
