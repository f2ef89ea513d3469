"""The files of a session, as its agent sees them; those of a plain folder can be read but not changed."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, NamedTuple

from litestar import Request, delete, get, put
from litestar.params import Parameter, QueryParameter
from litestar.response import Response, Stream

from ostler.base.errors import RangeNotSatisfiable
from ostler.link.workspaces import Files
from ostler.server.api.services import Services
from ostler.server.tasks.artifacts import artifacts_of
from ostler.server.tasks.folders import named_by
from ostler.server.tasks.pictures import picture_of
from ostler.server.tasks.states import workspace_of
from ostler.wire.provisioning import FileContent, FileQuery
from ostler.wire.workspaces import ArchiveForm, ArtifactList, FileEntry, FileListing, FileMatches, FilePaths

_TAGS = ["files"]
MEDIA = "application/octet-stream"
PIECE_BYTES = 2**20
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_SANDBOXED = {"x-content-type-options": "nosniff", "content-security-policy": "sandbox"}
SAFE = {**_SANDBOXED, "accept-ranges": "bytes"}
"""What an agent wrote must never run in a browser as if it were ours."""
FilePath = Annotated[
    str, Parameter(description="Relative to the session's folder, such as src/main.py.", max_length=4000)
]


class Found(NamedTuple):
    """Where the files of a session are, and a path there."""

    files: Files
    place: str
    path: str


async def _found(services: Services, project: str, session: str, path: str) -> Found:
    """For who reads: a copy will do while the session's runner is away."""
    reach = await services.stored_files.of(await services.sessions.registry.live(project, session))
    return Found(reach.workspaces.files, reach.place, await reach.named(path))


async def _own(services: Services, project: str, session: str, path: str) -> Found:
    """Where the session is, which must have a workspace: its files may be changed."""
    live = await services.sessions.registry.live(project, session)
    workspace, workspaces = workspace_of(live.core), services.runners.workspaces(live.core.record.runner)
    return Found(workspaces.files, workspace, await named_by(live.core, workspaces, path))


@get("/sessions/{session:str}/files", operation_id="files.list", tags=_TAGS, role="viewer")
async def list_files(
    session: str,
    services: Services,
    project: str,
    path: FilePath = "",
    limit: Annotated[int, Parameter(ge=1, le=10_000)] = 1000,
) -> FileListing:
    """What is in a folder."""
    files, place, path = await _found(services, project, session, path)
    return await files.list(place, path, limit)


@get("/sessions/{session:str}/files/stat", operation_id="files.stat", tags=_TAGS, role="viewer")
async def stat_file(session: str, services: Services, project: str, path: FilePath) -> FileEntry:
    """What a name is."""
    files, place, path = await _found(services, project, session, path)
    return await files.stat(place, path)


@get("/sessions/{session:str}/files/content", operation_id="files.read", tags=_TAGS, media_type=MEDIA, role="viewer")
async def read_file(
    session: str, services: Services, project: str, request: Request[Any, Any, Any], path: FilePath
) -> Stream:
    """The content of a file, or with a `Range` header a piece of it."""
    files, workspace, path = await _found(services, project, session, path)
    wanted = _RANGE.fullmatch(request.headers.get("range", "").strip())
    first = await files.read(workspace, path, offset=0, length=0 if wanted else PIECE_BYTES)
    if wanted is None or not any(wanted.groups()):
        headers = {**SAFE, "content-length": str(first.size)}
        return Stream(rest_of(files, workspace, first, first.size), media_type=MEDIA, headers=headers)
    begin, end = _span(wanted, first.size)
    piece = await files.read(workspace, path, offset=begin, length=min(PIECE_BYTES, end - begin))
    headers = {
        **SAFE,
        "content-length": str(end - begin),
        "content-range": f"bytes {begin}-{end - 1}/{first.size}",
    }
    return Stream(rest_of(files, workspace, piece, end), media_type=MEDIA, headers=headers, status_code=206)


@get("/sessions/{session:str}/files/image", operation_id="files.image", tags=_TAGS, media_type=MEDIA, role="viewer")
async def show_image(
    session: str,
    services: Services,
    project: str,
    path: Annotated[
        str, Parameter(description="In the session's folder, or an image of one of its prompts.", max_length=4000)
    ],
) -> Response[bytes]:
    """A picture that the session names, also without a workspace; only what is a picture is given."""
    live = await services.sessions.registry.live(project, session)
    found = await picture_of(live.core, services.runners.workspaces(live.core.record.runner), path)
    headers = {**_SANDBOXED, "cache-control": "private, no-cache"}
    return Response(found.content, media_type=found.media_type, headers=headers)


