"""Where a session's workspace is, and how to open it in an editor."""

from litestar import get, post

from ostler.server.api.services import Services
from ostler.server.tasks.editors import open_commands
from ostler.server.tasks.states import workspace_of
from ostler.wire.workspaces import IdeCommands, MountPaths, OpenIde, WorkspaceInfo

_TAGS = ["workspaces"]


@get("/sessions/{session:str}/workspace", operation_id="sessions.workspace", tags=_TAGS, role="viewer")
async def show_workspace(session: str, services: Services, project: str) -> WorkspaceInfo:
    """Where the workspace is on the host and in a container, and what made it."""
    live = await services.sessions.registry.live(project, session)
    workspace, workspaces = workspace_of(live.core), services.runners.workspaces(live.core.record.runner)
    made = await workspaces.get(workspace)
    container = await workspaces.devcontainer(made.id)
    inside = container.workspace_folder if container is not None else None
    return WorkspaceInfo(
        session_id=live.core.id,
        workspace=made,
        provider=made.provider,
        mount_paths=MountPaths(host=made.path, container=inside),
        host=live.core.record.runner_name,
        devcontainer=container,
    )


@post(
    "/sessions/{session:str}/open/ide", operation_id="sessions.open-ide", tags=_TAGS, status_code=200, role="operator"
)
async def open_ide(session: str, services: Services, project: str, data: OpenIde) -> IdeCommands:
    """The commands that open the workspace in an editor; nothing is started here."""
    live = await services.sessions.registry.live(project, session)
    workspace, workspaces = workspace_of(live.core), services.runners.workspaces(live.core.record.runner)
    made = await workspaces.get(workspace)
    entry = await workspaces.entry(workspace)
    return open_commands(data.ide, made, entry, await workspaces.devcontainer(workspace))


HANDLERS = (show_workspace, open_ide)
