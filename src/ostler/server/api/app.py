"""The HTTP application: routes, gate and idempotency put together, and its OpenAPI description."""

import functools
from typing import Any, Self, cast

from litestar import Litestar, Response, Router
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.di import Provide
from litestar.handlers import BaseRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import License, Tag
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.routes import HTTPRoute
from litestar.types import Message as LitestarMessage
from litestar.types import Scope as LitestarScope

from ostler import __version__
from ostler.server.api import openapi, problems
from ostler.server.api.edge.asgi import App
from ostler.server.api.edge.audited import Audited
from ostler.server.api.edge.door import Door
from ostler.server.api.edge.gate import Gate
from ostler.server.api.edge.idempotency import Idempotency
from ostler.server.api.edge.relay import Relay
from ostler.server.api.edge.runner_link import RunnerLinkApp
from ostler.server.api.requests import TolerantRequest, before_handling
from ostler.server.api.routes import (
    access,
    agents,
    asks,
    audit,
    catalogue,
    comments,
    connect,
    conversation,
    delivery,
    events,
    files,
    fleets,
    imports,
    limits,
    logins,
    prompts,
    reads,
    runners,
    schedules,
    search,
    sessions,
    sign_in,
    snapshots,
    system,
    tasks,
    templates,
    triggers,
    webhooks,
    workspaces,
)
from ostler.server.api.routes.dialects import (
    acp,
    agui,
    ai_sdk,
    daemon,
    daemon_acp,
    daemon_config,
    daemon_fs,
    daemon_processes,
    mcp,
    workflow,
)
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import Streams
from ostler.server.api.ui import Ui
from ostler.server.api.views import API
from ostler.server.auth.authenticator import Authentication, Authenticator, StaticToken
from ostler.server.auth.certificates import ShownCertificates
from ostler.server.auth.scope import LOCAL, NeededRole, Scope, attempt_of, authorise, scope_of
from ostler.wire.access import Reach


def _services(state: State) -> Services:
    services: Services = state.services
    return services


def _caller(services: Services, scope: dict[str, Any]) -> Scope:
    """Asks for services only to come after them: for what is independent Litestar makes a task each."""
    return scope_of(scope)


def _project(caller: Scope) -> str:
    return caller.project


