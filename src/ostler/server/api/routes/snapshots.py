"""Snapshots of a session's workspace, and what changed between them."""

from typing import Annotated

from litestar import get
from litestar.params import Parameter
from litestar.response import Stream

from ostler.server.api.services import Services
from ostler.server.tasks.states import BASE, NOW, between, workspace_of
from ostler.wire.workspaces import Difference, SnapshotList

_TAGS = ["workspaces"]
_STATE = "`base`, `now` or the id of a snapshot."
Old = Annotated[str, Parameter(description=f"Where to begin: {_STATE}", max_length=100)]
New = Annotated[str, Parameter(description=f"Where to end: {_STATE}", max_length=100)]
OfTurn = Annotated[int | None, Parameter(ge=0, description="Only what this turn changed, instead of `old` and `new`.")]


@get("/sessions/{session:str}/snapshots", operation_id="sessions.snapshots", tags=_TAGS)
async def list_snapshots(session: str, services: Services, project: str) -> SnapshotList:
    """What was kept of the workspace: its beginning, and its state after every turn."""
    live = await services.sessions.live(project, session)
    workspace_of(live)
    return SnapshotList(snapshots=tuple(await services.sessions.snapshots(live.id)))


@get("/sessions/{session:str}/diff", operation_id="sessions.diff", tags=_TAGS)
async def show_diff(
    session: str,
    services: Services,
    project: str,
    old: Old = BASE,
    new: New = NOW,
    turn: OfTurn = None,
    context: Annotated[int, Parameter(ge=0, le=100, description="Unchanged lines around a change.")] = 3,
    summary: Annotated[bool, Parameter(description="Only names and numbers, no text.")] = False,
) -> Difference:
    """The changed files with their unified diffs: since the beginning, between two states, or of one turn."""
    live = await services.sessions.live(project, session)
    workspace = workspace_of(live)
    first, last = between(live.id, await services.sessions.snapshots(live.id), turn, old, new)
    return await services.workspaces.diff(workspace, old=first, new=last, context=context, text=not summary)


@get("/sessions/{session:str}/patch", operation_id="sessions.patch", tags=_TAGS, media_type="text/x-diff")
async def show_patch(
    session: str, services: Services, project: str, old: Old = BASE, new: New = NOW, turn: OfTurn = None
) -> Stream:
    """The changes as a patch that `git apply` takes; never cut, and empty if there are none."""
    live = await services.sessions.live(project, session)
    workspace = workspace_of(live)
    first, last = between(live.id, await services.sessions.snapshots(live.id), turn, old, new)
    size, pieces = await services.workspaces.patch(workspace, old=first, new=last)
    name = f'attachment; filename="{live.id}.patch"'
    headers = {"content-length": str(size), "content-disposition": name}
    return Stream(pieces, media_type="text/x-diff", headers=headers)


HANDLERS = (list_snapshots, show_diff, show_patch)
