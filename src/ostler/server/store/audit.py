"""What a server asks of its store about the audit log, which is only ever added to."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ostler.wire.audit import AuditHead, AuditLine, AuditOutcome


class NewLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that has no place in the chain of its tenant yet."""

    tenant: str
    id: str
    at: str
    project: str
    actor: str
    action: str
    outcome: AuditOutcome
    status: int
    target: str = ""
    client: str = ""
    count: int = 1


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of a tenant."""

    tenant: str
    actor: str | None = None
    action: str | None = None
    since: str | None = None
    """From this time on."""
    until: str | None = None
    """Before this time."""


class Audit(Protocol):
    """The lines of each tenant, each with the hash of the one before it."""

    async def append(self, lines: Sequence[NewLine]) -> None:
        """Add lines in this order, all of them or none; nothing if they were added before."""
        ...

    async def head(self, tenant: str) -> AuditHead:
        """The newest line; number 0 if there is none."""
        ...

    async def removed(self, tenant: str) -> AuditHead:
        """The last line that was removed because of its age; number 0 if none was."""
        ...

    async def tenants_with_lines_before(self, at: str) -> list[str]:
        """The tenants that have lines of before a time."""
        ...

    async def remove_before(self, at: str, notice: NewLine, *, most: int) -> int:
        """Remove the oldest lines of the tenant of `notice`, up to the first that is not of before this time or that is
        the newest, and add `notice` with their numbers; the number of the last one, 0 if there was none."""
        ...

    async def newest(self, wanted: AuditFilter, *, before: int | None, limit: int) -> list[AuditLine]:
        """The newest lines with a number below `before`, the newest first."""
        ...

    async def oldest(self, wanted: AuditFilter, *, after: int, limit: int) -> list[AuditLine]:
        """The oldest lines with a number above `after`, the oldest first."""
        ...
