"""Sessions: create, find, change, end."""

from typing import Annotated, Any, get_args

import msgspec
from litestar import Request, Response, delete, get, patch, post
from litestar.params import Parameter, QueryParameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.services import Services
from ostler.server.api.views import listed_view, live_view
from ostler.server.runners.agents import full_name
from ostler.server.runners.placement import waiting_for
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.runners.leaving import must_stay
from ostler.server.store.peers import Peers
from ostler.server.store.records import SessionFilter, SessionRecord
from ostler.server.tasks.handoffs import hand_over
from ostler.server.tasks.views import session_view
from ostler.server.templates.applying import given_fields, session_of
from ostler.wire.agents import RestartSession
from ostler.wire.events import SessionStatus
from ostler.wire.runners import Placement
from ostler.wire.sessions import CreateSession, Interrupted, Page, Session, UpdateSession
from ostler.wire.tasks import HandoffSession

_TAGS = ["sessions"]


@get("/sessions", operation_id="sessions.list", tags=_TAGS, role="viewer")
async def list_sessions(
    services: Services,
    project: str,
    status: Annotated[str | None, Parameter(description="One status, or several separated by commas.")] = None,
    agent: Annotated[str | None, Parameter(description="Only sessions of this agent.")] = None,
    label: Annotated[str | None, Parameter(description="name=value; several separated by commas.")] = None,
    q: Annotated[str | None, Parameter(description="Text in the title or key, or the beginning of an id.")] = None,
    project_id: Annotated[str | None, QueryParameter(name="projectId", description="Only of this project.")] = None,
    tenant_id: Annotated[str | None, QueryParameter(name="tenantId", description="Only of this tenant.")] = None,
    page: Annotated[int, Parameter(ge=1, le=1_000_000)] = 1,
    per_page: Annotated[int, QueryParameter(name="perPage", ge=1, le=500)] = 20,
) -> Page[Session]:
    """Sessions, newest first."""
    wanted = SessionFilter(
        project=project,
        page=page,
        per_page=per_page,
        statuses=statuses_of(status),
        agent=full_name(services.runners, agent),
        labels=labels_of(label),
        text=q,
        project_id=project_id,
        tenant_id=tenant_id,
    )
    records, total = await services.sessions.store.page_sessions(wanted)
    items = tuple(listed_view(stored_view(services, record)) for record in records)
    following = page + 1 if page * per_page < total else None
    return Page(items=items, page=page, per_page=per_page, total=total, next_page=following)


def statuses_of(given: str | None) -> tuple[str, ...]:
    """The statuses of a filter."""
    statuses = tuple(filter(None, (given or "").split(",")))
    for status in statuses:
        if status not in get_args(SessionStatus):
            reason = f"'{status}' is not one of {', '.join(get_args(SessionStatus))}"
            raise InvalidRequest(reason=f"status: {reason}.", errors={"status": [reason]})
    return statuses


def labels_of(given: str | None) -> dict[str, str]:
    """The labels of a filter."""
    pairs = [pair.partition("=") for pair in filter(None, (given or "").split(","))]
    if any(not equals for _, equals, _ in pairs):
        raise InvalidRequest(reason="label: write name=value.", errors={"label": ["must be name=value"]})
    return {name: value for name, _, value in pairs}


@post(
    "/sessions",
    operation_id="sessions.create",
    tags=_TAGS,
    role="operator",
    answers={
        "200": answer("The key names a session that exists already.", {JSON: "Session"}),
        "201": answer("The new session.", {JSON: "Session"}, ("Location", "Where the session is.")),
    },
)
async def create_session(
    services: Services, project: str, request: Request[Any, Any, Any], data: CreateSession
) -> Response[Session]:
    """A new session; 200 with the existing one if the key is known."""
    given = given_fields(CreateSession, await request.json())
    wanted = await session_of(services.sessions.store.templates, project, data, given)
    live, is_new = await services.sessions.creation.create(project, wanted)
    view = stored_view(services, live.core.record)
    return Response(view, status_code=201 if is_new else 200, headers={"location": view.links["self"]})


@get("/sessions/{session:str}", operation_id="sessions.get", tags=_TAGS, role="viewer", for_session=True)
async def get_session(session: str, services: Services, project: str) -> Session:
    """One session, by id or key."""
    record = await services.sessions.registry.find(project, session)
    view = stored_view(services, record)
    if view.placement.state == "queued" and (limit := await services.quotas.held_back(project)) is not None:
        return msgspec.structs.replace(view, placement=Placement(state="queued", reason=limit))
    return view


def stored_view(services: Services, record: SessionRecord) -> Session:
    """A session that may be in memory or not."""
    registry = services.sessions.registry
    view = session_view(record, *registry.state_of(record))
    view = msgspec.structs.replace(view, process=registry.process_of(record))
    is_over = view.status in TERMINAL
    if record.runner is None and not is_over:
        reason = waiting_for(services.runners, record.agent, record.needs, record.tenant)
        return msgspec.structs.replace(view, placement=Placement(state="queued", reason=reason))
    if record.runner is not None and (lost := _lost(services, record, record.runner, is_over)) is not None:
        return msgspec.structs.replace(view, placement=Placement(state="lost", reason=lost))
    return view


