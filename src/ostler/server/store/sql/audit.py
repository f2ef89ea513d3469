"""The audit log in every SQL store; `store/audit.py` says what the verbs mean."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from ostler.server.store.audit import AuditFilter, NewLine
from ostler.server.store.sql.reading import Query, row_of, rows_of, values_of
from ostler.server.store.sql.verbs import Reader
from ostler.wire.audit import BEGINNING, AuditHead, AuditLine, hash_of

_COLUMNS = tuple(field.name for field in msgspec.structs.fields(AuditLine))
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM audit WHERE tenant = ?"  # noqa: S608  fixed columns
_INSERT = f"INSERT INTO audit ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608  fixed columns
_HEAD = "SELECT number, hash FROM audit_heads WHERE tenant = ?"
_SET_HEAD = (
    "INSERT INTO audit_heads (tenant, number, hash) VALUES (?, ?, ?) "
    "ON CONFLICT (tenant) DO UPDATE SET number = excluded.number, hash = excluded.hash"
)
_SET_REMOVED = _SET_HEAD.replace("audit_heads", "audit_removed")
Alone = Callable[[Callable[[], Query[None]]], Awaitable[None]]
"""Runs a query in a transaction beside which no other one adds lines."""


class SqlAudit:
    """Implements Audit."""

    def __init__(self, reader: Reader, alone: Alone) -> None:
        self._reader = reader
        self._alone = alone

    async def append(self, lines: Sequence[NewLine]) -> None:
        """Add rows."""
        await self._alone(lambda: _append(lines))

    async def head(self, tenant: str) -> AuditHead:
        """Read a row."""
        return await self._reader.read(lambda: _head(tenant))

    async def removed(self, tenant: str) -> AuditHead:
        """Read a row."""
        return await self._reader.read(lambda: _removed(tenant))

    async def tenants_with_lines_before(self, at: str) -> list[str]:
        """Read which there are."""
        return await self._reader.read(lambda: values_of("SELECT DISTINCT tenant FROM audit WHERE at < ?", at))

    async def remove_before(self, at: str, notice: NewLine, *, most: int) -> int:
        """Remove rows, and add one."""
        last = 0

        def remove() -> Query[None]:
            nonlocal last
            last = yield from _remove_before(at, notice, most)

        await self._alone(remove)
        return last

    async def newest(self, wanted: AuditFilter, *, before: int | None, limit: int) -> list[AuditLine]:
        """Read rows from the end."""
        bound = () if before is None else (("number < ?", before),)
        return await self._reader.read(lambda: _lines(wanted, bound, f"number DESC LIMIT {limit:d}"))

    async def oldest(self, wanted: AuditFilter, *, after: int, limit: int) -> list[AuditLine]:
        """Read rows from the beginning."""
        return await self._reader.read(lambda: _lines(wanted, (("number > ?", after),), f"number LIMIT {limit:d}"))


def _append(lines: Sequence[NewLine]) -> Query[None]:
    if (yield from _is_there(lines[0])):  # the answer to an earlier try was lost, which may have had fewer lines
        lines = yield from _missing(lines)
    heads: dict[str, AuditHead] = {}
    for new in lines:
        head = heads.get(new.tenant) or (yield from _head(new.tenant))
        line = _chained(new, head)
        yield from rows_of(_INSERT, *astuple(line))
        heads[new.tenant] = AuditHead(number=line.number, hash=line.hash)
    for tenant, head in heads.items():
        yield from rows_of(_SET_HEAD, tenant, head.number, head.hash)


def _missing(lines: Sequence[NewLine]) -> Query[list[NewLine]]:
    missing = []
    for line in lines:
        if not (yield from _is_there(line)):
            missing.append(line)
    return missing


def _is_there(line: NewLine) -> Query[bool]:
    return bool((yield from values_of("SELECT id FROM audit WHERE id = ?", line.id)))


def _chained(new: NewLine, head: AuditHead) -> AuditLine:
    fields = {name: _without_nul(value) for name, value in msgspec.structs.asdict(new).items()}
    line = AuditLine(**fields, number=head.number + 1, previous=head.hash, hash="")
    return msgspec.structs.replace(line, hash=hash_of(line))


def _without_nul(value: Any) -> Any:
    """Not every database takes it, and the hash is of what is stored."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


def _head(tenant: str) -> Query[AuditHead]:
    row = yield from row_of(_HEAD, tenant)
    return AuditHead(number=0, hash=BEGINNING) if row is None else AuditHead(number=row[0], hash=row[1])


def _removed(tenant: str) -> Query[AuditHead]:
    row = yield from row_of("SELECT number, hash FROM audit_removed WHERE tenant = ?", tenant)
    return AuditHead(number=0, hash=BEGINNING) if row is None else AuditHead(number=row[0], hash=row[1])


def _remove_before(at: str, notice: NewLine, most: int) -> Query[int]:
    tenant, first = notice.tenant, (yield from _removed(notice.tenant)).number + 1
    remaining = yield from values_of("SELECT MIN(number) FROM audit WHERE tenant = ? AND at >= ?", tenant, at)
    newest = (yield from _head(tenant)).number
    last = min((remaining[0] or newest) - 1, newest - 1, first + most - 1)
    if last < first:
        return 0
    (digest,) = yield from values_of("SELECT hash FROM audit WHERE tenant = ? AND number = ?", tenant, last)
    yield from rows_of(_SET_REMOVED, tenant, last, digest)
    yield from rows_of("DELETE FROM audit WHERE tenant = ? AND number <= ?", tenant, last)
    yield from _append([msgspec.structs.replace(notice, id=f"{notice.id}_{last}", target=f"{first}-{last}")])
    return last


def _lines(wanted: AuditFilter, bound: Sequence[tuple[str, Any]], order: str) -> Query[list[AuditLine]]:
    conditions = [
        *bound,
        *(
            (condition, value)
            for condition, value in (
                ("actor = ?", wanted.actor),
                ("action = ?", wanted.action),
                ("at >= ?", wanted.since),
                ("at < ?", wanted.until),
            )
            if value is not None
        ),
    ]
    where = "".join(f" AND {condition}" for condition, _ in conditions)
    rows = yield from rows_of(f"{_SELECT}{where} ORDER BY {order}", wanted.tenant, *(value for _, value in conditions))
    return [AuditLine(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]