async def _authorised(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Awaits nothing: Litestar would run a plain function in a thread."""
    is_question = connection.scope.get("method") == "OPTIONS"  # answered by Litestar, which names no role
    role: NeededRole = "viewer" if is_question else handler.opt["role"]
    if (attempt := attempt_of(connection.scope)) is not None:
        attempt.action = str(getattr(handler, "operation_id", None) or f"open {connection.scope['path']}")
        attempt.changes = bool(handler.opt.get("audited", role != "viewer"))
        if role != "anyone":  # to them the address may be a secret
            attempt.target = "/".join(map(str, connection.path_params.values()))
    about = _session_named(connection) if handler.opt.get("for_session") else None
    if handler.opt.get("checks_session"):  # the handler compares it
        about = getattr(connection.scope.get("user"), "session", None)
    authorise(connection.scope, role, handler.opt.get("reach", "project"), about)


def _session_named(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """In the path or the query; nothing if the query names several, of which the handler would take the last."""
    if (session := connection.path_params.get("session")) is not None:
        return str(session)
    named = {value for name, value in connection.query_params.multi_items() if name in {"sessionId", "session_id"}}
    return str(next(iter(named))) if len(named) == 1 else ""


@functools.cache
def _openapi() -> dict[str, Any]:
    return build_openapi()


def build_openapi() -> dict[str, Any]:
    """The OpenAPI document; starts nothing."""
    app = _litestar(None)
    return openapi.completed(app.openapi_schema.to_schema(), app)


def declared_needs() -> dict[str, tuple[NeededRole, Reach]]:
    """By operation, the least role and reach that its handler asks for; starts nothing."""
    found: dict[str, tuple[NeededRole, Reach]] = {}
    for route in _litestar(None).routes:
        if isinstance(route, HTTPRoute):
            handlers: list[BaseRouteHandler] = [pair[0] for pair in route.route_handler_map.values()]
        else:
            handlers = [route.route_handler]
        for handler in handlers:
            name = getattr(handler, "operation_id", None) or f"the socket {route.path}"
            if "role" in handler.opt:  # Litestar answers OPTIONS itself
                found[str(name)] = handler.opt["role"], handler.opt.get("reach", "project")
    return found


def build_app(services: Services) -> App:
    """The application for a running server."""
    inner: App = Streams(cast(App, _litestar(services)), services)
    if services.peers is not None:
        inner = Relay(inner, services.peers, services.counters, services.settings.ca_file)
    posts = Idempotency(inner, services.sessions.store)
    link = RunnerLinkApp(services.links)
    secret = services.peers.secret if services.peers is not None else None
    authentication = _authentication(services)
    door = Door(
        authentication,
        services.directory,
        services.quotas,
        services.settings,
        services.counters,
        secret,
        services.sign_ins,
    )
    gate = Gate(inner, posts, link, Ui(inner), services.settings, services.counters, door)
    return Audited(gate, services.audit)


def _authentication(services: Services) -> Authentication:
    settings, directory = services.settings, services.directory
    token = settings.effective_token()
    ways: list[Authenticator] = [services.session_tokens, directory]
    if token is not None:
        ways.insert(0, StaticToken(token))
    ways += [each for each in services.people if each is not None]
    if settings.tls_client_claims is not None:
        ways.append(ShownCertificates(settings.tls_client_claims, directory))
    return Authentication(tuple(ways), settings.max_wrong_tokens, LOCAL if settings.is_open() else None)


class _Application(Litestar):
    """Litestar without its plugins for libraries that only the MCP door needs: they would cost every server 10 MB."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


class _Api(Router):
    """A router made for one application: Litestar would copy it with all its handlers, which slows every start."""

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        return self


_UTF_8 = b"application/json; charset=utf-8"
_DAEMON = (daemon, daemon_acp, daemon_config, daemon_fs, daemon_processes)
_GROUPS = (
    agents,
    logins,
    sessions,
    conversation,
    events,
    search,
    imports,
    prompts,
    reads,
    templates,
    schedules,
    triggers,
    webhooks,
    asks,
    snapshots,
    workspaces,
    files,
    comments,
    delivery,
    tasks,
    catalogue,
    runners,
    fleets,
    connect,
    access,
    limits,
    audit,
    sign_in,
    ai_sdk,
)


def _litestar(services: Services | None) -> Litestar:
    return _Application(
        route_handlers=[
            _Api(path=API, route_handlers=[handler for group in _GROUPS for handler in group.HANDLERS]),
            *ai_sdk.ROOT_HANDLERS,
            *acp.HANDLERS,
            *(handler for group in _DAEMON for handler in group.HANDLERS),
            *mcp.HANDLERS,
            *agui.HANDLERS,
            *workflow.HANDLERS,
            *system.HANDLERS,
        ],
        request_class=TolerantRequest,
        before_request=before_handling,
        after_request=_name_version,
        before_send=[_name_charset],
        guards=[_authorised],
        dependencies=_dependencies(),
        exception_handlers={Exception: problems.answer},
        after_exception=[problems.note_failure],
        state=State({"services": services}),
        openapi_config=_description() if services is None else None,  # a running server describes itself when asked
        request_max_body_size=None,  # the gate limits bodies by setting
        logging_config=None,
    )


async def _name_version(response: Any) -> Any:
    """A client that cannot read an answer says which versions do not fit; MCP answers by itself."""
    if isinstance(response, Response):
        response.headers["ostler-version"] = __version__
    return response


async def _name_charset(message: LitestarMessage, scope: LitestarScope) -> None:
    """JSON of our own API says that it is UTF-8; other protocols have the type as their specifications do."""
    if message["type"] == "http.response.start" and scope["path"].startswith(f"{API}/"):
        message["headers"] = [
            (name, _UTF_8 if (name, value) == (b"content-type", b"application/json") else value)
            for name, value in message["headers"]
        ]


def _dependencies() -> dict[str, Provide]:
    return {
        "services": Provide(_services, sync_to_thread=False),
        "caller": Provide(_caller, sync_to_thread=False),
        "project": Provide(_project, sync_to_thread=False),
        "openapi": Provide(_openapi, sync_to_thread=False),
    }


def _description() -> OpenAPIConfig:
    return OpenAPIConfig(
        title=openapi.TITLE,
        version=__version__,
        description=openapi.DESCRIPTION,
        license=License(name="Apache-2.0", identifier="Apache-2.0"),
        tags=[Tag(name=name, description=about) for name, about in openapi.TAGS.items()],
        use_handler_docstrings=True,
        path=f"{API}/docs",
        render_plugins=[],
    )
