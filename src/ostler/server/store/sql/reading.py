"""Reads that know no driver: a query is a generator that yields what to ask and is sent the rows.

So one text serves a database that is asked in a thread and one that is asked over a socket.
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Row = tuple[Any, ...]


class Read(NamedTuple):
    """One statement with a `?` for each value."""

    sql: str
    values: tuple[Any, ...]


Query = Generator[Read, Sequence[Row], T]
"""Yields reads, is sent the rows of each, and returns what they mean."""


class Dialect(NamedTuple):
    """Where the databases differ, as pieces of SQL."""

    turn_id: str
    turn_begin: str
    """The sequence of the first event of a turn."""
    turn_branches: str
    """Whether a turn goes on from another one than the one before it."""
    task_project: str
    task_tenant: str
    is_task: str
    folder_of: str
    """The session whose folder one works in, if that is another one."""
    actor: str
    """Who made a session."""
    has_files: str
    """Whether a session works in files of ours, not in a folder of a person."""
    has_label: str
    """Takes the name of a label and its value."""
    lacks_label: str
    """Takes the name of a label."""
    contains: str
    """Whether a column, to be put in, has a text in it, whatever the case."""
    is_settled: str
    """Whether nothing can be committed any more at a position before a chunk's."""
    last_position: str
    settled_position: str
    """The last position at or before which nothing can be committed any more."""


def rows_of(sql: str, *values: Any) -> Query[Sequence[Row]]:
    """All rows of one read."""
    rows = yield Read(sql, values)
    return rows


def row_of(sql: str, *values: Any) -> Query[Row | None]:
    """The first row of one read."""
    rows = yield Read(sql, values)
    return rows[0] if rows else None


def values_of(sql: str, *values: Any) -> Query[list[Any]]:
    """The first column of one read."""
    rows = yield Read(sql, values)
    return [row[0] for row in rows]


def trimmed(table: str, owner: str, of: str, most: int, most_bytes: int) -> Query[None]:
    """Forget what is settled beyond a number and a size; the newest are counted first."""
    beyond = (
        f"DELETE FROM {table} WHERE id IN (SELECT id FROM (SELECT id, "  # noqa: S608  fixed names
        "ROW_NUMBER() OVER newest AS place, SUM(LENGTH(body)) OVER newest AS total "
        f"FROM {table} WHERE {owner} = ? AND state <> 'waiting' WINDOW newest AS (ORDER BY at DESC, id DESC)"
        ") AS kept WHERE place > ? OR total > ?)"
    )
    yield from rows_of(beyond, of, most, most_bytes)
