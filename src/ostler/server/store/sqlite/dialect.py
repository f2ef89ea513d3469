"""How SQLite says what the reads of all SQL stores ask for, and how they are run in a thread."""

import sqlite3
from typing import TypeVar

from ostler.server.store.sql.reading import Dialect, Query

T = TypeVar("T")

SQLITE = Dialect(
    turn_id="json_extract(CAST(turn AS TEXT), '$.turn_id')",
    turn_begin="json_extract(CAST(turn AS TEXT), '$.first_sequence')",
    turn_branches="json_extract(CAST(turn AS TEXT), '$.after') IS NOT NULL",
    task_project="json_extract(CAST(spec AS TEXT), '$.task.project_id')",
    task_tenant="coalesce(json_extract(CAST(spec AS TEXT), '$.task.tenant_id'), "
    "json_extract(CAST(spec AS TEXT), '$.grant.tenant'))",
    is_task="json_type(CAST(spec AS TEXT), '$.task') = 'object'",
    folder_of="json_extract(CAST(spec AS TEXT), '$.folder_of')",
    actor="json_extract(CAST(spec AS TEXT), '$.grant.actor')",
    has_files="json_extract(CAST(spec AS TEXT), '$.workspace') IS NOT NULL "
    "AND coalesce(json_extract(CAST(spec AS TEXT), '$.workspace.repo.mode'), 'git') <> 'checkout'",
    has_label="EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ? AND label.value = ?)",
    lacks_label="NOT EXISTS (SELECT 1 FROM json_each(labels) AS label WHERE label.key = ?)",
    contains="instr(lower(coalesce({}, '')), lower(?))",
    is_settled="TRUE",
    last_position="SELECT value FROM counters WHERE name = 'position'",
    settled_position="SELECT value FROM counters WHERE name = 'position'",
)


def run(connection: sqlite3.Connection, query: Query[T]) -> T:
    """Ask what a query wants to know until it is done."""
    try:
        read = next(query)
        while True:
            read = query.send(connection.execute(read.sql, read.values).fetchall())
    except StopIteration as done:
        result: T = done.value
        return result
