"""How a session that left its runner begins on another: files and memory from the object store, and what was lost."""

from msgspec.structs import replace

from ostler.link.workspaces import Workspaces
from ostler.server.objects.snapshots import Manifest
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.progress import ProgressLog
from ostler.server.sessions.work.snapshot_uploads import SnapshotUploads
from ostler.wire.provisioning import CreatedWorkspace, WorkspaceOrder
from ostler.wire.workspace_events import SessionMovedData

_NOT_IN_SNAPSHOTS = "files that git ignores, and what the agent did inside .git"


async def made_anew(session: SessionCore, workspaces: Workspaces, order: WorkspaceOrder) -> CreatedWorkspace:
    """The workspace of a session once more, from the same commit."""
    before = session.state.workspace
    if before is not None and before.commit is not None:
        order = replace(order, repo=replace(order.repo, commit=before.commit))
    progress = ProgressLog(session)
    try:
        return await workspaces.create(order, progress.tell)
    finally:
        await progress.close()


async def bring(
    session: SessionCore,
    workspaces: Workspaces,
    uploads: SnapshotUploads | None,
    found: Manifest | None,
    workspace: str | None,
) -> bool:
    """Files and memory as they were uploaded last; says whether there was a memory."""
    if found is None or uploads is None:
        return False
    luggage, state = workspaces.luggage, session.state
    if workspace is not None:
        await laid_out(workspaces, uploads, found, workspace)
        if found.unrecorded is not None:
            await luggage.put_unrecorded(workspace, uploads.pieces(found.unrecorded))
    knows_undone = state.head is not None and found.turn != state.head  # such a memory is none
    is_of_another = found.sequence <= state.agent_since
    if found.memory is None or knows_undone or is_of_another:
        return False
    await luggage.remember(session.record.id, workspace, uploads.pieces(found.memory))
    return True


async def laid_out(workspaces: Workspaces, uploads: SnapshotUploads, found: Manifest, workspace: str) -> None:
    """Make the files of a new workspace those that were uploaded."""
    if found.tree is not None:
        for pack in found.packs:
            await workspaces.luggage.take_in(workspace, uploads.pieces(pack))
        await workspaces.luggage.lay_out(workspace, found.tree)


def moved(session: SessionCore, found: Manifest | None, *, with_memory: bool) -> SessionMovedData:
    """What the log says about a move that is done."""
    record = session.record
    return SessionMovedData(
        from_runner=record.spec.moved_from or "",
        to_runner=record.runner_name,
        reason=record.spec.moved_because,
        lost=tuple(_lost(session, found, with_memory=with_memory)),
        turn=found.turn if found is not None else None,
        native_session_id=found.native_session_id if found is not None and with_memory else None,
    )


def _lost(session: SessionCore, found: Manifest | None, *, with_memory: bool) -> list[str]:
    turns, lost = session.state.turn_count, []
    if session.record.order is None:
        lost.append("the files in its folder, which no snapshot has")
    elif found is None:
        lost.append("all that was done in the files: they begin anew from their source")
    else:
        if session.state.head is not None and found.turn != session.state.head:
            lost.append(f"the rewind of the files, which are those of turn {found.turn}")
        elif found.turn < turns:
            lost.append(f"what was done in the files since the end of turn {found.turn}")
        if found.unrecorded is None:
            lost.append(_NOT_IN_SNAPSHOTS)
    if not with_memory and turns:
        lost.append("the agent's own memory: it is told the conversation")
    elif found is not None and found.turn < turns:
        lost.append(f"what the agent itself remembers since the end of turn {found.turn}")
    return lost
