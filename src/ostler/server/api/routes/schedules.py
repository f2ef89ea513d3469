"""Schedules: tasks that begin by the clock."""

from litestar import Response, delete, get, patch, post

from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.services import Services
from ostler.server.api.views import API
from ostler.server.templates.service import found
from ostler.wire.schedules import EditSchedule, NewSchedule, Schedule, ScheduleList, ScheduleRun, ScheduleRuns

_TAGS = ["schedules"]


@get("/schedules", operation_id="schedules.list", tags=_TAGS, role="viewer")
async def list_schedules(services: Services, project: str) -> ScheduleList:
    """All schedules, by name, with their next times."""
    return ScheduleList(items=await services.schedules.all(project))


@post(
    "/schedules",
    operation_id="schedules.create",
    tags=_TAGS,
    role="operator",
    answers={"201": answer("The new schedule.", {JSON: "Schedule"}, ("Location", "Where it is."))},
)
async def create_schedule(services: Services, project: str, data: NewSchedule) -> Response[Schedule]:
    """Begin a task of a template again and again, or once at a time."""
    await found(services.sessions.store.templates, project, data.template)
    made = await services.schedules.add(project, data)
    return Response(made, status_code=201, headers={"location": f"{API}/schedules/{made.id}"})


@get("/schedules/{schedule:str}", operation_id="schedules.show", tags=_TAGS, role="viewer")
async def show_schedule(services: Services, project: str, schedule: str) -> Schedule:
    """One schedule, by id or name."""
    return await services.schedules.one(project, schedule)


@patch("/schedules/{schedule:str}", operation_id="schedules.edit", tags=_TAGS, role="operator")
async def edit_schedule(services: Services, project: str, schedule: str, data: EditSchedule) -> Schedule:
    """Change a schedule, pause it or let it go on; what is not given stays, and nothing is caught up."""
    if data.template is not None:
        await found(services.sessions.store.templates, project, data.template)
    return await services.schedules.edit(project, schedule, data)


@delete("/schedules/{schedule:str}", operation_id="schedules.remove", tags=_TAGS, role="operator")
async def remove_schedule(services: Services, project: str, schedule: str) -> None:
    """Forget a schedule; tasks that it began go on."""
    await services.schedules.remove(project, schedule)


@post("/schedules/{schedule:str}/run", operation_id="schedules.run", tags=_TAGS, status_code=200, role="operator")
async def run_schedule(services: Services, project: str, schedule: str) -> ScheduleRun:
    """Begin its task now, also while it is paused; its next times stay as they are."""
    run = await services.schedules.run_now(project, schedule)
    services.engine.wake()
    return run


@get("/schedules/{schedule:str}/runs", operation_id="schedules.runs", tags=_TAGS, role="viewer")
async def list_schedule_runs(services: Services, project: str, schedule: str) -> ScheduleRuns:
    """The last 50 times of a schedule and what became of each, the newest first."""
    return ScheduleRuns(items=await services.schedules.runs(project, schedule))


HANDLERS = (
    list_schedules,
    create_schedule,
    show_schedule,
    edit_schedule,
    remove_schedule,
    run_schedule,
    list_schedule_runs,
)
