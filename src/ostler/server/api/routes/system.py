"""Health, version, metrics and schemas."""

import platform
from typing import Any

import msgspec
from litestar import MediaType, Response, get

from ostler import __version__
from ostler.base.errors import NotFound
from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope
from ostler.server.runners.agents import agents_for
from ostler.wire.agents import Agent
from ostler.wire.events import AnyEvent
from ostler.wire.fleets import ingest_schema
from ostler.wire.system import Health, IdentityProvider, Providers, Ready, Version, WayToSignIn
from ostler.wire.tasks import TaskSettings


@get("/api/v1/healthz", operation_id="system.health", tags=["system"], sync_to_thread=False, role="anyone")
def health() -> Health:
    """Whether the process answers."""
    return Health(status="ok")


@get("/healthz", operation_id="system.health", include_in_schema=False, sync_to_thread=False, role="anyone")
def root_health() -> Health:
    """The same at the place where orchestrators look."""
    return Health(status="ok")


@get(
    "/api/v1/readyz",
    operation_id="system.ready",
    tags=["system"],
    role="anyone",
    answers={"503": answer("The server cannot take work now.", {JSON: "Ready"})},
)
async def ready(services: Services) -> Response[Ready]:
    """Whether the server can take work: 200, or 503 with what is missing."""
    return await _readiness(services)


async def _readiness(services: Services) -> Response[Ready]:
    if services.counters.stopping:
        return Response(Ready(status="stopping", checks={}), status_code=503)
    if (problem := await services.sessions.store.problem()) is not None:
        return Response(Ready(status="unavailable", checks={"store": problem}), status_code=503)
    counted = await services.sessions.store.count_by_status()
    return Response(Ready(status="ready", checks={"store": "ok", "sessions": str(sum(counted.values()))}))


@get("/readyz", operation_id="system.ready", include_in_schema=False, role="anyone")
async def root_ready(services: Services) -> Response[Ready]:
    """The same at the place where orchestrators look."""
    return await _readiness(services)


@get("/api/v1/providers", operation_id="system.providers", tags=["system"], sync_to_thread=False, role="anyone")
def providers(services: Services) -> Providers:
    """Where people sign in to get a token for this server."""
    settings, ways = services.settings, services.sign_ins.ways.values() if services.sign_ins is not None else ()
    items: tuple[IdentityProvider, ...] = ()
    if settings.oidc_issuer is not None and settings.oidc_audience is not None:
        client = settings.client_for_command_line()
        items = (IdentityProvider(issuer=settings.oidc_issuer, audience=settings.oidc_audience, client_id=client),)
    return Providers(
        items=items,
        browser=tuple(WayToSignIn(name=way.name, path=f"/api/v1/sign-in/{way.id}") for way in ways),
    )


@get("/api/v1/version", operation_id="system.version", tags=["system"], sync_to_thread=False, role="viewer")
def version(services: Services) -> Version:
    """Which server this is."""
    schema = services.sessions.store.schema_version
    return Version(name="ostler", version=__version__, api="v1", schema=schema, python=platform.python_version())


@get(
    "/api/v1/metrics",
    operation_id="system.metrics",
    tags=["system"],
    media_type=MediaType.TEXT,
    role="viewer",
    reach="server",
)
async def metrics(services: Services) -> str:
    """Numbers in Prometheus text format."""
    from ostler.server.api.metrics import exposition  # noqa: PLC0415 - prometheus_client would slow every start

    return await exposition(services)


@get("/api/v1/openapi.json", operation_id="system.openapi", tags=["system"], sync_to_thread=False, role="viewer")
def openapi_document(openapi: dict[str, Any]) -> dict[str, Any]:
    """The description of this API."""
    return openapi


@get("/api/v1/schemas/{name:path}", operation_id="system.schema", tags=["system"], role="viewer")
async def schema(name: str, services: Services, caller: Scope) -> dict[str, Any]:
    """A JSON Schema: `wire.json` for events, `ingest.json` for reports, `agents/<agent>.json` for settings."""
    wanted = name.strip("/")
    if wanted == "wire.json":
        return msgspec.json.schema(AnyEvent)
    if wanted == "ingest.json":
        return ingest_schema()
    for agent in agents_for(services.runners, caller.tenant):
        if wanted == f"agents/{agent.id}.json":
            return _settings_schema(agent)
    raise NotFound(what="schema", value=wanted, hint="Try wire.json or ingest.json.")


def _settings_schema(agent: Agent) -> dict[str, Any]:
    """The `agent.settings` of a task for this agent; where it offers no models or modes, any may be tried."""
    described = msgspec.json.schema(TaskSettings)
    settings = described["$defs"].pop(TaskSettings.__name__)
    offered = {
        "model": [model.id for model in agent.models],
        "mode": [mode.id for mode in agent.modes],
        "variant": sorted({variant for model in agent.models for variant in model.variants}),
    }
    if "maxTokens" not in agent.limits:
        del settings["properties"]["maxTokens"]
    chosen = {name: {"type": "string", "enum": values} for name, values in offered.items() if values}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **settings,
        "title": f"Settings of {agent.name}",
        "properties": {**settings["properties"], **chosen},
        "$defs": described["$defs"],
    }


HANDLERS = (health, root_health, ready, root_ready, providers, version, metrics, openapi_document, schema)
