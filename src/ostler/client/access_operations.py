"""The operations on tenants, projects, API keys and limits; part of the table."""

import msgspec

from ostler.client.calls import Call, delete, get, post, put, segment
from ostler.wire.access import (
    ApiKeyIssued,
    ApiKeyList,
    EndSignIns,
    Me,
    MemberList,
    NewApiKey,
    NewProject,
    NewTenant,
    Project,
    ProjectList,
    Role,
    SignInsEnded,
    Tenant,
    TenantList,
)
from ostler.wire.limits import Limits, LimitScope, LimitsList, SetLimits, UsageList
from ostler.wire.system import Providers


def whoami() -> Call[Me]:
    """Who the caller is, and what it may do."""
    return get("/me", msgspec.json.Decoder(Me).decode)


def providers() -> Call[Providers]:
    """Where people sign in to get a token for the server."""
    return get("/providers", msgspec.json.Decoder(Providers).decode)


def list_tenants() -> Call[TenantList]:
    """The tenants that the caller may use."""
    return get("/tenants", msgspec.json.Decoder(TenantList).decode)


def create_tenant(name: str) -> Call[Tenant]:
    """Make a tenant, with a project `default`."""
    return post("/tenants", msgspec.json.Decoder(Tenant).decode, NewTenant(name=name))


def list_projects() -> Call[ProjectList]:
    """The projects that the caller may use, and those that tasks of the current one have named."""
    return get("/projects", msgspec.json.Decoder(ProjectList).decode)


def create_project(name: str) -> Call[Project]:
    """Make a project in the caller's tenant."""
    return post("/projects", msgspec.json.Decoder(Project).decode, NewProject(name=name))


def remove_tenant(tenant: str) -> Call[None]:
    """Remove a tenant in which nothing is left."""
    return delete(f"/tenants/{segment(tenant)}")


def remove_project(project: str) -> Call[None]:
    """Remove a project in which nothing is left."""
    return delete(f"/projects/{segment(project)}")


def list_members() -> Call[MemberList]:
    """Who may do what in the caller's tenant or project."""
    return get("/members", msgspec.json.Decoder(MemberList).decode)


def sign_out_member(actor: str | None = None) -> Call[SignInsEnded]:
    """Sign a person out in all browsers, or the caller itself, and end what was opened there."""
    return post("/members/sign-out", msgspec.json.Decoder(SignInsEnded).decode, EndSignIns(actor=actor))


def list_keys() -> Call[ApiKeyList]:
    """The API keys that the caller may manage."""
    return get("/api-keys", msgspec.json.Decoder(ApiKeyList).decode)


def create_key(
    name: str, role: Role, *, project: str | None = None, expires_at: str | None = None
) -> Call[ApiKeyIssued]:
    """Make an API key; it is in the answer, this once."""
    body = NewApiKey(name=name, role=role, project_id=project, expires_at=expires_at)
    return post("/api-keys", msgspec.json.Decoder(ApiKeyIssued).decode, body)


def revoke_key(key: str) -> Call[None]:
    """Revoke an API key: it is refused from now on, and streams opened with it end."""
    return delete(f"/api-keys/{segment(key)}")


def list_limits() -> Call[LimitsList]:
    """The limits that count for the caller, and for who may set them all those of its tenant."""
    return get("/limits", msgspec.json.Decoder(LimitsList).decode)


def set_limits(
    scope: LimitScope = "project",
    *,
    project: str | None = None,
    actor: str | None = None,
    requests_per_second: float | None = None,
    live_sessions: int | None = None,
    queued_tasks: int | None = None,
    tokens_per_day: int | None = None,
    cost_per_day: float | None = None,
    workspaces: int | None = None,
    upload_bytes_per_day: int | None = None,
) -> Call[Limits]:
    """Set all limits of a tenant, a project or an actor: what is left out is not limited any more."""
    body = SetLimits(
        scope=scope,
        project_id=project,
        actor=actor,
        requests_per_second=requests_per_second,
        live_sessions=live_sessions,
        queued_tasks=queued_tasks,
        tokens_per_day=tokens_per_day,
        cost_per_day=cost_per_day,
        workspaces=workspaces,
        upload_bytes_per_day=upload_bytes_per_day,
    )
    return put("/limits", msgspec.json.Decoder(Limits).decode, body)


def show_usage() -> Call[UsageList]:
    """What the caller's tenant, project and credential have now and have used today."""
    return get("/usage", msgspec.json.Decoder(UsageList).decode)
