"""How much of a server a tenant, a project or an actor may have, and how much it has now."""

from typing import Annotated, Literal

import msgspec

from ostler.wire.struct import Answer, Body

LimitScope = Literal["tenant", "project", "actor"]
MOST = 1_000_000_000
_Rate = Annotated[float, msgspec.Meta(ge=0.001, le=MOST)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Money = Annotated[float, msgspec.Meta(ge=0, le=MOST)]


class Limits(Answer, frozen=True, kw_only=True):
    """What a tenant, a project or an actor may have at most; what is absent is not limited."""

    scope: LimitScope
    id: str
    """The name of the tenant, the id of the project, or the actor, such as `key:key_01J...`."""
    requests_per_second: float | None = None
    live_sessions: int | None = None
    """Sessions that are on a runner and not over."""
    queued_tasks: int | None = None
    """Tasks that wait for a runner."""
    tokens_per_day: int | None = None
    """Input and output tokens of all turns, from midnight to midnight in UTC."""
    cost_per_day: float | None = None
    """US dollars, as far as agents tell."""
    workspaces: int | None = None
    """Workspaces on disk, of sessions that are over too; folders of a person's own do not count."""
    upload_bytes_per_day: int | None = None
    """Bytes of archives that are sent for workspaces."""


class LimitsList(Answer, frozen=True, kw_only=True):
    """Limits that count for the caller, or that it may set."""

    items: tuple[Limits, ...]


class SetLimits(Body, frozen=True, kw_only=True):
    """All limits of one tenant, project or actor: what is absent is not limited any more."""

    scope: LimitScope = "project"
    project_id: str | None = None
    """The id or name of the project, for that scope; by default the one of the request."""
    actor: str | None = None
    """Whose limits they are, for that scope: `key:` and the id of an API key."""
    requests_per_second: _Rate | None = None
    live_sessions: _Count | None = None
    queued_tasks: _Count | None = None
    tokens_per_day: _Count | None = None
    cost_per_day: _Money | None = None
    workspaces: _Count | None = None
    upload_bytes_per_day: _Bytes | None = None


class Usage(Answer, frozen=True, kw_only=True):
    """What a tenant, a project or an actor has now, and has used since midnight in UTC."""

    scope: LimitScope
    id: str
    live_sessions: int
    queued_tasks: int
    tokens_today: int
    cost_today: float
    """US dollars, as far as agents tell."""
    workspaces: int
    uploaded_today: int
    """Bytes."""
    limits: Limits


class UsageList(Answer, frozen=True, kw_only=True):
    """What the caller's tenant, project and credential have and have used."""

    items: tuple[Usage, ...]
    resets_at: str
    """When tokens and cost of a day are counted from nothing again."""
