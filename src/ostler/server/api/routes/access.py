"""Tenants, projects, API keys, and the caller itself."""

from typing import Any

from litestar import Request, Response, delete, get, post
from msgspec.structs import asdict

from ostler.base.errors import Forbidden, NotFound
from ostler.base.errors.access import NameTaken, NotEmpty
from ostler.base.redaction import printable
from ostler.server.api.edge.idempotency import RECEIPT_HEADER
from ostler.server.api.services import Services
from ostler.server.auth.directory import DEFAULT, check_name
from ostler.server.auth.scope import Scope, attempt_of, check
from ostler.server.store.access import ApiKeyRow, ProjectRow
from ostler.server.templates import service as templates
from ostler.wire.access import (
    ApiKey,
    ApiKeyIssued,
    ApiKeyList,
    EndSignIns,
    Me,
    Member,
    MemberList,
    NewApiKey,
    NewProject,
    NewTenant,
    Project,
    ProjectList,
    SignInsEnded,
    Tenant,
    TenantList,
)

_TAGS = ["access"]


@get("/me", operation_id="system.whoami", tags=["system"], sync_to_thread=False, role="viewer")
def who_am_i(services: Services, caller: Scope) -> Me:
    """The caller: who it is, where this request counts, and what it may do there."""
    called = (row.name for row in services.directory.people(caller) if row.actor == caller.actor and row.name)
    return Me(
        actor=caller.actor,
        role=caller.role,
        reach=caller.reach,
        tenant=caller.tenant,
        project=caller.project,
        projects=tuple(map(_project, services.directory.projects(caller))),
        name=next(called, None),
        signed_in=caller.sign_in is not None,
    )


@get("/tenants", operation_id="tenants.list", tags=_TAGS, sync_to_thread=False, role="viewer")
def list_tenants(services: Services, caller: Scope) -> TenantList:
    """The tenants that the caller may use."""
    found = services.directory.tenants()
    seen = found if caller.reach == "server" else [each for each in found if each.name == caller.tenant]
    return TenantList(items=tuple(Tenant(name=each.name, created_at=each.created_at) for each in seen))


@post("/tenants", operation_id="tenants.create", tags=_TAGS, role="admin", reach="server")
async def create_tenant(services: Services, data: NewTenant) -> Tenant:
    """Make a tenant, with a project `default`; not by the name of one that was removed, whose audit log stays."""
    is_there = data.name in {each.name for each in services.directory.tenants()}
    if not is_there and (await services.sessions.store.audit.head(check_name(data.name))).number > 0:
        raise NameTaken(verb="was", what="tenant", name=data.name)
    made = await services.directory.add_tenant(data.name)
    return Tenant(name=made.name, created_at=made.created_at)


@get("/projects", operation_id="projects.list", tags=_TAGS, role="viewer")
async def list_projects(services: Services, caller: Scope) -> ProjectList:
    """The projects that the caller may use, and those that tasks of the current one have named."""
    store, items = services.sessions.store, list[Project]()
    rows = services.directory.projects(caller)
    known = {row.id for row in rows}
    for row in rows:
        counted = await store.count_by_project(row.id)
        items.append(_project(row, counted.pop(row.id, 0)))
        if row.id == caller.project:
            items += [
                Project(id=name, name=name, tenant=row.tenant, sessions=count)
                for name, count in sorted(counted.items())
                if name not in known
            ]
    return ProjectList(items=tuple(items))


@post("/projects", operation_id="projects.create", tags=_TAGS, role="admin", reach="tenant")
async def create_project(services: Services, caller: Scope, data: NewProject) -> Project:
    """Make a project in the caller's tenant."""
    return _project(await services.directory.add_project(caller.tenant, data.name), 0)


@delete("/tenants/{tenant:str}", operation_id="tenants.remove", tags=_TAGS, role="admin", reach="server")
async def remove_tenant(services: Services, tenant: str) -> None:
    """Remove a tenant in which nothing is left but its empty project `default`."""
    directory = services.directory
    if tenant not in {each.name for each in directory.tenants()}:
        raise NotFound(what="tenant", value=tenant[:80], hint="List them with `ostler tenants list`.")
    if tenant == DEFAULT:
        raise NotEmpty(what="tenant", name=tenant, why="it is the server's own")
    if (more := len(directory.project_ids(tenant)) - 1) > 0:
        raise NotEmpty(what="tenant", name=tenant, why=f"it still has {more} more projects; remove them first")
    await _check_empty(services, "tenant", tenant, directory.project(tenant, DEFAULT), tenant)
    await directory.remove_tenant(tenant)


@delete("/projects/{project_name:str}", operation_id="projects.remove", tags=_TAGS, role="admin", reach="tenant")
async def remove_project(services: Services, caller: Scope, project_name: str) -> None:
    """Remove a project in which nothing is left: no session, key, schedule, trigger, template or saved prompt."""
    found = services.directory.within(caller, project_name)
    if found is None or found.tenant != caller.tenant:
        raise NotFound(what="project", value=project_name[:80], hint="List them with `ostler projects list`.")
    check(found, "admin", "tenant")
    project = next(each for each in services.directory.projects(caller) if each.id == found.project)
    if project.name == DEFAULT:
        raise NotEmpty(what="project", name=DEFAULT, why="it is for whoever names no project")
    await _check_empty(services, "project", project.name, project, None)
    await services.directory.remove_project(project.id)


