"""The operations on the audit log; part of the table."""

import msgspec

from ostler.client.calls import Call, get
from ostler.wire.audit import AuditLine, AuditPage

_lines = msgspec.json.Decoder(AuditLine)


def list_lines(
    *,
    actor: str | None = None,
    action: str | None = None,
    since: str | None = None,
    until: str | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> Call[AuditPage]:
    """What was changed and refused in the tenant, the newest first."""
    decode = msgspec.json.Decoder(AuditPage).decode
    return get("/audit", decode, actor=actor, action=action, since=since, until=until, before=before, limit=limit)


def export_lines(
    *,
    actor: str | None = None,
    action: str | None = None,
    since: str | None = None,
    until: str | None = None,
    after: int = 0,
    limit: int | None = None,
) -> Call[tuple[AuditLine, ...]]:
    """The lines after the one of a number, the oldest first; none if there are no more."""
    return get(
        "/audit/export",
        lambda body: tuple(_lines.decode_lines(body)),
        actor=actor,
        action=action,
        since=since,
        until=until,
        after=after,
        limit=limit,
    )
