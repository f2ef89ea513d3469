"""The server as an MCP server at /mcp (streamable HTTP)."""

import asyncio
import functools
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

import msgspec
from litestar import Request, get, post
from litestar.datastructures import State
from litestar.types import ASGIApp, Receive, Scope, Send

from ostler.base.errors import NotAcceptable, NotFound, SessionNotFound, UnsupportedMedia
from ostler.server.api.accept import JSON, SSE, form_for
from ostler.server.api.described import NO_MESSAGE, answer
from ostler.server.api.edge.idempotency import replayed
from ostler.server.api.services import Services
from ostler.server.auth.scope import attempt_of
from ostler.server.dialects.mcp.tools import READING, Tools
from ostler.server.runners.agents import catalogue
from ostler.server.tasks.handoffs import hand_over
from ostler.server.triggers.proposals import Proposals
from ostler.wire.access import ProtectedResource

_STATE = "mcp_endpoint"


class _Arguments(msgspec.Struct):
    session_id: str = ""


class _Params(msgspec.Struct):
    name: str = ""
    arguments: _Arguments = msgspec.field(default_factory=_Arguments)


class _Call(msgspec.Struct):
    """As much of a call as tells what it does, and which session it is about."""

    method: str = ""
    params: _Params = msgspec.field(default_factory=_Params)


class McpEndpoint:
    """One project's endpoint, made for its first client: the library takes tens of megabytes that most never need."""

    def __init__(self, services: Services, project: str) -> None:
        self._services = services
        self._project = project
        self._manager: Any = None
        self._ready = asyncio.Event()
        self._life: asyncio.Task[None] | None = None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._life is None or self._life.done():
            self._ready.clear()
            self._life = self._services.background.spawn(self._live(), endpoint="mcp")
        waiting = asyncio.create_task(self._ready.wait())
        await asyncio.wait({self._life, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._life.done():
            self._life.result()
        await self._manager.handle_request(scope, receive, send)

    async def _live(self) -> None:
        """As long as the server."""
        library = await asyncio.to_thread(import_module, "ostler.server.dialects.mcp.server")
        settings = self._services.settings
        services = self._services
        proposals = Proposals(services.schedules, services.triggers)
        tools = Tools(
            sessions=self._services.sessions,
            catalogue=functools.partial(catalogue, services.runners, services.directory.tenant_of(self._project)),
            give_over=functools.partial(hand_over, self._services.sessions, self._services.runners),
            check_proposal=functools.partial(proposals.checked, self._project),
            project=self._project,
            default_agent=lambda: self._services.default_agent,
        )
        self._manager = library.build_manager(tools, max_body_bytes=settings.max_body_bytes)
        async with self._manager.run():
            self._ready.set()
            await asyncio.Event().wait()


@post(
    "/mcp",
    operation_id="mcp.send",
    tags=["mcp"],
    status_code=200,
    role="operator",
    answers={
        "200": answer("The answer.", {JSON: "JsonRpcMessage", SSE: "JsonRpcMessage"}),
        "202": {"description": "Taken; a notification has no answer."},
        "default": NO_MESSAGE,
    },
    body="JsonRpcMessage",
)
async def mcp(request: Request[Any, Any, Any], services: Services, project: str, state: State) -> ASGIApp:
    """One message of an MCP client (streamable HTTP); every request stands for itself."""
    if request.content_type[0].lower() != JSON:  # the library answers these two without saying what its answer is
        raise UnsupportedMedia(given=request.content_type[0], possible=JSON)
    _check_accept(request)
    body = await request.body()
    _note(request, body)
    endpoint: McpEndpoint = state.setdefault(f"{_STATE} {project}", McpEndpoint(services, project))
    if services.peers is not None:
        await _find_owner(services, project, body)

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        await endpoint.answer(scope, cast(Receive, replayed(body, cast(Any, receive))), send)

    return answered


async def _find_owner(services: Services, project: str, body: bytes) -> None:
    """Raise if another server has the session, while that can be heard."""
    with suppress(msgspec.DecodeError, msgspec.ValidationError, SessionNotFound):  # the library says what is wrong
        if session := msgspec.json.decode(body, type=_Call).params.arguments.session_id:
            await services.sessions.registry.live(project, session)


def _note(request: Request[Any, Any, Any], body: bytes) -> None:
    """Which tool is called, for the audit log; what cannot be read may change something."""
    attempt = attempt_of(request.scope)
    if attempt is None:
        return
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        call = msgspec.json.decode(body, type=_Call)
        attempt.changes = call.method == "tools/call" and call.params.name not in READING
        attempt.action = f"mcp.{call.params.name}"
        attempt.target = call.params.arguments.session_id


@get(
    "/.well-known/oauth-protected-resource/mcp",
    operation_id="mcp.metadata",
    tags=["mcp"],
    sync_to_thread=False,
    role="anyone",
)
def metadata(services: Services) -> ProtectedResource:
    """Where a client gets a token for `/mcp` (RFC 9728), if people sign in at a provider."""
    url, issuer = services.settings.public_url, services.settings.oidc_issuer
    if url is None or issuer is None:
        hint = "Set public_url and oidc_issuer, or give clients an API key."
        raise NotFound(what="path", value="/.well-known/oauth-protected-resource", hint=hint)
    resource = f"{url.rstrip('/')}/mcp"
    return ProtectedResource(resource=resource, authorization_servers=(issuer,), bearer_methods_supported=("header",))


def _check_accept(request: Request[Any, Any, Any]) -> None:
    for form in (JSON, SSE):
        try:
            form_for(request, form)
        except NotAcceptable as error:
            raise NotAcceptable(given=error.fields["given"], possible=f"{JSON} and {SSE}") from None


HANDLERS = (mcp, metadata)
