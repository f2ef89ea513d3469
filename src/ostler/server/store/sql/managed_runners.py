"""What is read and written of the runners that servers make themselves."""

from typing import Any

import msgspec

from ostler.server.store.records import ManagedRunner
from ostler.server.store.sql.reading import Query, rows_of

_COLUMNS = "id, pool, server, runner, state, created_at"
COUNT = "SELECT count(*) FROM managed_runners WHERE pool = ?"
INSERT = f"INSERT INTO managed_runners ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608  fixed columns
UPDATE = "UPDATE managed_runners SET server = ?, runner = ?, state = ? WHERE id = ? AND server = ?"
DELETE = "DELETE FROM managed_runners WHERE id = ?"


def every() -> Query[list[ManagedRunner]]:
    """Every one."""
    rows = yield from rows_of(f"SELECT {_COLUMNS} FROM managed_runners ORDER BY created_at, id")  # noqa: S608  fixed columns
    names = _COLUMNS.split(", ")
    return [msgspec.convert(dict(zip(names, row, strict=True)), ManagedRunner) for row in rows]


def inserted(new: ManagedRunner) -> tuple[Any, ...]:
    """What INSERT is given."""
    return new.id, new.pool, new.server, new.runner, new.state, new.created_at


def updated(row: ManagedRunner, server: str) -> tuple[Any, ...]:
    """What UPDATE is given."""
    return row.server, row.runner, row.state, row.id, server