def _span(wanted: re.Match[str], size: int) -> tuple[int, int]:
    """Where a range begins, and where it has ended."""
    begin, end = wanted[1], wanted[2]
    if not begin:  # the last so many bytes
        first, last = max(0, size - int(end)), size
    else:
        first, last = int(begin), min(size, int(end) + 1) if end else size
    if first >= last:
        raise RangeNotSatisfiable(range=wanted[0], size=size)
    return first, last


async def rest_of(files: Files, workspace: str, piece: FileContent, end: int) -> AsyncIterator[bytes]:
    """A file piece by piece, up to `end`."""
    at = piece.offset
    while piece.data:
        yield piece.data
        at += len(piece.data)
        if at >= end:
            return
        piece = await files.read(workspace, piece.path, offset=at, length=min(PIECE_BYTES, end - at))


@put("/sessions/{session:str}/files/content", operation_id="files.write", tags=_TAGS, status_code=200, role="operator")
async def write_file(
    session: str,
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    path: FilePath,
    executable: Annotated[bool | None, Parameter(description="Whether it can be run; by default as before.")] = None,
) -> FileEntry:
    """Write a file whole; the body is its content, and folders are made."""
    files, workspace, path = await _own(services, project, session, path)
    return await files.write(workspace, path, await request.body(), executable=executable)


@delete("/sessions/{session:str}/files/content", operation_id="files.remove", tags=_TAGS, role="operator")
async def remove_file(session: str, services: Services, project: str, path: FilePath) -> None:
    """Remove a file or an empty folder."""
    files, workspace, path = await _own(services, project, session, path)
    await files.remove(workspace, path)


@get("/sessions/{session:str}/files/search", operation_id="files.search", tags=_TAGS, role="viewer")
async def search_files(
    session: str,
    services: Services,
    project: str,
    text: Annotated[str, Parameter(description="Taken as it is; empty to look for names.", max_length=1000)] = "",
    name: Annotated[str, Parameter(description="A pattern for the path, such as src/*.py.", max_length=1000)] = "*",
    ignore_case: Annotated[bool, QueryParameter(name="ignoreCase", description="Whether A and a are alike.")] = False,
    limit: Annotated[int, Parameter(ge=1, le=5000)] = 200,
) -> FileMatches:
    """Lines that hold a text, in bounded time."""
    query = FileQuery(text=text, name=name, ignore_case=ignore_case, matches=limit)
    files, place, _ = await _found(services, project, session, "")
    return await files.search(place, query)


@get("/sessions/{session:str}/files/paths", operation_id="files.paths", tags=_TAGS, role="viewer")
async def list_paths(
    session: str,
    services: Services,
    project: str,
    limit: Annotated[int, Parameter(ge=1, le=100_000)] = 20_000,
) -> FilePaths:
    """The paths of all files, in bounded time; without what tools make, such as node_modules."""
    files, place, _ = await _found(services, project, session, "")
    return await files.paths(place, limit)


@get("/sessions/{session:str}/files/archive", operation_id="files.archive", tags=_TAGS, media_type=MEDIA, role="viewer")
async def archive_files(
    session: str,
    services: Services,
    project: str,
    form: Annotated[ArchiveForm, Parameter(description="The kind of archive.")] = "tar",
) -> Stream:
    """The whole workspace without its .git."""
    live = await services.sessions.registry.live(project, session)
    workspace_of(live.core)
    files, workspace, _ = await _found(services, project, session, "")
    archive = await files.archive(workspace, form)
    headers = {**SAFE, "content-disposition": f'attachment; filename="{workspace}.{form}"'}
    return Stream(
        archive.pieces, media_type="application/x-tar" if form == "tar" else "application/zip", headers=headers
    )


@get("/sessions/{session:str}/artifacts", operation_id="files.artifacts", tags=_TAGS, role="viewer")
async def list_artifacts(session: str, services: Services, project: str) -> ArtifactList:
    """The files that the agent wrote or edited with its tools."""
    live = await services.sessions.registry.live(project, session)
    workspaces = services.runners.workspaces(live.core.record.runner)
    return await artifacts_of(services.sessions, workspaces, live.core.record)


HANDLERS = (
    list_files,
    stat_file,
    read_file,
    show_image,
    write_file,
    remove_file,
    search_files,
    list_paths,
    archive_files,
    list_artifacts,
)
