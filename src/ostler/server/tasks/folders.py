"""Where the files of a session are, and how they are named: relative to the folder that its agent works in."""

from ostler.link.workspaces import Workspaces
from ostler.server.sessions.folders import own_folders, relative
from ostler.server.sessions.live import LiveSession
from ostler.server.tasks.states import workspace_of


def place_of(live: LiveSession) -> str:
    """Its workspace, or the folder that its agent works in as it is."""
    if live.record.order is None and live.state.workspace is None:
        return live.record.cwd
    return workspace_of(live)


async def named_by(live: LiveSession, workspaces: Workspaces, path: str) -> str:
    """The path that a client or an agent gave, relative to the session's folder."""
    if not path.startswith("/"):
        return path
    return relative(path, await own_folders(workspaces, live.record, live.state))
