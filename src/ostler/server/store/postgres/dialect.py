"""How PostgreSQL says what the reads of all SQL stores ask for, and how they are run on a connection."""

import functools
from typing import Any, TypeVar

import asyncpg

from ostler.server.store.sql.reading import Dialect, Query

T = TypeVar("T")

EVENT_BITS = 16
"""Of a position: the lower bits number the events of a transaction, those above are the transaction's own number."""
FIRST_OF_TRANSACTION = (
    f"(({{}}::text::bigint + (SELECT value FROM counters WHERE name = 'transactions')) << {EVENT_BITS})"  # noqa: S608
)
_SETTLED = FIRST_OF_TRANSACTION.format("pg_snapshot_xmin(pg_current_snapshot())")

POSTGRES = Dialect(
    turn_id="turn_id",
    turn_begin="first_sequence",
    turn_branches="branches",
    task_project="task_project",
    task_tenant="task_tenant",
    is_task="is_task",
    folder_of="(convert_from(spec, 'UTF8')::json->>'folder_of')",
    actor="(convert_from(spec, 'UTF8')::json#>>'{grant,actor}')",
    has_files="(convert_from(spec, 'UTF8')::json#>>'{workspace}') IS NOT NULL "
    "AND coalesce(convert_from(spec, 'UTF8')::json#>>'{workspace,repo,mode}', 'git') <> 'checkout'",
    has_label="labels @> jsonb_build_object(?::text, ?::text)",
    lacks_label="NOT jsonb_exists(labels, ?)",
    contains="strpos(lower(coalesce({}, '')), lower(?)) > 0",
    is_settled=f"position < {_SETTLED}",
    last_position="SELECT coalesce(max(position), 0) FROM chunks",
    settled_position=f"SELECT {_SETTLED} - 1",
)


async def run(connection: asyncpg.Connection, query: Query[T]) -> tuple[T, int]:
    """Ask what a query wants to know until it is done; also how many bytes were read."""
    size = 0
    try:
        read = next(query)
        while True:
            found = await connection.fetch(numbered(read.sql), *map(sendable, read.values))
            rows = [tuple(row) for row in found]
            size += sum(len(value) if isinstance(value, bytes | str) else 8 for row in rows for value in row)
            read = query.send(rows)
    except StopIteration as done:
        return done.value, size


@functools.lru_cache(maxsize=256)
def numbered(sql: str) -> str:
    """The same statement with `$1`, `$2` ... for its values."""
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))


def sendable(value: Any) -> Any:
    """A value as PostgreSQL takes it: its texts hold no NUL. What a log says word by word is bytes and keeps it."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
