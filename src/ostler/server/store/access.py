"""What a server asks of its store about tenants, projects, API keys and limits, and how each of them is stored."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from ostler.wire.access import Role
from ostler.wire.limits import LimitScope


class TenantRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant; `default` is there without a row."""

    name: str
    created_at: str


class ProjectRow(msgspec.Struct, frozen=True, kw_only=True):
    """A project of a tenant; `default` of `default` is there without a row."""

    id: str
    """What everything that belongs to the project is stored under; no other project of any tenant has it."""
    tenant: str
    name: str
    created_at: str


class ApiKeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, of which only the hash is stored."""

    id: str
    hash: str
    prefix: str
    name: str
    tenant: str
    project: str | None
    """The id of the only project that it is for; None for all of its tenant."""
    role: Role
    created_by: str
    created_at: str
    expires_at: str | None = None
    last_used_at: str | None = None
    revoked_at: str | None = None


class PersonRow(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody who came with a token of the provider may do, as it was the last time."""

    actor: str
    tenant: str
    project: str
    """The id of the only project; empty for all of the tenant."""
    role: Role
    name: str
    first_seen_at: str
    last_seen_at: str


class SignInRow(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who signed in in a browser; of the secret in its cookie only the hash is stored."""

    id: str
    hash: str
    way: str
    """The provider."""
    mark: str
    """What decided on the grants; with other rules the sign-in is over."""
    actor: str
    name: str
    grants: str
    """As JSON."""
    created_at: str
    ends_at: str
    former_hash: str | None = None
    """Of the secret before this one, which stays good until the browser has shown that it has the new one."""
    former_until: str | None = None
    """When that is no longer good; None as long as the new one was not shown."""
    renewed_at: str | None = None


class LimitsRow(msgspec.Struct, frozen=True, kw_only=True):
    """How much a tenant, a project or an actor may have; None is no limit."""

    scope: LimitScope
    id: str
    requests_per_second: float | None = None
    live_sessions: int | None = None
    queued_tasks: int | None = None
    tokens_per_day: int | None = None
    cost_per_day: float | None = None
    workspaces: int | None = None
    upload_bytes_per_day: int | None = None


class UploadedBy(NamedTuple):
    """How many bytes an actor sent to a project on a day."""

    project: str
    actor: str
    size: int


class AccessRows(msgspec.Struct, frozen=True, kw_only=True):
    """All that says who may come in, as it was at one time."""

    tenants: tuple[TenantRow, ...] = ()
    projects: tuple[ProjectRow, ...] = ()
    keys: tuple[ApiKeyRow, ...] = ()
    """Revoked ones too: what they did still names them."""
    limits: tuple[LimitsRow, ...] = ()
    people: tuple[PersonRow, ...] = ()
    sign_ins: tuple[SignInRow, ...] = ()


class Access(Protocol):
    """Who may do what and how much; servers have all of it in memory, and read it again when it changes."""

    async def all(self) -> AccessRows:
        """All rows, each kind in the order in which they were made."""
        ...

    def add_tenant(self, new: TenantRow) -> "asyncio.Future[bool]":
        """There is one more; False if the name is another's."""
        ...

    def add_project(self, new: ProjectRow) -> "asyncio.Future[bool]":
        """There is one more; False if its tenant has one of that name."""
        ...

    def remove_tenant(self, name: str) -> "asyncio.Future[bool]":
        """It is there no more; False if it was not."""
        ...

    def remove_project(self, project: str) -> "asyncio.Future[bool]":
        """It is there no more; False if it was not."""
        ...

    def person_seen(self, new: PersonRow) -> "asyncio.Future[bool]":
        """Somebody came and may do this now; when they came first stays."""
        ...

    def sign_in(self, new: SignInRow) -> "asyncio.Future[bool]":
        """Somebody signed in in a browser."""
        ...

    def sign_out(self, sign_in: str) -> "asyncio.Future[bool]":
        """It is there no more; False if it was not."""
        ...

    def sign_out_everywhere(self, actor: str) -> "asyncio.Future[bool]":
        """None of an actor is there any more; False if none was."""
        ...

    def narrow_sign_in(self, sign_in: str, named: str, grants: str) -> "asyncio.Future[bool]":
        """It has another id and these grants; False if it was not there."""
        ...

    def renew_sign_in(self, sign_in: str, was: str, now: str, former: str, at: str) -> "asyncio.Future[bool]":
        """Its hash is `now` from then on, and `former` is good beside; False if the hash was not `was`."""
        ...

    def sign_in_renewed(self, sign_in: str, until: str) -> "asyncio.Future[bool]":
        """The browser has its new secret, and the former one is good until then; False if that was known."""
        ...

    def forget_sign_ins(self, now: str) -> "asyncio.Future[bool]":
        """Those that are over are there no more."""
        ...

    def add_key(self, new: ApiKeyRow) -> "asyncio.Future[bool]":
        """There is one more; False if its hash or id is another's."""
        ...

    def revoke_key(self, key: str, at: str) -> "asyncio.Future[bool]":
        """It is good for nothing any more; False if it was not before."""
        ...

    def key_used(self, key: str, at: str) -> "asyncio.Future[bool]":
        """It was used last at this time."""
        ...

    def uploaded(self, day: str, project: str, actor: str, size: int) -> "asyncio.Future[bool]":
        """So many bytes more were sent on a day, such as 2030-01-31."""
        ...

    async def uploaded_on(self, day: str, projects: Sequence[str]) -> list[UploadedBy]:
        """How many bytes were uploaded to these projects on a day, by project and by who sent them."""
        ...

    def set_limits(self, new: LimitsRow) -> "asyncio.Future[bool]":
        """These are the limits from now on."""
        ...
