"""Who may do what: tenants, projects, API keys, and the caller itself."""

from typing import Annotated, Literal

import msgspec

from ostler.wire.struct import Answer, Body, Wire

NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"
Role = Literal["viewer", "operator", "admin"]
"""Reads; runs sessions and answers asks; changes what agents and people may do. Each may what those before it may."""
Reach = Literal["project", "tenant", "server"]
"""What a credential is for: one project, all projects of a tenant, or all tenants and the machines beside."""
_Name = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": NAME})]
_KeyName = Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": 100})]


class Me(Answer, frozen=True, kw_only=True):
    """The caller: who it is, where this request counts, and what it may do there."""

    actor: str
    """`local` without a token, `token` for the server's own, `key:` and an id, `oidc:` or `cert:` and a name."""
    role: Role
    reach: Reach
    """What the credential is for: one project, all projects of a tenant, or the whole server."""
    tenant: str
    project: str
    """The id of the project that this request counts in."""
    projects: tuple["Project", ...]
    """Those that may be named with the header Ostler-Project."""
    name: str | None = None
    """What the caller is called at their provider."""
    signed_in: bool = False
    """Whether the caller is a browser that signed in, and may sign out."""


class SignedOut(Answer, frozen=True, kw_only=True):
    """Somebody signed out here."""

    next: str | None = None
    """Where they sign out at their provider too; absent if it has no such page."""


class Tenant(Answer, frozen=True, kw_only=True):
    """A tenant: a team with projects of its own."""

    name: str
    created_at: str


class TenantList(Answer, frozen=True, kw_only=True):
    """All tenants."""

    items: tuple[Tenant, ...]


class NewTenant(Body, frozen=True, kw_only=True):
    """A tenant to make: lower-case letters, digits and `-`."""

    name: _Name


class Project(Answer, frozen=True, kw_only=True):
    """A project, and how many sessions it has."""

    id: str
    name: str
    """What people call it; for what tasks call their project without one being made, the same as `id`."""
    tenant: str
    sessions: int | None = None


class ProjectList(Answer, frozen=True, kw_only=True):
    """Projects that the caller may use, and those that tasks of the current one have named."""

    items: tuple[Project, ...]


class Member(Answer, frozen=True, kw_only=True):
    """Who may do what in a tenant: an API key, or somebody who came with a token of the OpenID provider."""

    actor: str
    """`key:` and the id of a key, or `oidc:` and the subject of the token."""
    name: str
    role: Role
    """Of a person the one of the last time: their token says anew each time."""
    tenant: str
    project_id: str | None = None
    """The only project that it is for."""
    first_seen_at: str
    """When the key was made, or the person came first."""
    last_seen_at: str | None = None


class MemberList(Answer, frozen=True, kw_only=True):
    """Keys that are good and people that came, by their actors."""

    items: tuple[Member, ...]


class EndSignIns(Body, frozen=True, kw_only=True):
    """Whose sign-ins in browsers are over."""

    actor: Annotated[str, msgspec.Meta(min_length=1, max_length=250)] | None = None
    """A person as in the list of members; without it the caller itself."""


class SignInsEnded(Answer, frozen=True, kw_only=True):
    """Nobody is signed in as this actor any more."""

    actor: str
    ended: int
    """How many sign-ins there were."""


class ProtectedResource(Wire, frozen=True, kw_only=True):
    """Where MCP clients get tokens for this server (RFC 9728)."""

    resource: str
    authorization_servers: tuple[str, ...]
    bearer_methods_supported: tuple[str, ...]


class NewProject(Body, frozen=True, kw_only=True):
    """A project to make: lower-case letters, digits and `-`."""

    name: _Name


class ApiKey(Answer, frozen=True, kw_only=True):
    """An API key as it can be shown: the key itself is not stored."""

    id: str
    prefix: str
    """How the key begins."""
    name: str
    role: Role
    tenant: str
    project_id: str | None = None
    """The only project that it is for; without it the key is for all projects of its tenant."""
    created_by: str
    created_at: str
    expires_at: str | None = None
    last_used_at: str | None = None
    """To within a minute."""
    revoked_at: str | None = None


class ApiKeyList(Answer, frozen=True, kw_only=True):
    """All keys, the oldest first."""

    items: tuple[ApiKey, ...]


class NewApiKey(Body, frozen=True, kw_only=True):
    """A key to make."""

    name: _KeyName
    role: Role
    project_id: str | None = None
    """The id or the name of the only project that it is for; without it the key is for all projects of its tenant."""
    expires_at: str | None = None
    """Such as 2030-01-31T12:00:00Z; without it the key is good until it is revoked."""


class ApiKeyIssued(Answer, frozen=True, kw_only=True):
    """A new key, shown this once."""

    id: str
    prefix: str
    key: str
