"""Handing the result of a session over."""

from litestar import get, post

from ostler.base.casing import shown_as
from ostler.server.api.services import Services
from ostler.server.api.views import live_view
from ostler.server.tasks.deliver_now import deliver_now
from ostler.server.tasks.delivery_plan import DeliveryPlans
from ostler.server.tasks.pull_request_looks import is_open
from ostler.server.tasks.pull_requests import merge, refresh
from ostler.wire.delivery import DeliverSession, DeliveryPlan
from ostler.wire.sessions import Session
from ostler.wire.tasks import Delivered

_TAGS = ["workspaces"]


@get("/sessions/{session:str}/delivery", operation_id="sessions.delivery", tags=_TAGS, role="viewer")
async def plan_delivery(session: str, services: Services, project: str) -> DeliveryPlan:
    """What a delivery would be if nothing else is said, and what became of the last one and its pull request."""
    live = await services.sessions.registry.live(project, session)
    workspaces = services.runners.workspaces(live.core.record.runner)
    await refresh(workspaces, live.core)
    if is_open(live.core.state):
        services.pull_requests.watch(live.core)
    return await DeliveryPlans(workspaces, live.core).plan()


@post("/sessions/{session:str}/deliver", operation_id="sessions.deliver", tags=_TAGS, status_code=200, role="operator")
async def deliver_session(
    session: str, services: Services, project: str, data: DeliverSession | None = None
) -> Delivered:
    """Hand over what the workspace holds now: as a pull request, into the local checkout, as a branch or a patch.

    Doing it again brings the same branch and pull request up to date.
    """
    live = await services.sessions.registry.live(project, session)
    workspaces = services.runners.workspaces(live.core.record.runner)
    used, wanted = services.runners.secrets_used, data or DeliverSession()
    done = await deliver_now(services.sessions, workspaces, live, wanted, used)
    services.pull_requests.watch(live.core)
    return shown_as(Delivered, done)


@post("/sessions/{session:str}/merge", operation_id="sessions.merge", tags=_TAGS, status_code=200, role="operator")
async def merge_session(session: str, services: Services, project: str) -> Session:
    """Have the forge merge the session's pull request, if it allows that."""
    live = await services.sessions.registry.live(project, session)
    await merge(services.runners.workspaces(live.core.record.runner), live.core)
    return live_view(live)


HANDLERS = (plan_delivery, deliver_session, merge_session)
