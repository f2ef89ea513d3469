"""The operations on tenants, projects and API keys; part of the table."""

import msgspec

from ostler.client.calls import Call, delete, get, post, segment
from ostler.wire.access import (
    ApiKeyIssued,
    ApiKeyList,
    Me,
    NewApiKey,
    NewProject,
    NewTenant,
    Project,
    ProjectList,
    Role,
    Tenant,
    TenantList,
)


def whoami() -> Call[Me]:
    """Who the caller is, and what it may do."""
    return get("/me", msgspec.json.Decoder(Me).decode)


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
