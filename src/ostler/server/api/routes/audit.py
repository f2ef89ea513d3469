"""The audit log of the caller's tenant."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from litestar import Response, get
from litestar.params import Parameter

from ostler.base.clock import stamped
from ostler.base.errors import InvalidRequest
from ostler.server.api.described import answer
from ostler.server.api.routes.fleets import NDJSON
from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope
from ostler.server.store.audit import AuditFilter
from ostler.wire.audit import AuditLine, AuditPage

_TAGS = ["access"]
_Actor = Annotated[str | None, Parameter(max_length=200, description="Only of this actor, such as `key:key_01J...`.")]
_Action = Annotated[str | None, Parameter(max_length=200, description="Only this operation, such as `keys.create`.")]
_AT = {"format": "date-time"}
_Since = Annotated[
    str | None,
    Parameter(max_length=40, schema_extra=_AT, description="From this time on, such as 2030-01-31T12:00:00Z."),
]
_Until = Annotated[str | None, Parameter(max_length=40, schema_extra=_AT, description="Before this time.")]


@get("/audit", operation_id="audit.list", tags=_TAGS, role="admin", reach="tenant")
async def list_lines(
    services: Services,
    caller: Scope,
    actor: _Actor = None,
    action: _Action = None,
    since: _Since = None,
    until: _Until = None,
    before: Annotated[int | None, Parameter(ge=1, le=2**53, description="`nextBefore` of the page before.")] = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 100,
) -> AuditPage:
    """What was changed and refused in the tenant, the newest first, and by whom."""
    store = services.sessions.store.audit
    wanted = _wanted(caller, actor, action, since, until)
    head = await store.head(caller.tenant)
    lines = await store.newest(wanted, before=before, limit=limit + 1)
    page = lines[:limit]
    next_before = page[-1].number if len(lines) > limit else None
    return AuditPage(items=tuple(page), head=head, removed=await store.removed(caller.tenant), next_before=next_before)


@get(
    "/audit/export",
    operation_id="audit.export",
    tags=_TAGS,
    role="admin",
    reach="tenant",
    media_type=NDJSON,
    answers={"200": answer("Lines, the oldest first; none if there are no more.", {NDJSON: "AuditLine"})},
)
async def export_lines(
    services: Services,
    caller: Scope,
    actor: _Actor = None,
    action: _Action = None,
    since: _Since = None,
    until: _Until = None,
    after: Annotated[int, Parameter(ge=0, le=2**53, description="The number of the last line that is known.")] = 0,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 1000,
) -> Response[bytes]:
    """The same as lines of JSON, the oldest first, for a copy elsewhere. Ask again with the number of the last."""
    wanted = _wanted(caller, actor, action, since, until)
    lines = await services.sessions.store.audit.oldest(wanted, after=after, limit=limit)
    return Response(_ndjson(lines), media_type=NDJSON)


def _ndjson(lines: Sequence[AuditLine]) -> bytes:
    return b"".join(msgspec.json.encode(line, order="sorted") + b"\n" for line in lines)


def _wanted(caller: Scope, actor: str | None, action: str | None, since: str | None, until: str | None) -> AuditFilter:
    return AuditFilter(
        tenant=caller.tenant, actor=actor, action=action, since=_time("since", since), until=_time("until", until)
    )


def _time(name: str, given: str | None) -> str | None:
    """In the form in which times are compared."""
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
        return stamped(at.replace(tzinfo=UTC) if at.tzinfo is None else at)
    except ValueError:
        reason = f"'{given}' is no time such as 2030-01-31T12:00:00Z"
        raise InvalidRequest(reason=f"{name}: {reason}.", errors={name: [reason]}) from None


HANDLERS = (list_lines, export_lines)
