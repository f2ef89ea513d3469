"""Tasks: order work on a repository, and see what became of it."""

from typing import Annotated, Any

from litestar import Request, Response, get, post
from litestar.params import Parameter, QueryParameter
from msgspec.structs import replace

from ostler.server.api.routes.sessions import labels_of, statuses_of, stored_view
from ostler.server.api.services import Services
from ostler.server.auth.directory import Directory
from ostler.server.auth.scope import Scope, check
from ostler.server.runners.agents import full_name
from ostler.server.runners.placement import agent_anywhere
from ostler.server.store.records import DEFAULT_TENANT, SessionFilter
from ostler.server.tasks.orders import session_of, signed, spec_of
from ostler.server.tasks.views import task_created
from ostler.server.templates.applying import given_settings, task_of
from ostler.wire.sessions import Page, Session
from ostler.wire.tasks import CreateTask, TaskCreated

_TAGS = ["tasks"]


@post("/tasks", operation_id="tasks.create", tags=_TAGS, role="operator")
async def create_task(
    services: Services, caller: Scope, request: Request[Any, Any, Any], data: CreateTask
) -> Response[TaskCreated]:
    """Order work: a session with a workspace of its own is queued, works on the prompt and delivers the result."""
    place, data = _placed(services.directory, caller, data)
    templates = services.sessions.store.templates
    order = await task_of(templates, place.project, data, given_settings(await request.json()))
    agent = await agent_anywhere(services.runners, order.worker.type)
    wanted, made = (order, ()) if services.settings.webhook_secret is not None else signed(order)
    live, _ = await services.sessions.creation.create(place.project, session_of(wanted, agent), spec_of(wanted))
    view = task_created(live.core.record, live.core.state, made)
    return Response(view, status_code=201, headers={"location": view.links.self})


def _placed(directory: Directory, caller: Scope, task: CreateTask) -> tuple[Scope, CreateTask]:
    """The project that a task names, if the caller may use it; any other word is only what the task calls it."""
    place = directory.within(caller, task.project_id) if task.project_id else None
    if place is not None and place.project != caller.project:
        check(place, "operator")
        task = replace(task, project_id=None)
    place = place or caller
    return place, task if place.tenant == DEFAULT_TENANT else replace(task, tenant_id=place.tenant)


@get("/tasks", operation_id="tasks.list", tags=_TAGS, role="viewer")
async def list_tasks(
    services: Services,
    project: str,
    status: Annotated[str | None, Parameter(description="One status, or several separated by commas.")] = None,
    agent: Annotated[str | None, Parameter(description="Only tasks of this agent.")] = None,
    project_id: Annotated[str | None, QueryParameter(name="projectId", description="Only of this project.")] = None,
    tenant_id: Annotated[str | None, QueryParameter(name="tenantId", description="Only of this tenant.")] = None,
    q: Annotated[str | None, Parameter(description="Text in the title or key.")] = None,
    label: Annotated[str | None, Parameter(description="name=value; several separated by commas.")] = None,
    page: Annotated[int, Parameter(ge=1, le=1_000_000)] = 1,
    per_page: Annotated[int, QueryParameter(name="perPage", ge=1, le=500)] = 20,
) -> Page[Session]:
    """Sessions that tasks started, newest first."""
    wanted = SessionFilter(
        project=project,
        page=page,
        per_page=per_page,
        statuses=statuses_of(status),
        agent=full_name(services.runners, agent),
        project_id=project_id,
        tenant_id=tenant_id,
        labels=labels_of(label),
        text=q,
        only_tasks=True,
    )
    records, total = await services.sessions.store.page_sessions(wanted)
    items = tuple(stored_view(services, record) for record in records)
    following = page + 1 if page * per_page < total else None
    return Page(items=items, page=page, per_page=per_page, total=total, next_page=following)


@get("/tasks/{session:str}", operation_id="tasks.get", tags=_TAGS, role="viewer")
async def get_task(session: str, services: Services, project: str) -> Session:
    """The session that works on a task: the same as `GET /sessions/{id}`."""
    record = await services.sessions.registry.find(project, session)
    return stored_view(services, record)


HANDLERS = (create_task, list_tasks, get_task)
