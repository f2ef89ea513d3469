"""The files that an agent's tools wrote: references into the workspace, never copies."""

from urllib.parse import quote

from msgspec.structs import replace

from ostler.base.errors import OstlerError
from ostler.link.workspaces import Workspaces
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import SessionRecord
from ostler.wire.events import ArtifactCreated, decode_event
from ostler.wire.workspaces import Artifact, ArtifactList

_MOST = 500


async def artifacts_of(sessions: Sessions, workspaces: Workspaces, record: SessionRecord) -> ArtifactList:
    """The newest reference to each file, in the order of their last change."""
    events = [decode_event(stored.body) for stored in await sessions.artifacts(record.id, _MOST)]
    newest = [_artifact(record.id, event) for event in events if isinstance(event, ArtifactCreated)]
    made = sessions.state_of(record)[0].workspace
    if made is None:
        return ArtifactList(artifacts=tuple(newest))
    return ArtifactList(artifacts=tuple([await _looked_at(workspaces, made.workspace_id, each) for each in newest]))


def _artifact(session_id: str, event: ArtifactCreated) -> Artifact:
    data = event.data
    return Artifact(
        path=data.path,
        action=data.action,
        artifact_type=data.artifact_type,
        sequence=event.sequence,
        time=event.time,
        content=f"/api/v1/sessions/{session_id}/files/content?path={quote(data.path, safe='/')}",
        item_id=data.item_id,
    )


async def _looked_at(workspaces: Workspaces, workspace: str, artifact: Artifact) -> Artifact:
    try:
        entry = await workspaces.stat_file(workspace, artifact.path)
    except OstlerError:
        return replace(artifact, exists=False)
    return replace(artifact, size=entry.size)