async def _check_empty(services: Services, what: str, name: str, project: ProjectRow, tenant: str | None) -> None:
    """Raise if something lives in a project, or in its tenant if that is named."""
    store = services.sessions.store
    has = {
        "sessions": (await store.count_by_project(project.id)).get(project.id, 0),
        "API keys": services.directory.count_keys(project.id, tenant),
        "schedules": len(await store.schedules.all(project.id)),
        "triggers": len(await store.triggers.all(project.id)),
        "webhooks": len(await store.webhooks.all(project.id)),
        "templates": len(await templates.newest(store.templates, project.id)),
        "saved prompts": len(await store.prompts.all(project.id)),
    }
    if left := [f"{count} {kind}" for kind, count in has.items() if count]:
        raise NotEmpty(what=what, name=name, why=f"it still has {', '.join(left)}; remove them first")


@get("/members", operation_id="members.list", tags=_TAGS, sync_to_thread=False, role="admin")
def list_members(services: Services, caller: Scope) -> MemberList:
    """Who may do what in the caller's tenant, or in its project if it has no more."""
    keys = [
        Member(
            actor=f"key:{key.id}",
            name=key.name,
            role=key.role,
            tenant=key.tenant,
            project_id=key.project,
            first_seen_at=key.created_at,
            last_seen_at=key.last_used_at,
        )
        for key in services.directory.keys(caller)
        if key.revoked_at is None
    ]
    people = [
        Member(
            actor=row.actor,
            name=row.name,
            role=row.role,
            tenant=row.tenant,
            project_id=row.project or None,
            first_seen_at=row.first_seen_at,
            last_seen_at=row.last_seen_at,
        )
        for row in services.directory.people(caller)
    ]
    return MemberList(items=(*keys, *people))


@post("/members/sign-out", operation_id="members.sign-out", tags=_TAGS, status_code=200, role="viewer", audited=True)
async def sign_out_everywhere(
    services: Services, caller: Scope, request: Request[Any, Any, Any], data: EndSignIns
) -> SignInsEnded:
    """Sign somebody out in all browsers, and end what was opened there.

    Admins of a tenant sign others out of that tenant only.
    """
    actor = caller.actor if data.actor is None else data.actor
    if (attempt := attempt_of(request.scope)) is not None:
        attempt.target = printable(actor)
    if actor != caller.actor:
        check(caller, "admin", "tenant")
    is_known = actor in {row.actor for row in services.directory.people(caller)}
    if not is_known and (actor != caller.actor or caller.sign_in is None):
        hint = "`ostler members list` has the people who sign in; a key is taken back with `ostler keys revoke`."
        raise NotFound(what="person", value=printable(actor, 80), hint=hint)
    known = services.directory.sign_ins
    everywhere = actor == caller.actor or caller.reach == "server"
    ended = await (known.end_all(actor) if everywhere else known.end_in(actor, caller.tenant))
    return SignInsEnded(actor=actor, ended=ended)


@get("/api-keys", operation_id="keys.list", tags=_TAGS, sync_to_thread=False, role="admin")
def list_keys(services: Services, caller: Scope) -> ApiKeyList:
    """The API keys of the caller's tenant, or of its project if it has no more."""
    return ApiKeyList(items=tuple(map(_key, services.directory.keys(caller))))


@post("/api-keys", operation_id="keys.create", tags=_TAGS, role="admin")
async def create_key(services: Services, caller: Scope, data: NewApiKey) -> Response[ApiKeyIssued]:
    """Make an API key; it is shown this once."""
    project = _project_of(services, caller, data.project_id)
    made, key = await services.directory.add_key(
        caller, name=data.name, role=data.role, project=project, expires_at=data.expires_at
    )
    receipt = f'{{"id":"{made.id}","prefix":"{made.prefix}"}}'  # a repetition is not told the key again
    issued = ApiKeyIssued(id=made.id, prefix=made.prefix, key=key)
    return Response(issued, status_code=201, headers={RECEIPT_HEADER.decode(): receipt})


def _project_of(services: Services, caller: Scope, named: str | None) -> str | None:
    if named is None and caller.reach == "project":
        raise Forbidden(actor=caller.actor, role=f"{caller.role} of one project", needed="projectId, its own project")
    if named is None:
        return None
    found = services.directory.within(caller, named)
    if found is None or found.tenant != caller.tenant:
        raise NotFound(what="project", value=named[:80], hint="List them with `ostler projects list`.")
    check(found, "admin")
    return found.project


@delete("/api-keys/{key_id:str}", operation_id="keys.revoke", tags=_TAGS, role="admin")
async def revoke_key(services: Services, caller: Scope, key_id: str) -> None:
    """Revoke an API key: it is refused from now on, and streams and sockets opened with it end."""
    await services.directory.revoke(caller, key_id)


def _project(row: ProjectRow, sessions: int | None = None) -> Project:
    return Project(id=row.id, name=row.name, tenant=row.tenant, sessions=sessions)


def _key(row: ApiKeyRow) -> ApiKey:
    values = asdict(row)
    del values["hash"]
    return ApiKey(project_id=values.pop("project"), **values)


HANDLERS = (
    who_am_i,
    list_tenants,
    create_tenant,
    list_projects,
    create_project,
    remove_tenant,
    remove_project,
    list_members,
    sign_out_everywhere,
    list_keys,
    create_key,
    revoke_key,
)
