"""Puts the files of a snapshot back, and tells how much they differ from the beginning."""

import asyncio

from ostler.base.errors import OstlerError, WorkspaceBusy
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.link.workspaces import Workspaces
from ostler.wire.sessions import MOST_COUNTED_FILES
from ostler.wire.workspace_events import RestoredChanges, WorkspaceRestoredData

log = Log(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 0.5
_LEAVE_SECONDS = 5.0


async def put_back(
    workspaces: Workspaces, workspace: str, snapshot: str, *, session: str, with_memory: bool
) -> WorkspaceRestoredData:
    """Restore, and try again while the last processes of an agent that was ended leave the workspace."""
    pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE, within=_LEAVE_SECONDS)
    while True:
        try:
            await workspaces.restore(workspace, snapshot, session=session, with_memory=with_memory)
            break
        except WorkspaceBusy:
            if (pause := next(pauses, None)) is None:
                raise
            await asyncio.sleep(pause)
    changes = await _changes(workspaces, workspace, snapshot)
    return WorkspaceRestoredData(workspace_id=workspace, snapshot_id=snapshot, changes=changes)


async def _changes(workspaces: Workspaces, workspace: str, snapshot: str) -> RestoredChanges | None:
    try:
        found = await workspaces.files.diff(workspace, old="base", new=snapshot, context=0, text=False)
    except OstlerError as error:  # the files are back, which is what was wanted
        log.warning("restored.uncounted", workspace=workspace, snapshot=snapshot, error=str(error))
        return None
    paths = tuple(file.path for file in found.files[:MOST_COUNTED_FILES])
    return RestoredChanges(
        files=min(found.files_changed, MOST_COUNTED_FILES), added=found.added, removed=found.removed, paths=paths
    )
