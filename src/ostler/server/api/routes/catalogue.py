"""What tasks can be ordered with: runtimes, branches of a repository, uploads."""

from datetime import UTC, datetime
from typing import Annotated, Any

from litestar import Request, get, post, put
from litestar.params import Parameter

from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope
from ostler.server.runners.agents import runtimes
from ostler.wire.tasks import RuntimeList, UploadTicket
from ostler.wire.workspaces import FolderListing, GitRefs, Repo, Upload

_TAGS = ["catalogue"]


@get("/runtimes", operation_id="catalogue.runtimes", tags=_TAGS, role="viewer")
async def list_runtimes(services: Services, caller: Scope) -> RuntimeList:
    """What agents can run in."""
    return RuntimeList(items=await runtimes(services.runners, caller.tenant))


@get("/git/refs", operation_id="catalogue.refs", tags=_TAGS, role="viewer")
async def list_refs(
    services: Services, caller: Scope, url: Annotated[str, Parameter(description="The repository.", max_length=4096)]
) -> GitRefs:
    """The branches and tags of a repository, at most a minute old."""
    return await services.runners.workspaces(services.runners.any(caller.tenant)).refs(Repo(url=url))


@get("/folders", operation_id="catalogue.folders", tags=_TAGS, role="operator", reach="server")
async def list_folders(
    services: Services,
    path: Annotated[
        str, Parameter(description="An absolute folder, or one of ~; empty for where one may begin.", max_length=4096)
    ] = "",
    limit: Annotated[int, Parameter(ge=1, le=5000)] = 500,
) -> FolderListing:
    """The folders of the machine that sessions may use, a level at a time."""
    return await services.runners.workspaces(services.runners.any()).folders(path, limit)


@post("/uploads", operation_id="catalogue.upload", tags=_TAGS, role="operator")
async def create_upload(services: Services, caller: Scope) -> UploadTicket:
    """An address to send an archive to; its token then goes into repo.upload."""
    await services.quotas.check_upload(caller.project, caller.actor)
    token, expires = await services.uploads.issue(caller.project, caller.actor)
    return UploadTicket(
        token=token,
        url=f"/api/v1/uploads/{token}",
        method="PUT",
        expires_at=datetime.fromtimestamp(expires, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        max_bytes=services.settings.max_upload_bytes,
    )


@put("/uploads/{ticket:str}", operation_id="catalogue.send-upload", tags=_TAGS, status_code=200, role="anyone")
async def send_upload(ticket: str, services: Services, request: Request[Any, Any, Any]) -> Upload:
    """Send a tar or zip archive as the body; the address is the permission, no token is needed."""
    about = await services.uploads.check(ticket)
    runner = services.runners.any(services.directory.tenant_of(about.project))
    async with services.quotas.uploading(about.project, about.actor, request.stream()) as chunks:
        upload = await services.runners.workspaces(runner).upload(chunks)
    await services.uploads.fill(ticket, upload, runner)
    return upload


HANDLERS = (list_runtimes, list_refs, list_folders, create_upload, send_upload)
