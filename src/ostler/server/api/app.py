"""The HTTP application: routes, gate and idempotency put together, and its OpenAPI description."""

import functools
import re
from typing import Any, cast

from litestar import Litestar, Request, Router
from litestar.config.cors import CORSConfig
from litestar.datastructures import State
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig

from ostler import __version__
from ostler.base.errors import InvalidRequest
from ostler.server.api import problems
from ostler.server.api.asgi import App
from ostler.server.api.gate import Gate
from ostler.server.api.idempotency import Idempotency
from ostler.server.api.openapi import completed
from ostler.server.api.routes import agents, asks, conversation, events, sessions, system, welcome
from ostler.server.api.services import DEFAULT_PROJECT, Services
from ostler.server.api.views import API

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


class TolerantRequest(Request[Any, Any, Any]):
    """Takes camelCase and snake_case names of top-level fields alike."""

    async def json(self) -> Any:
        """The decoded body; a body that is not JSON is the client's mistake."""
        try:
            decoded = await super().json()
        except ValueError as error:
            raise InvalidRequest(
                reason=f"The body is not valid JSON: {error}.", errors={"body": [str(error)]}
            ) from error
        if not isinstance(decoded, dict):
            return decoded
        return {_CAMEL.sub(lambda found: f"_{found[1].lower()}", name): value for name, value in decoded.items()}


def _services(state: State) -> Services:
    services: Services = state.services
    return services


def _project() -> str:
    return DEFAULT_PROJECT


@functools.cache
def _openapi() -> dict[str, Any]:
    return build_openapi()


def build_openapi() -> dict[str, Any]:
    """The OpenAPI document; starts nothing."""
    return completed(_litestar(None).openapi_schema.to_schema())


def build_app(services: Services) -> App:
    """The application for a running server."""
    return Gate(
        Idempotency(cast(App, _litestar(services)), services.sessions.store), services.settings, services.counters
    )


def _litestar(services: Services | None) -> Litestar:
    groups = (agents, sessions, conversation, events, asks)
    router = Router(path=API, route_handlers=[handler for group in groups for handler in group.HANDLERS])
    return Litestar(
        route_handlers=[router, *system.HANDLERS, *welcome.HANDLERS],
        request_class=TolerantRequest,
        dependencies={
            "services": Provide(_services, sync_to_thread=False),
            "project": Provide(_project, sync_to_thread=False),
            "openapi": Provide(_openapi, sync_to_thread=False),
        },
        exception_handlers={Exception: problems.answer},
        state=State({"services": services}),
        cors_config=_cors(services),
        openapi_config=OpenAPIConfig(title="Ostler", version=__version__, path="/api/v1/docs", render_plugins=[]),
        request_max_body_size=None,  # the gate limits bodies by setting
        logging_config=None,
    )


def _cors(services: Services | None) -> CORSConfig | None:
    if services is None or not services.settings.cors_origins:
        return None
    settings = services.settings
    return CORSConfig(
        allow_origins=list(settings.cors_origins),
        allow_methods=list(settings.cors_methods),  # type: ignore[arg-type]  # any method name is fine
        allow_headers=list(settings.cors_headers),
        allow_credentials=settings.cors_credentials,
        expose_headers=["location", "ostler-receipt", "idempotency-replayed"],
    )
