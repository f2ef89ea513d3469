"""The files of a machine for clients of the daemon API, at /v1/fs: below allowed folders, and what sessions see."""

from typing import Annotated, Any

from litestar import Request, Response, delete, get, post, put
from litestar.params import Parameter, QueryParameter
from litestar.response import Stream

from ostler.server.api.routes.files import MEDIA, PIECE_BYTES, SAFE, rest_of
from ostler.server.api.services import Services
from ostler.server.dialects.daemon.machine_files import (
    DaemonFsEntry,
    DaemonFsMove,
    DaemonFsMoved,
    DaemonFsPath,
    DaemonFsStat,
    DaemonFsUploaded,
    DaemonFsWritten,
    MachineFiles,
    fs_entry,
    fs_stat,
)

_TAGS = ["daemon"]
_MOST_ENTRIES = 10_000
_MOST_SHOWN = 1000
_ABOUT = "A session, by its id: paths may be relative to its folder then, and are those of its machine."
Path = Annotated[
    str, Parameter(description="An absolute path, or one relative to the session's folder.", max_length=4096)
]
Session = Annotated[str | None, QueryParameter(name="sessionId", description=_ABOUT)]
SessionToo = Annotated[str | None, QueryParameter(name="session_id", description=_ABOUT)]


async def _files(services: Services, project: str, session: str | None) -> MachineFiles:
    found = (await services.sessions.registry.live(project, session)).core if session else None
    runner = found.record.runner if found is not None else services.runners.any()
    return MachineFiles(services.runners.workspaces(runner), found)


@get("/v1/fs/entries", operation_id="daemon.fs-list", tags=_TAGS, role="operator", reach="server")
async def list_entries(
    services: Services, project: str, path: Path = "", session: Session = None, session_too: SessionToo = None
) -> Response[list[DaemonFsEntry]]:
    """What is in a folder; without a path what is in the session's, or where one may begin.

    Of more than ten thousand entries the first are told, with the header `Ostler-Truncated: true`.
    """
    files = await _files(services, project, session or session_too)
    if not path and not (session or session_too):
        return Response(await files.roots(_MOST_ENTRIES))
    found = await files.find(path)
    place, inside = found.as_folder
    listing = await found.workspaces.files.list(place, inside, _MOST_ENTRIES)
    near = found._replace(above=found.shown) if inside != found.path else found
    headers = {"ostler-truncated": "true"} if listing.truncated else {}
    return Response([fs_entry(near, entry) for entry in listing.entries], headers=headers)


@get("/v1/fs/stat", operation_id="daemon.fs-stat", tags=_TAGS, role="operator", reach="server")
async def stat(
    services: Services, project: str, path: Path, session: Session = None, session_too: SessionToo = None
) -> DaemonFsStat:
    """What a path is."""
    found = await (await _files(services, project, session or session_too)).find(path)
    return fs_stat(found, await found.workspaces.files.stat(found.place, found.path))


@get("/v1/fs/file", operation_id="daemon.fs-read", tags=_TAGS, media_type=MEDIA, role="operator", reach="server")
async def read_file(
    services: Services, project: str, path: Path, session: Session = None, session_too: SessionToo = None
) -> Stream:
    """The content of a file."""
    found = await (await _files(services, project, session or session_too)).find(path)
    files = found.workspaces.files
    first = await files.read(found.place, found.path, offset=0, length=PIECE_BYTES)
    headers = {**SAFE, "content-length": str(first.size)}
    return Stream(rest_of(files, found.place, first, first.size), media_type=MEDIA, headers=headers)


@put("/v1/fs/file", operation_id="daemon.fs-write", tags=_TAGS, status_code=200, role="operator", reach="server")
async def write_file(
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    path: Path,
    session: Session = None,
    session_too: SessionToo = None,
) -> DaemonFsWritten:
    """Write a file whole; the body is its content, and folders are made."""
    found = await (await _files(services, project, session or session_too)).find(path)
    content = await request.body()
    await found.workspaces.files.write(found.place, found.path, content, executable=None)
    return DaemonFsWritten(path=found.shown, bytes_written=len(content))


@delete("/v1/fs/entry", operation_id="daemon.fs-remove", tags=_TAGS, status_code=200, role="operator", reach="server")
async def remove_entry(
    services: Services,
    project: str,
    path: Path,
    recursive: Annotated[bool, Parameter(description="Whether all below a folder goes too.")] = False,
    session: Session = None,
    session_too: SessionToo = None,
) -> DaemonFsPath:
    """Remove a file or a folder."""
    found = await (await _files(services, project, session or session_too)).find(path, whole=True)
    await found.workspaces.files.remove(found.place, found.path, recursive=recursive)
    return DaemonFsPath(path=found.shown)


@post("/v1/fs/mkdir", operation_id="daemon.fs-mkdir", tags=_TAGS, status_code=200, role="operator", reach="server")
async def make_folder(
    services: Services, project: str, path: Path, session: Session = None, session_too: SessionToo = None
) -> DaemonFsPath:
    """Make a folder and those above it."""
    found = await (await _files(services, project, session or session_too)).find(path)
    await found.workspaces.files.make_folder(found.place, found.path)
    return DaemonFsPath(path=found.shown)


@post("/v1/fs/move", operation_id="daemon.fs-move", tags=_TAGS, status_code=200, role="operator", reach="server")
async def move_entry(
    services: Services,
    project: str,
    data: DaemonFsMove,
    session: Session = None,
    session_too: SessionToo = None,
) -> DaemonFsMoved:
    """Give a file or folder another name."""
    found, to = await (await _files(services, project, session or session_too)).find_both(data.source, data.to)
    await found.workspaces.files.move(found.place, found.path, to, overwrite=data.overwrite or False)
    return DaemonFsMoved(source=found.shown, to=found.absolute(to))


@post(
    "/v1/fs/upload-batch",
    operation_id="daemon.fs-upload",
    tags=_TAGS,
    status_code=200,
    role="operator",
    reach="server",
)
async def upload_batch(
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    path: Path = "",
    session: Session = None,
    session_too: SessionToo = None,
) -> DaemonFsUploaded:
    """Lay a tar archive, the body, out in a folder over what is there; one that is refused changes nothing."""
    found = await (await _files(services, project, session or session_too)).find(path)
    upload = await found.workspaces.upload(request.stream())
    made = await found.workspaces.files.unpack(found.place, found.path, upload.id, _MOST_SHOWN)
    paths = tuple(f"{found.shown.rstrip('/')}/{name}" for name in made.paths)
    return DaemonFsUploaded(paths=paths, truncated=made.truncated)


HANDLERS = (list_entries, stat, read_file, write_file, remove_entry, make_folder, move_entry, upload_batch)
