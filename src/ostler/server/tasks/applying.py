"""Bringing a file, or a piece of one, into the folder that a workspace was made from; the rest may follow later."""

from ostler.base.errors import InvalidRequest, SessionBusy
from ostler.link.workspaces import Workspaces
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.work.chores import REQUEST_SECONDS
from ostler.server.sessions.work.delivery import folder_of, repo_of
from ostler.server.tasks.delivery_plan import DeliveryPlans
from ostler.server.tasks.states import workspace_of
from ostler.wire.delivery import DeliverSession
from ostler.wire.workspaces import AppliedChanges, ApplyChanges


async def apply_changes(workspaces: Workspaces, live: LiveSession, wanted: ApplyChanges) -> AppliedChanges:
    """While the agent has nothing to do; what people have changed there is never overwritten."""
    session, workspace = live.core, workspace_of(live.core)
    await DeliveryPlans(workspaces, session).filled(DeliverSession(mode="local"))  # which says why not
    folder = folder_of(repo_of(session)) or ""
    if wanted.lines is not None and len(wanted.paths) != 1:
        why = "lines are those of one file"
        raise InvalidRequest(reason=f"lines: {why}. Name it in `paths`.", errors={"lines": [why]})

    async def applied() -> tuple[str, ...]:
        if session.state.turn is not None:
            raise SessionBusy(session=session.id, turn=session.state.turn.turn_id)
        return await workspaces.apply_part(workspace, folder=folder, paths=wanted.paths, lines=wanted.lines)

    await live.chores.do(patience=REQUEST_SECONDS)
    paths = await live.chores.alone(applied, patience=REQUEST_SECONDS)
    await live.turns.go_on()
    return AppliedChanges(folder=folder, paths=paths)
