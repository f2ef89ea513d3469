"""The doors of newer daemon clients, at /v1/acp: ACP over HTTP under an id that the client chooses."""

from typing import Annotated, Any, cast

from litestar import MediaType, Request, Response, delete, get, post
from litestar.datastructures import State
from litestar.params import Parameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.accept import JSON, SSE
from ostler.server.api.described import NO_MESSAGE, answer
from ostler.server.api.edge.asgi import Scope
from ostler.server.api.routes.dialects.acp import note_message, posted, services_for
from ostler.server.api.routes.dialects.daemon import find_agent
from ostler.server.api.routes.events import resume_from
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.dialects.acp.messages import Refusal
from ostler.server.dialects.daemon.acp_servers import AcpServers, AcpServerStream, DaemonAcpServer, DaemonAcpServers

_STATE = "daemon_acp_servers"
_TAGS = ["daemon"]
ServerId = Annotated[str, Parameter(pattern=r"^[A-Za-z0-9._:-]{1,200}$", description="Chosen by the client.")]


def _servers(state: State, services: Services) -> AcpServers:
    found: AcpServers = state.setdefault(_STATE, AcpServers(services.clock))
    return found


@get("/v1/acp", operation_id="daemon.acp-list", tags=_TAGS, role="viewer", alias_of="sessions.list")
async def list_servers(services: Services, project: str, state: State) -> DaemonAcpServers:
    """The clients that speak ACP over HTTP."""
    found = _servers(state, services).of(project)
    return DaemonAcpServers(
        servers=tuple(
            DaemonAcpServer(
                server_id=each.id, agent=each.agent, created_at_ms=round(each.created_at.timestamp() * 1000)
            )
            for each in found
        )
    )


@post(
    "/v1/acp/{server_id:str}",
    operation_id="daemon.acp-send",
    tags=_TAGS,
    status_code=200,
    role="operator",
    alias_of="acp.send",
    answers={
        "200": answer(
            "The answer to a request; that to a prompt comes when its turn is over.", {JSON: "JsonRpcMessage"}
        ),
        "202": {"description": "Taken: it was no request."},
        "400": NO_MESSAGE,
    },
    body="JsonRpcMessage",
)
async def post_message(
    server_id: ServerId,
    request: Request[Any, Any, Any],
    services: Services,
    project: str,
    state: State,
    agent: Annotated[str | None, Parameter(description="With the first message: the agent that it is for.")] = None,
) -> Response[Any]:
    """One message of a client."""
    try:
        incoming = posted(await request.body())
    except Refusal as refusal:
        raise InvalidRequest(reason=f"The body is no message of the protocol: {refusal}") from refusal
    note_message(request, incoming)
    chosen = None if agent is None else find_agent(services, agent).id
    servers = _servers(state, services)
    server = await servers.open(project, server_id, services.settings.heartbeat_seconds)
    if chosen is not None and not server.has_begun:
        await servers.begin(project, server, services_for(cast(Scope, request.scope), services, project, chosen))
    answered = await server.post(incoming)
    if answered is None:
        return Response(b"", status_code=202, media_type=MediaType.TEXT)
    return Response(answered, status_code=200, media_type=MediaType.JSON)


@get(
    "/v1/acp/{server_id:str}",
    operation_id="daemon.acp-stream",
    tags=_TAGS,
    role="viewer",
    alias_of="acp.stream",
    answers={"200": answer("What the agent says besides answers, as it happens.", {SSE: "JsonRpcMessage"})},
)
async def stream_messages(
    server_id: ServerId, request: Request[Any, Any, Any], services: Services, project: str, state: State
) -> Response[Any]:
    """What the agent says; opened before the first message it waits for that."""
    server = await _servers(state, services).open(project, server_id, services.settings.heartbeat_seconds)
    return EventStream(AcpServerStream(server, resume_from(request, 0)), None, services)


@delete("/v1/acp/{server_id:str}", operation_id="daemon.acp-leave", tags=_TAGS, role="operator", alias_of="acp.leave")
async def leave(server_id: ServerId, services: Services, project: str, state: State) -> None:
    """A client leaves; its sessions go on."""
    await _servers(state, services).close(project, server_id)


HANDLERS = (list_servers, post_message, stream_messages, leave)
"""Handlers of /v1/acp."""
