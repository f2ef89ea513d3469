"""The universal daemon API, at /v1 and, as its first specification has it, without a prefix."""

from datetime import datetime
from time import monotonic
from typing import Annotated, Any

import msgspec
from litestar import MediaType, Request, Response, Router, get, post
from litestar.params import Parameter

from ostler.base.errors import (
    AgentNotInstalled,
    AgentStartFailed,
    InstallFailed,
    OstlerError,
    SessionAlreadyExists,
    UnsupportedAgent,
)
from ostler.server.api import problems
from ostler.server.api.accept import JSON, SSE
from ostler.server.api.described import answer
from ostler.server.api.edge.idempotency import RECEIPT_HEADER
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.routes.events import DaemonIncludeRaw, Limit, Offset, resume_from
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.auth.scope import Scope
from ostler.server.dialects.beginning import send
from ostler.server.dialects.daemon import translation
from ostler.server.dialects.daemon.bodies import (
    DaemonAgent,
    DaemonAgents,
    DaemonCreateSession,
    DaemonHealth,
    DaemonInstall,
    DaemonMessage,
    DaemonModels,
    DaemonModes,
    DaemonPermissionReply,
    DaemonQuestionReject,
    DaemonQuestionReply,
    DaemonSessionCreated,
    DaemonSessions,
)
from ostler.server.dialects.daemon.machine_files import MachineFiles
from ostler.server.dialects.daemon.projection import DaemonStream, daemon_page
from ostler.server.dialects.daemon.skills import skill_texts
from ostler.server.dialects.following import Rendering
from ostler.server.dialects.turns import PromptTurn
from ostler.server.runners import agents as runner_agents
from ostler.server.sessions.elsewhere import Following
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.feed import Follower
from ostler.server.sessions.session import SessionCore
from ostler.server.store.records import DEFAULT_TENANT, SessionFilter
from ostler.wire.agents import Agent, LoginOrder
from ostler.wire.sessions import CreateSession

_TAGS = ["daemon"]
_PAGE = 500
_NAMED_SECONDS = 5.0
Config = Annotated[bool, Parameter(description="Add what can be set in a session of it.")]
NoCache = Annotated[bool, Parameter(description="Nothing is kept here, so it changes nothing.")]
"""A start is in the log as soon as the disk has it."""


@get("/health", operation_id="daemon.health", tags=_TAGS, sync_to_thread=False, role="viewer", alias_of="system.health")
def health() -> DaemonHealth:
    """Whether the server answers."""
    return DaemonHealth(status="ok")


@get("/agents", operation_id="daemon.agents", tags=_TAGS, role="viewer", alias_of="agents.list")
async def list_agents(
    services: Services, caller: Scope, config: Config = False, no_cache: NoCache = False
) -> DaemonAgents:
    """Every agent this server can run."""
    catalogue = await runner_agents.catalogue(services.runners, caller.tenant)
    return DaemonAgents(agents=tuple(_shown(services, caller, agent, config=config) for agent in catalogue))


def _shown(services: Services, caller: Scope, agent: Agent, *, config: bool) -> DaemonAgent:
    """An agent, and whether programs of it run for the caller's project at this server."""
    registry, wanted = services.sessions.registry, (agent.id, caller.project)
    live = (each.core.record for runner in services.runners.known for each in registry.live_on(runner.about.id))
    found = (registry.process_of(record) for record in live if (record.agent, record.project) == wanted)
    started = [datetime.fromisoformat(process.started_at) for process in found if process is not None]
    now = datetime.fromisoformat(services.clock.now())
    return translation.agent_view(agent, started, now, config=config)


@post(
    "/agents/{agent:str}/install",
    operation_id="daemon.install",
    tags=_TAGS,
    status_code=204,
    role="admin",
    reach="server",
    alias_of="agents.install",
)
async def install_agent(agent: str, services: Services, data: DaemonInstall | None = None) -> None:
    """Install an agent, or find that it is there already; with `reinstall` it is installed anew."""
    wanted = data or DaemonInstall()
    await runner_agents.install_agent(
        services.runners,
        find_agent(services, agent).id,
        wanted.version or wanted.agent_version,
        reinstall=wanted.reinstall or False,
    )


