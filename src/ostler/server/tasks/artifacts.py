"""The files that an agent's tools wrote: references into the workspace, never copies."""

from urllib.parse import quote

from msgspec.structs import replace

from ostler.base.errors import OstlerError
from ostler.link.workspaces import Workspaces
from ostler.server.sessions.folders import own_folders, relative
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import SessionRecord
from ostler.wire.events import ArtifactCreated, decode_event
from ostler.wire.workspaces import Artifact, ArtifactList

_MOST = 500


async def artifacts_of(sessions: Sessions, workspaces: Workspaces, record: SessionRecord) -> ArtifactList:
    """The newest reference to each file, in the order of their last change."""
    state = sessions.registry.state_of(record)[0]
    folders = await own_folders(workspaces, record, state)
    found: dict[str, Artifact] = {}
    for stored in await sessions.store.logs.artifacts(record.id, _MOST):
        event = decode_event(stored.body)
        if isinstance(event, ArtifactCreated):
            path = relative(event.data.path, folders)
            found.pop(path, None)
            found[path] = _artifact(record.id, path, event)
    place = state.workspace.workspace_id if state.workspace is not None else record.cwd
    return ArtifactList(artifacts=tuple([await _looked_at(workspaces, place, each) for each in found.values()]))


def _artifact(session_id: str, path: str, event: ArtifactCreated) -> Artifact:
    data = event.data
    return Artifact(
        path=path,
        action=data.action,
        artifact_type=data.artifact_type,
        sequence=event.sequence,
        time=event.time,
        content=f"/api/v1/sessions/{session_id}/files/content?path={quote(path, safe='/')}",
        item_id=data.item_id,
    )


async def _looked_at(workspaces: Workspaces, place: str, artifact: Artifact) -> Artifact:
    try:
        entry = await workspaces.files.stat(place, artifact.path)
    except OstlerError:
        return replace(artifact, exists=False)
    return replace(artifact, size=entry.size)
