"""Handing the result of a session over."""

import msgspec
from litestar import post

from ostler.server.api.services import Services
from ostler.server.tasks.deliver_now import deliver_now
from ostler.server.tasks.views import shown_as
from ostler.wire.tasks import Delivered, TaskDelivery
from ostler.wire.workspaces import Deliver


@post(
    "/sessions/{session:str}/deliver",
    operation_id="sessions.deliver",
    tags=["workspaces"],
    status_code=200,
    role="operator",
)
async def deliver_session(session: str, services: Services, project: str, data: TaskDelivery) -> Delivered:
    """Hand over what the workspace holds now: as a patch, a branch or a pull request; twice gives one of them."""
    live = await services.sessions.live(project, session)
    wanted = msgspec.convert(data, Deliver, from_attributes=True)
    return shown_as(Delivered, await deliver_now(services.runners.workspaces(live.record.runner), live, wanted))


HANDLERS = (deliver_session,)