@get("/agents/{agent:str}", operation_id="daemon.agent", tags=_TAGS, role="viewer", alias_of="agents.get")
async def get_agent(
    agent: str, services: Services, caller: Scope, config: Config = False, no_cache: NoCache = False
) -> DaemonAgent:
    """One agent."""
    found = find_agent(services, agent, caller.tenant)
    shown = await runner_agents.describe_agent(services.runners, found.id)
    return _shown(services, caller, shown, config=config)


@get("/agents/{agent:str}/modes", operation_id="daemon.modes", tags=_TAGS, role="viewer", alias_of="agents.modes")
async def agent_modes(agent: str, services: Services, caller: Scope) -> DaemonModes:
    """What the agent can be told to do."""
    return DaemonModes(modes=find_agent(services, agent, caller.tenant).modes)


@get("/agents/{agent:str}/models", operation_id="daemon.models", tags=_TAGS, role="viewer", alias_of="agents.models")
async def agent_models(agent: str, services: Services, caller: Scope) -> DaemonModels:
    """Which models the agent offers."""
    models = find_agent(services, agent, caller.tenant).models
    return DaemonModels(models=tuple(map(translation.model_view, models)))


@get("/sessions", operation_id="daemon.sessions", tags=_TAGS, role="viewer", alias_of="sessions.list")
async def list_sessions(services: Services, project: str) -> DaemonSessions:
    """All sessions, newest first."""
    agents = {agent.id: agent for agent in runner_agents.all_agents(services.runners)}
    views = []
    page, total = 1, 1
    while (page - 1) * _PAGE < total:
        records, total = await services.sessions.store.page_sessions(
            SessionFilter(project=project, page=page, per_page=_PAGE)
        )
        views += [
            translation.session_view(record, *services.sessions.registry.state_of(record), agents) for record in records
        ]
        page += 1
    return DaemonSessions(sessions=tuple(views))


@post(
    "/sessions/{session:str}",
    operation_id="daemon.create",
    tags=_TAGS,
    status_code=200,
    role="operator",
    alias_of="sessions.create",
)
async def create_session(
    session: str, services: Services, project: str, data: DaemonCreateSession
) -> DaemonSessionCreated:
    """A new session under your own id; its agent is installed first if it is missing."""
    agent = await runner_agents.describe_agent(services.runners, find_agent(services, data.agent).id)
    wanted = translation.create_session(session, data, agent, await _instructions(services, data))
    if (error := await _installed(services, agent, data.agent_version)) is not None:
        message = str(translation.reworded(error, session, _names(services)))
        return translation.unhealthy(session, data.agent, translation.install_error(error), message)
    if data.validate_token and (reason := await _token_error(services, agent, data.token)) is not None:
        return translation.unhealthy(session, data.agent, "tokenError", reason)
    live = await _created(services, project, wanted)
    try:
        await live.agent.start()
    except AgentStartFailed as failed:
        await services.sessions.delete(project, session)
        message = str(translation.reworded(failed, session, _names(services)))
        return translation.unhealthy(session, data.agent, translation.start_error(failed), message)
    return DaemonSessionCreated(healthy=True, native_session_id=await _native_name(live.core))


async def _native_name(session: SessionCore) -> str | None:
    """What the agent calls the session: it says so when it has started, or with its first turn."""
    deadline = monotonic() + _NAMED_SECONDS
    while not session.state.starts and (left := deadline - monotonic()) > 0:
        await session.tail.wait(session.tail.last, timeout=left)
    return session.state.native_session_id


async def _instructions(services: Services, data: DaemonCreateSession) -> str | None:
    """What the skills say, behind what every agent is told."""
    if data.skills is None or not data.skills.sources:
        return None
    files = MachineFiles(services.runners.workspaces(services.runners.any()), None)
    texts = await skill_texts(files, data.skills, data.directory)
    return "\n\n".join(filter(None, (services.settings.default_instructions, texts)))


