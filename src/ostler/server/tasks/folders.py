"""Where the files of a session are, and how they are named: relative to the folder that its agent works in."""

from pathlib import PurePosixPath

from ostler.link.workspaces import Workspaces
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.state import SessionState
from ostler.server.store.records import SessionRecord
from ostler.server.tasks.states import workspace_of


def place_of(live: LiveSession) -> str:
    """Its workspace, or the folder that its agent works in as it is."""
    if live.record.order is None and live.state.workspace is None:
        return live.record.cwd
    return workspace_of(live)


async def own_folders(workspaces: Workspaces, record: SessionRecord, state: SessionState) -> tuple[str, ...]:
    """The names that an agent may know its folder by."""
    if state.workspace is None:
        return (record.cwd,)
    container = await workspaces.devcontainer(state.workspace.workspace_id)
    return (state.workspace.path, *((container.workspace_folder,) if container is not None else ()))


def relative(path: str, folders: tuple[str, ...]) -> str:
    """A path as an agent names it, relative to its folder; one that is elsewhere stays as it is, and is refused."""
    named = PurePosixPath(path)
    for folder in folders:
        if named.is_relative_to(folder) and ".." not in named.parts:
            return "/".join(named.relative_to(folder).parts)
    return path


async def named_by(live: LiveSession, workspaces: Workspaces, path: str) -> str:
    """The path that a client or an agent gave, relative to the session's folder."""
    if not path.startswith("/"):
        return path
    return relative(path, await own_folders(workspaces, live.record, live.state))
