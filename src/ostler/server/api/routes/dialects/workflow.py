"""Workflow executions at /api/orgs/{org}/workflow-executions."""

from typing import Annotated, Any

from litestar import Request, Response, Router, get, post
from litestar.params import Parameter, QueryParameter

from ostler.base.errors import NotFound, SessionNotFound
from ostler.server.api.accept import SSE
from ostler.server.api.described import answer
from ostler.server.api.routes.events import resume_from
from ostler.server.api.services import Services
from ostler.server.api.streams.projected import subject_in
from ostler.server.api.streams.sse import EventStream
from ostler.server.auth.scope import Scope
from ostler.server.dialects.beginning import begin
from ostler.server.dialects.conversation import left_behind
from ostler.server.dialects.following import Rendering, turn_boundary
from ostler.server.dialects.workflow import translation
from ostler.server.dialects.workflow.bodies import (
    CreateExecution,
    Execution,
    ExecutionPage,
    Signal,
    SignalReceived,
    StateValue,
)
from ostler.server.dialects.workflow.status import state_word
from ostler.server.dialects.workflow.stream import WorkflowStream
from ostler.server.runners.placement import agent_anywhere
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.feed import Follower
from ostler.server.sessions.session import SessionCore
from ostler.server.store.records import SessionFilter, SessionRecord
from ostler.wire.sessions import SendMessage

_MAX_SEQUENCE = 2**53
_ALL = 2**53
_TAGS = ["workflows"]


def _org_of(caller: Scope, org: str) -> str:
    """The organisation that is asked for: the tenant of the caller, and any other only for who has the whole server."""
    org = translation.checked_org(org)
    if caller.reach != "server" and org != caller.tenant:
        raise NotFound(what="organisation", value=org, hint=f"Your organisation is '{caller.tenant}'.")
    return org


async def _live(services: Services, caller: Scope, org: str, execution: str) -> LiveSession:
    org = _org_of(caller, org)
    live = await services.sessions.registry.live(caller.project, execution)
    if translation.org_of(live.core.state.labels, caller.tenant) != org:
        raise SessionNotFound(session=execution)
    return live


def _view(session: SessionCore, caller: Scope) -> Execution:
    org = translation.org_of(session.state.labels, caller.tenant)
    ending = session.is_ending
    return translation.execution_view(session.record, session.state, session.updated_at, org=org, is_ending=ending)


@post("/", status_code=201, operation_id="workflows.create", tags=_TAGS, role="operator", alias_of="sessions.create")
async def create_execution(org: str, services: Services, caller: Scope, data: CreateExecution) -> Execution:
    """Start an agent on a task."""
    org = _org_of(caller, org)
    agent = await agent_anywhere(services.runners, data.input.agent or services.default_agent)
    hint = "" if data.input.agent else services.default_agent_hint
    wanted = translation.create_session(org, data, agent, hint, own=caller.tenant)
    begun = await begin(services.sessions, caller.project, wanted, translation.first_prompt(data))
    if (provider := translation.ignored_provider(data.input.model, agent)) is not None:
        text = f"Without effect: input.model.provider '{provider}'. Agent '{agent.id}' names no model by its provider."
        await begun.live.core.note([drafts.warning(text, "settings_without_effect")])
    if hint:
        await begun.live.core.note([drafts.warning(hint, "mock_agent")])
    return _view(begun.live.core, caller)


@get("/", operation_id="workflows.list", tags=_TAGS, role="viewer", alias_of="sessions.list")
async def list_executions(
    org: str,
    services: Services,
    caller: Scope,
    kind: str = "agent",
    page: Annotated[int, Parameter(ge=1, le=1_000_000)] = 1,
    per_page: Annotated[int, QueryParameter(name="perPage", ge=1, le=500)] = 20,
) -> ExecutionPage:
    """Executions of an organisation, newest first."""
    org = _org_of(caller, org)
    if kind != "agent":
        return ExecutionPage(items=(), page=page, per_page=per_page, total=0)
    labels = {translation.ORG_LABEL: org}
    unlabelled = (translation.ORG_LABEL,) if org == caller.tenant else ()
    wanted = SessionFilter(project=caller.project, page=page, per_page=per_page, labels=labels, unlabelled=unlabelled)
    records, total = await services.sessions.store.page_sessions(wanted)
    items = tuple(_listed(services, record, org) for record in records)
    following = page + 1 if page * per_page < total else None
    return ExecutionPage(items=items, page=page, per_page=per_page, total=total, next_page=following)


def _listed(services: Services, record: SessionRecord, org: str) -> Execution:
    state, _, updated_at = services.sessions.registry.state_of(record)
    ending = services.sessions.registry.is_ending(record)
    return translation.execution_view(record, state, updated_at, org=org, is_ending=ending)


