"""Handing the result of a session over."""

from litestar import post

from ostler.server.api.services import Services
from ostler.server.tasks.handover import hand_over
from ostler.wire.workspace_events import DeliveryCompletedData
from ostler.wire.workspaces import Deliver


@post(
    "/sessions/{session:str}/deliver",
    operation_id="sessions.deliver",
    tags=["workspaces"],
    status_code=200,
    role="operator",
)
async def deliver_session(session: str, services: Services, project: str, data: Deliver) -> DeliveryCompletedData:
    """Hand over what the workspace holds now: as a patch, a branch or a pull request; twice gives one of them."""
    live = await services.sessions.live(project, session)
    return await hand_over(services.workspaces, live, data)


HANDLERS = (deliver_session,)