async def _created(services: Services, project: str, wanted: CreateSession) -> LiveSession:
    """A session that was not there before."""
    live, is_new = await services.sessions.creation.create(project, wanted)
    if not is_new:
        raise SessionAlreadyExists(key=live.core.record.key, agent=live.core.record.agent)
    return live


def _names(services: Services) -> dict[str, str]:
    """Our agents by what this API calls them."""
    return {agent.id: translation.agent_name(agent) for agent in runner_agents.all_agents(services.runners)}


def find_agent(services: Services, name: str, tenant: str | None = None) -> Agent:
    """The agent that a client means, of those for a tenant if one is named; when there is none, it reads the names
    that this API has."""
    try:
        if tenant is not None:
            return runner_agents.agent_for(services.runners, name, tenant)
        return runner_agents.agent_named(services.runners, name)
    except UnsupportedAgent as unknown:
        seen = runner_agents.agents_for(services.runners, tenant or DEFAULT_TENANT)
        known = ", ".join(map(translation.agent_name, seen))
        raise UnsupportedAgent(agent=unknown.fields["agent"], known=known) from unknown


async def _token_error(services: Services, agent: Agent, token: str | None) -> str | None:
    """Why nobody can say that the agent would be let in; without a token it is the runner's login."""
    found = await runner_agents.log_in(services.runners, agent.id, LoginOrder(verb="check", key=token))
    if found.state == "unknown":
        return f"This could not be checked: {found.reason.rstrip('.')}. Leave validateToken out to begin without."
    return found.reason if found.state != "ready" else None


async def _installed(services: Services, agent: Agent, version: str | None) -> InstallFailed | AgentNotInstalled | None:
    if agent.installed and version in {None, agent.version}:
        return None
    if not services.settings.auto_install:
        return AgentNotInstalled(agent=agent.id, looked_in="the server's PATH")
    try:
        await runner_agents.install_agent(services.runners, agent.id, version)
    except InstallFailed as error:
        return error
    return None


@post(
    "/sessions/{session:str}/messages",
    operation_id="daemon.send",
    tags=_TAGS,
    status_code=204,
    role="operator",
    alias_of="sessions.send",
)
async def send_message(session: str, services: Services, project: str, data: DaemonMessage) -> None:
    """Send a prompt; while a turn is under way it waits."""
    live = await services.sessions.registry.live(project, session)
    await services.sessions.send(live, translation.prompt(data))


@post(
    "/sessions/{session:str}/messages/stream",
    operation_id="daemon.send-and-stream",
    tags=_TAGS,
    status_code=200,
    role="operator",
    alias_of="sessions.send",
    answers={"200": answer("The events of the turn, until it ends.", {SSE: "DaemonEvent"})},
)
async def send_and_stream(
    session: str,
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    data: DaemonMessage,
    include_raw: DaemonIncludeRaw = False,
) -> Response[Any]:
    """Send a prompt and stream the events of its turn until that ends."""
    services.counters.streams.admit(client_of(request.scope))
    live = await services.sessions.registry.live(project, session)
    begun = await send(services.sessions, live, translation.prompt(data))
    headers = {RECEIPT_HEADER.decode(): msgspec.json.encode(begun.receipt).decode()}
    turn = PromptTurn(begun.receipt, after=begun.offset)
    return _stream(services, live.core, offset=begun.offset, raw=include_raw, turn=turn, headers=headers)


def _stream(
    services: Services,
    session: SessionCore | Following,
    *,
    offset: int,
    raw: bool,
    turn: PromptTurn | None = None,
    headers: dict[str, str] | None = None,
) -> EventStream:
    stream = DaemonStream(session.record.key, turn, _names(services))
    follower = Follower(session.tail, offset=offset, raw=raw)
    heartbeat = services.settings.heartbeat_seconds
    chunks = Rendering(follower, stream.render, heartbeat=heartbeat, is_over=stream.is_over)
    return EventStream(chunks, session.tail, services, headers=headers)


