"""Snapshots of a session's workspace: what changed between them, and the ways back to them."""

from typing import Annotated

from litestar import Response, get, post
from litestar.params import Parameter
from litestar.response import Stream

from ostler.base.casing import shown_as
from ostler.base.errors import Unprocessable
from ostler.server.api.services import Services
from ostler.server.api.views import live_view
from ostler.server.sessions.session import SessionCore
from ostler.server.tasks.applying import apply_changes
from ostler.server.tasks.rewind_and_fork import RewindAndFork
from ostler.server.tasks.states import BASE, NOW, between, workspace_of
from ostler.server.tasks.undoing import Undoing
from ostler.wire.sessions import Session, SnapshotList, SnapshotView
from ostler.wire.workspaces import (
    AppliedChanges,
    ApplyChanges,
    Difference,
    ForkSession,
    MadeRepository,
    RewindSession,
    Undone,
    UndoTurn,
)

_TAGS = ["workspaces"]
_STATE = "`base`, `now` or the id of a snapshot."
Old = Annotated[str, Parameter(description=f"Where to begin: {_STATE}", max_length=100)]
New = Annotated[str, Parameter(description=f"Where to end: {_STATE}", max_length=100)]
OfTurn = Annotated[
    int | None, Parameter(ge=1, le=1_000_000, description="Only what this turn changed, instead of `old` and `new`.")
]


@get("/sessions/{session:str}/snapshots", operation_id="sessions.snapshots", tags=_TAGS, role="viewer")
async def list_snapshots(session: str, services: Services, project: str) -> SnapshotList:
    """What was kept of the workspace: its beginning, and its state after every turn."""
    live = await services.sessions.registry.live(project, session)
    workspace_of(live.core)
    found = await services.sessions.store.logs.snapshots(live.core.id)
    return SnapshotList(snapshots=tuple(shown_as(SnapshotView, each) for each in found))


async def _states(services: Services, session: SessionCore, turn: int | None, old: str, new: str) -> tuple[str, str]:
    snapshots = await services.sessions.store.logs.snapshots(session.id)
    return between(session.id, snapshots, await services.sessions.store.logs.turns(session.id), turn, old, new)


@get("/sessions/{session:str}/diff", operation_id="sessions.diff", tags=_TAGS, role="viewer")
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
    live = await services.sessions.registry.live(project, session)
    workspace_of(live.core)
    first, last = await _states(services, live.core, turn, old, new)
    reach = await services.stored_files.of(live)
    return await reach.workspaces.files.diff(
        reach.place, old=reach.state(first), new=reach.state(last), context=context, text=not summary
    )


@get(
    "/sessions/{session:str}/patch", operation_id="sessions.patch", tags=_TAGS, media_type="text/x-diff", role="viewer"
)
async def show_patch(
    session: str, services: Services, project: str, old: Old = BASE, new: New = NOW, turn: OfTurn = None
) -> Stream:
    """The changes as a patch that `git apply` takes; never cut, and empty if there are none."""
    live = await services.sessions.registry.live(project, session)
    workspace_of(live.core)
    first, last = await _states(services, live.core, turn, old, new)
    reach = await services.stored_files.of(live)
    patch = await reach.workspaces.files.patch(reach.place, old=reach.state(first), new=reach.state(last))
    name = f'attachment; filename="{live.core.id}.patch"'
    headers = {"content-length": str(patch.size), "content-disposition": name}
    return Stream(patch.pieces, media_type="text/x-diff", headers=headers)


@post("/sessions/{session:str}/rewind", operation_id="sessions.rewind", tags=_TAGS, status_code=200, role="operator")
async def rewind_session(session: str, services: Services, project: str, data: RewindSession) -> Session:
    """Go back to the end of a turn: files, conversation and the agent's memory; later turns no longer count."""
    live = await services.sessions.registry.live(project, session)
    await RewindAndFork(services.sessions, services.runners).rewind(live, data.turn)
    return live_view(live)


@post(
    "/sessions/{session:str}/snapshots/{snapshot:str}/restore",
    operation_id="sessions.restore",
    tags=_TAGS,
    status_code=200,
    role="operator",
)
async def restore_snapshot(session: str, snapshot: str, services: Services, project: str) -> Session:
    """Put the files back to a snapshot; the conversation and the agent's memory stay as they are."""
    live = await services.sessions.registry.live(project, session)
    await RewindAndFork(services.sessions, services.runners).restore(live, snapshot)
    return live_view(live)


@post("/sessions/{session:str}/undo", operation_id="sessions.undo", tags=_TAGS, status_code=200, role="operator")
async def undo_turn(session: str, services: Services, project: str, data: UndoTurn) -> Undone:
    """Take back what a turn changed in the files; the conversation, and what was changed since, stay."""
    live = await services.sessions.registry.live(project, session)
    return await Undoing(services.sessions, services.runners.workspaces(live.core.record.runner), live).undo(data)


@post("/sessions/{session:str}/apply", operation_id="sessions.apply", tags=_TAGS, status_code=200, role="operator")
async def apply_part(session: str, services: Services, project: str, data: ApplyChanges) -> AppliedChanges:
    """Bring files, or lines of one, into the folder that the workspace was made from; the rest may follow later."""
    live = await services.sessions.registry.live(project, session)
    return await apply_changes(services.runners.workspaces(live.core.record.runner), live, data)


@post("/sessions/{session:str}/git", operation_id="sessions.init-git", tags=_TAGS, role="operator")
async def init_git(session: str, services: Services, project: str) -> MadeRepository:
    """Make the session's own folder a git repository with a commit of what is there, for sessions that begin later."""
    record = (await services.sessions.registry.live(project, session)).core.record
    if not record.is_in_place:
        hint = "Only a folder of your own becomes a repository."
        raise Unprocessable(reason=f"Session {record.id} works in a folder that Ostler made. {hint}")
    return await services.runners.workspaces(record.runner).make_repository(record.cwd)


@post("/sessions/{session:str}/fork", operation_id="sessions.fork", tags=_TAGS, role="operator")
async def fork_session(
    session: str, services: Services, project: str, data: ForkSession | None = None
) -> Response[Session]:
    """A new session that begins as this one was at the end of a turn; this one stays as it is."""
    live = await services.sessions.registry.live(project, session)
    forked = await RewindAndFork(services.sessions, services.runners).fork(live, data or ForkSession())
    view = live_view(forked)
    return Response(view, status_code=201, headers={"location": view.links["self"]})


HANDLERS = (
    list_snapshots,
    show_diff,
    show_patch,
    rewind_session,
    restore_snapshot,
    undo_turn,
    apply_part,
    init_git,
    fork_session,
)
