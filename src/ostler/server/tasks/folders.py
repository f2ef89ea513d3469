"""Where the files of a session are, and how they are named: relative to the folder that its agent works in."""

from ostler.link.workspaces import Workspaces
from ostler.server.sessions.folders import own_folders, relative
from ostler.server.sessions.session import SessionCore
from ostler.server.tasks.states import workspace_of


def place_of(session: SessionCore) -> str:
    """Its workspace, or the folder that its agent works in as it is."""
    if session.record.order is None and session.state.workspace is None:
        return session.record.cwd
    return workspace_of(session)


async def named_by(session: SessionCore, workspaces: Workspaces, path: str) -> str:
    """The path that a client or an agent gave, relative to the session's folder."""
    if not path.startswith("/"):
        return path
    return relative(path, await own_folders(workspaces, session.record, session.state))