def _lost(services: Services, record: SessionRecord, runner: str, is_over: bool) -> str | None:
    """Why the runner of a session cannot be reached, and what can be done; None if it can."""
    if services.peers is not None and services.peers.address_of(runner) is not None:
        return _waits_for_server(services.peers, record)
    known, name = services.runners.get(runner), record.runner_name
    if known is not None and not known.is_removed:
        is_there = known.link is not None or (known.elsewhere is not None and not known.is_lost_elsewhere)
        return None if is_there else f"the runner '{name}' is not linked; what is sent waits until it is"
    if is_over or must_stay(record):
        return f"the runner '{name}' was removed"
    return f"the runner '{name}' was removed: send a prompt, and it goes on on another one as its last turn left it"


def _waits_for_server(peers: Peers, record: SessionRecord) -> str | None:
    """Why nothing happens in a session on the runner of a server that is lost, and what can be done."""
    if record.runner != record.owner or not peers.is_lost(record.owner):
        return None
    return (
        f"waiting for the server at {peers.address_of(record.owner)}, whose machine it is on: start that again with "
        f"its state folder, or give it up with `ostler runners remove {record.runner}`"
    )


@patch("/sessions/{session:str}", operation_id="sessions.update", tags=_TAGS, role="operator")
async def update_session(session: str, services: Services, project: str, data: UpdateSession) -> Session:
    """Change model, variant, mode and permissions between two turns; title, labels, pin and archive at any time."""
    live = await services.sessions.update(project, session, data)
    return stored_view(services, live.core.record)


@delete("/sessions/{session:str}", operation_id="sessions.delete", tags=_TAGS, role="operator")
async def delete_session(session: str, services: Services, project: str) -> None:
    """End the session at once and remove everything of it."""
    await services.sessions.delete(project, session)


@post("/sessions/{session:str}/stop", operation_id="sessions.stop", tags=_TAGS, status_code=200, role="operator")
async def stop_session(session: str, services: Services, project: str) -> Session:
    """Ask the agent to wrap up, then end the session.

    An agent that takes messages during a turn is told to come to an end; others are just waited for. Either has
    `wrap_up_seconds`, and is interrupted then, or at once if it waits for a human. What is idle is stopped at once.
    """
    live = await services.sessions.registry.live(project, session)
    await live.lifecycle.stop()
    return live_view(live)


@post("/sessions/{session:str}/cancel", operation_id="sessions.cancel", tags=_TAGS, status_code=200, role="operator")
async def cancel_session(session: str, services: Services, project: str) -> Session:
    """End the session at once, by force."""
    live = await services.sessions.registry.live(project, session)
    await live.lifecycle.cancel()
    return live_view(live)


@post("/sessions/{session:str}/pause", operation_id="sessions.pause", tags=_TAGS, status_code=200, role="operator")
async def pause_session(session: str, services: Services, project: str) -> Session:
    """Freeze the agent where it stands."""
    live = await services.sessions.registry.live(project, session)
    await live.lifecycle.pause()
    return live_view(live)


@post("/sessions/{session:str}/resume", operation_id="sessions.resume", tags=_TAGS, status_code=200, role="operator")
async def resume_session(session: str, services: Services, project: str) -> Session:
    """Let a paused session go on."""
    live = await services.sessions.registry.live(project, session)
    await live.lifecycle.resume()
    return live_view(live)


@post(
    "/sessions/{session:str}/interrupt", operation_id="sessions.interrupt", tags=_TAGS, status_code=200, role="operator"
)
async def interrupt_session(session: str, services: Services, project: str) -> Interrupted:
    """End the turn under way, or the waiting for a limit; the session goes on."""
    return await (await services.sessions.registry.live(project, session)).turns.interrupt()


@post(
    "/sessions/{session:str}/handoff",
    operation_id="sessions.handoff",
    tags=_TAGS,
    role="operator",
    answers={
        "200": answer(
            "The session: it has the other agent, or `handoff` says who takes the next turn.", {JSON: "Session"}
        ),
        "201": answer(
            "The new session, if it was to be a fork.", {JSON: "Session"}, ("Location", "Where the session is.")
        ),
    },
)
async def hand_over_session(session: str, services: Services, project: str, data: HandoffSession) -> Response[Session]:
    """Let another agent take the next turn, with the same files and what was said so far; here or in a fork."""
    live = await services.sessions.registry.live(project, session)
    view = live_view(await hand_over(services.sessions, services.runners, live, data))
    headers = {"location": view.links["self"]} if data.fork else {}
    return Response(view, status_code=201 if data.fork else 200, headers=headers)


@post("/sessions/{session:str}/go-on", operation_id="sessions.go-on", tags=_TAGS, status_code=200, role="operator")
async def go_on_session(session: str, services: Services, project: str) -> Session:
    """Wait no longer for the end of a limit: what the server would do then by itself is done now."""
    live = await services.sessions.registry.live(project, session)
    await live.lifecycle.go_on_now()
    return live_view(live)


@post("/sessions/{session:str}/restart", operation_id="sessions.restart", tags=_TAGS, status_code=200, role="operator")
async def restart_session(
    session: str, services: Services, project: str, data: RestartSession | None = None
) -> Session:
    """End the agent's process; the next turn begins a new one, which goes on with the agent's memory."""
    live = await services.sessions.registry.live(project, session)
    await live.lifecycle.restart(force=data.force if data is not None else False)
    return live_view(live)


HANDLERS = (
    list_sessions,
    create_session,
    get_session,
    update_session,
    delete_session,
    stop_session,
    cancel_session,
    pause_session,
    resume_session,
    interrupt_session,
    hand_over_session,
    go_on_session,
    restart_session,
)