@get(
    "/sessions/{session:str}/events",
    operation_id="daemon.events",
    tags=_TAGS,
    role="viewer",
    alias_of="events.list",
    answers={"200": answer("A page of events.", {JSON: "DaemonEventPage"})},
)
async def list_events(
    session: str,
    services: Services,
    project: str,
    offset: Offset = 0,
    limit: Limit = 1000,
    include_raw: DaemonIncludeRaw = False,
) -> Response[bytes]:
    """A page of events."""
    record = await services.sessions.registry.find(project, session)
    names = _names(services)
    events, has_more = await daemon_page(
        services.sessions, record, offset=offset, limit=limit, raw=include_raw, names=names
    )
    more = b"true" if has_more else b"false"
    return Response(b'{"events":[%b],"hasMore":%b}' % (b",".join(events), more), media_type=MediaType.JSON)


@get(
    "/sessions/{session:str}/events/sse",
    operation_id="daemon.stream",
    tags=_TAGS,
    role="viewer",
    alias_of="events.stream",
    answers={"200": answer("A stream of events that stays open.", {SSE: "DaemonEvent"})},
)
async def stream_events(
    session: str,
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    offset: Offset = 0,
    include_raw: DaemonIncludeRaw = False,
) -> Response[Any]:
    """Every event after the offset, then live ones."""
    followed = await services.sessions.registry.followed(project, session)
    return _stream(services, followed, offset=resume_from(request, offset), raw=include_raw)


@post(
    "/sessions/{session:str}/terminate",
    operation_id="daemon.terminate",
    tags=_TAGS,
    status_code=204,
    role="operator",
    alias_of="sessions.cancel",
)
async def terminate(session: str, services: Services, project: str) -> None:
    """End the session at once; ending it again does nothing."""
    live = await services.sessions.registry.live(project, session)
    if not live.core.state.ended:
        await live.lifecycle.cancel()


@post(
    "/sessions/{session:str}/permissions/{permission_id:str}/reply",
    operation_id="daemon.permission",
    tags=_TAGS,
    status_code=204,
    role="operator",
    alias_of="asks.permission",
)
async def reply_permission(
    session: str, permission_id: str, services: Services, project: str, data: DaemonPermissionReply
) -> None:
    """Allow once, allow for the session, or reject."""
    live = await services.sessions.registry.live(project, session)
    await live.asks.reply_permission(permission_id, data.reply, None)


@post(
    "/sessions/{session:str}/questions/{question_id:str}/reply",
    operation_id="daemon.answer",
    tags=_TAGS,
    status_code=204,
    role="operator",
    alias_of="asks.answer",
)
async def answer_question(
    session: str, question_id: str, services: Services, project: str, data: DaemonQuestionReply
) -> None:
    """Answer a question."""
    live = await services.sessions.registry.live(project, session)
    await live.asks.answer_question(question_id, data.answers, None)


@post(
    "/sessions/{session:str}/questions/{question_id:str}/reject",
    operation_id="daemon.reject",
    tags=_TAGS,
    status_code=204,
    role="operator",
    alias_of="asks.reject",
)
async def reject_question(
    session: str,
    question_id: str,
    services: Services,
    project: str,
    data: DaemonQuestionReject | None = None,
) -> None:
    """Decline to answer a question."""
    live = await services.sessions.registry.live(project, session)
    await live.asks.answer_question(question_id, None, None)


_UNPREFIXED = (
    install_agent,
    agent_modes,
    create_session,
    send_message,
    list_events,
    stream_events,
    reply_permission,
    answer_question,
    reject_question,
)
_PREFIXED = (*_UNPREFIXED, health, list_agents, get_agent, agent_models, list_sessions, send_and_stream, terminate)


def _answer(request: Request[Any, Any, Any], error: OstlerError) -> Response[bytes]:
    """A problem with the names of this API."""
    names = _names(request.app.state["services"])
    return problems.answer(request, translation.reworded(error, request.path_params.get("session"), names))


HANDLERS = (
    Router(path="/v1", route_handlers=list(_PREFIXED), exception_handlers={OstlerError: _answer}),
    Router(
        path="/",
        route_handlers=list(_UNPREFIXED),
        include_in_schema=False,
        exception_handlers={OstlerError: _answer},
    ),
)
