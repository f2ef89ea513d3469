"""Files as the daemon API names them: by absolute paths of a machine, or as a session sees them."""

from typing import Literal, NamedTuple

from ostler.base.errors import InvalidRequest
from ostler.link.workspaces import EXACTLY, Workspaces
from ostler.server.sessions.folders import own_folders, relative
from ostler.server.sessions.session import SessionCore
from ostler.wire.provisioning import MachinePath
from ostler.wire.struct import Request, Wire
from ostler.wire.workspaces import FileEntry


class DaemonFsEntry(Wire, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """A file or folder; what a link points to is not looked at."""

    name: str
    path: str
    entry_type: Literal["file", "directory"]
    size: int
    modified: str | None = None


class DaemonFsStat(Wire, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """What a path is."""

    path: str
    entry_type: Literal["file", "directory"]
    size: int
    modified: str | None = None


class DaemonFsPath(Wire, frozen=True, kw_only=True):
    """What was made or removed."""

    path: str


class DaemonFsWritten(Wire, frozen=True, kw_only=True, rename="camel"):
    """A file that was written whole."""

    path: str
    bytes_written: int


class DaemonFsMove(Request, frozen=True, kw_only=True, rename={"source": "from"}):
    """Give a file or folder another name."""

    source: str
    to: str
    overwrite: bool | None = None
    """Whether a file that is there goes; a folder only if it is empty."""


class DaemonFsMoved(Wire, frozen=True, kw_only=True, rename={"source": "from"}):
    """Where it was, and where it is."""

    source: str
    to: str


class DaemonFsUploaded(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """The files of an archive, where they lie now; the first thousand."""

    paths: tuple[str, ...]
    truncated: bool


class Place(NamedTuple):
    """Something that has a name: the place of the link that it lies in, its path there, and what clients call that."""

    workspaces: Workspaces
    place: str
    path: str
    above: str
    """The absolute path of the place."""

    def absolute(self, path: str) -> str:
        """What clients call a path of the place."""
        return f"{self.above.rstrip('/')}/{path}".rstrip("/") or "/"

    @property
    def shown(self) -> str:
        """What clients call it."""
        return self.absolute(self.path)

    @property
    def as_folder(self) -> tuple[str, str]:
        """Place and path for what is in it: a folder that something is mounted on can only be a place itself."""
        exact = self.place.startswith(EXACTLY * 2)
        return (f"{EXACTLY}{self.shown}", "") if exact else (self.place, self.path)


class MachineFiles:
    """Finds what a client of the daemon API names: on the machine of a session, or on one that may have sessions."""

    def __init__(self, workspaces: Workspaces, session: SessionCore | None) -> None:
        """`workspaces` are those of the session's runner, or of any."""
        self._session = session
        self._workspaces = workspaces

    async def roots(self, limit: int) -> list[DaemonFsEntry]:
        """Where a client without a session may begin."""
        found = await self._workspaces.folders("", limit)
        return [DaemonFsEntry(name=each.name, path=each.path, entry_type="directory", size=0) for each in found.folders]

    async def first_root(self) -> str:
        """Where a command begins that names no folder; that may be a home, though sessions are below it only."""
        found = await self._workspaces.folders("", 1)
        if not found.path and not found.folders:
            reason = "name a folder; there is none that could be meant"
            raise InvalidRequest(reason=f"cwd: {reason}.", errors={"cwd": [reason]})
        return found.folders[0].path if not found.path else found.path

    async def find(self, path: str, *, whole: bool = False) -> Place:
        """What a path names; raises if nobody may use that, with `whole` if it has to stay where it is."""
        folders: tuple[str, ...] = ()
        if self._session is not None:
            folders = await own_folders(self._workspaces, self._session.record, self._session.state)
            made = self._session.state.workspace
            inside = relative(path, folders)
            if made is not None and not inside.startswith("/"):
                return Place(self._workspaces, made.workspace_id, inside, made.path)
            path = path if path.startswith("/") else f"{folders[0]}/{path}"
        elif not path.startswith("/"):
            reason = f"'{path[:200]}' is not absolute; without a sessionId give an absolute path"
            raise InvalidRequest(reason=f"path: {reason}.", errors={"path": [reason]})
        return _exactly(self._workspaces, await self._workspaces.allowed_path(path, folders, whole=whole))

    async def find_both(self, path: str, to: str) -> tuple[Place, str]:
        """Two names of one place, the second by its path there."""
        one, other = await self.find(path, whole=True), await self.find(to, whole=True)
        if one.place == other.place:
            return one, other.path
        if not (one.place.startswith(EXACTLY * 2) and other.place.startswith(EXACTLY * 2)):
            raise InvalidRequest(reason="to: nothing can be moved into a session's workspace or out of it.")
        above = _common(one.above, other.above)
        near = MachinePath(folder=above, path=one.shown.removeprefix(above).lstrip("/"))
        return _exactly(self._workspaces, near), other.shown.removeprefix(above).lstrip("/")


def _common(one: str, other: str) -> str:
    parts = []
    for first, second in zip(one.split("/"), other.split("/"), strict=False):
        if first != second:
            break
        parts.append(first)
    return "/".join(parts) or "/"


def _exactly(workspaces: Workspaces, found: MachinePath) -> Place:
    return Place(workspaces, f"{EXACTLY}{found.folder}", found.path, found.folder)


def fs_entry(place: Place, entry: FileEntry) -> DaemonFsEntry:
    """A name as the daemon API shows it."""
    shown = place.absolute(entry.path)
    return DaemonFsEntry(
        name=shown.rpartition("/")[2], path=shown, entry_type=_kind(entry), size=entry.size, modified=entry.modified_at
    )


def fs_stat(place: Place, entry: FileEntry) -> DaemonFsStat:
    """What a path is, as the daemon API shows it."""
    shown = place.absolute(entry.path)
    return DaemonFsStat(path=shown, entry_type=_kind(entry), size=entry.size, modified=entry.modified_at)


def _kind(entry: FileEntry) -> Literal["file", "directory"]:
    return "directory" if entry.kind == "folder" else "file"