@get("/{execution:str}", operation_id="workflows.get", tags=_TAGS, role="viewer", alias_of="sessions.get")
async def get_execution(org: str, execution: str, services: Services, caller: Scope) -> Execution:
    """One execution."""
    return _view((await _live(services, caller, org, execution)).core, caller)


@get(
    "/{execution:str}/stream/consolidated",
    operation_id="workflows.stream",
    tags=_TAGS,
    role="viewer",
    alias_of="events.stream",
    answers={"200": answer("Tokens, state and task changes.", {SSE: "WorkflowMessage"})},
)
async def stream_execution(
    org: str,
    execution: str,
    services: Services,
    caller: Scope,
    request: Request[Any, Any, Any],
    offset: Annotated[int | None, Parameter(ge=0, le=_MAX_SEQUENCE)] = None,
) -> Response[Any]:
    """Tokens, state and task changes: from the latest turn on, or from an offset."""
    live = await _live(services, caller, org, execution)
    last = await turn_boundary(services.sessions, live.core.id, live.core.last)
    wanted = resume_from(request, last.offset if offset is None else offset)
    start = await turn_boundary(services.sessions, live.core.id, wanted)
    past = await left_behind(services.sessions, live.core.record)
    subject = await subject_in(services, live.core.record, start.turns)
    stream = WorkflowStream(subject, quiet_until=wanted, past=past)
    follower = Follower(live.core.tail, offset=start.offset)
    chunks = Rendering(follower, stream.render, heartbeat=services.settings.heartbeat_seconds, is_over=stream.is_over)
    return EventStream(chunks, live.core.tail, services)


@post(
    "/{execution:str}/signal",
    status_code=200,
    operation_id="workflows.signal",
    tags=_TAGS,
    role="operator",
    alias_of="sessions.send",
)
async def signal_execution(org: str, execution: str, services: Services, caller: Scope, data: Signal) -> SignalReceived:
    """Tell the agent something; while it works, that steers it."""
    live = await _live(services, caller, org, execution)
    payload = data.payload
    match data.name:
        case "userMessage":
            if not (payload.text or "").strip():
                raise translation.refused("payload.text", "must not be empty")
            receipt = await services.sessions.send(live, SendMessage(message=payload.text, when_busy="steer"))
            return SignalReceived(status="accepted", disposition=receipt.disposition)
        case "permissionReply" if payload.permission_id and payload.reply:
            await live.asks.reply_permission(payload.permission_id, payload.reply, payload.text)
        case "questionReply" if payload.question_id:
            await live.asks.answer_question(payload.question_id, payload.answers, payload.text)
        case "permissionReply" | "questionReply":
            raise translation.refused("payload", f"a {data.name} needs the ask's id and the answer")
        case _:
            known = "userMessage, permissionReply or questionReply"
            raise translation.refused("name", f"'{data.name[:80]}' is not {known}")
    return SignalReceived(status="accepted")


@post(
    "/{execution:str}/cancel",
    status_code=200,
    operation_id="workflows.cancel",
    tags=_TAGS,
    role="operator",
    alias_of="sessions.cancel",
)
async def cancel_execution(org: str, execution: str, services: Services, caller: Scope) -> Execution:
    """End an execution; ending it again does nothing."""
    live = await _live(services, caller, org, execution)
    if not live.core.state.ended:
        await live.lifecycle.cancel()
    return _view(live.core, caller)


@get("/{execution:str}/state", operation_id="workflows.state", tags=_TAGS, role="viewer", alias_of="sessions.messages")
async def execution_state(org: str, execution: str, services: Services, caller: Scope, key: str = "") -> StateValue:
    """One value of the state: messages, status or currentTurn."""
    live = await _live(services, caller, org, execution)
    match key:
        case "messages":
            messages, _ = await services.sessions.reads.messages(live.core.id, 0, _ALL)
            return StateValue(key=key, value=translation.history(messages))
        case "status":
            status = translation.status_of(live.core.state, is_ending=live.core.is_ending)
            return StateValue(key=key, value=state_word(status))
        case "currentTurn":
            return StateValue(key=key, value=live.core.state.turn_count)
        case _:
            if not key:
                raise translation.refused("key", f"choose one of {', '.join(translation.STATE_KEYS)}")
            raise NotFound(what="state", value=key[:80], hint=f"Try {', '.join(translation.STATE_KEYS)}.")


HANDLERS = (
    Router(
        path="/api/orgs/{org:str}/workflow-executions",
        route_handlers=[
            create_execution,
            list_executions,
            get_execution,
            stream_execution,
            signal_execution,
            cancel_execution,
            execution_state,
        ],
    ),
)
