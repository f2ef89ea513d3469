"""The folder that a session's agent works in, and how files are named by it."""

from pathlib import PurePosixPath

from ostler.link.workspaces import Workspaces
from ostler.server.sessions.log.state import SessionState
from ostler.server.store.records import SessionRecord


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
