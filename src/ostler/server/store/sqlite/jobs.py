"""Durable work in SQLite, as functions of a connection; `store/protocol.py` says what they mean."""

import sqlite3
from collections.abc import Sequence

from ostler.base.clock import steady_seconds
from ostler.server.store.records import Job, NewJob
from ostler.server.store.sql.reading import Query, row_of, values_of

_COLUMNS = "key, kind, body, tries, ? - since"


def add(connection: sqlite3.Connection, *new: NewJob) -> None:
    """Add those whose keys are not there."""
    if new:
        now = steady_seconds()
        rows = [(job.key, job.kind, job.body, now + job.after, now + job.after) for job in new]
        connection.executemany("INSERT OR IGNORE INTO jobs VALUES (?, ?, ?, ?, ?, 0, '', 0)", rows)


def find(key: str) -> Query[Job | None]:
    """One job."""
    row = yield from row_of(f"SELECT {_COLUMNS} FROM jobs WHERE key = ?", steady_seconds(), key)  # noqa: S608  fixed columns
    return _job(*row) if row is not None else None


def next_due(kinds: Sequence[str], *, ahead: bool = False) -> Query[float | None]:
    """Seconds until one can be taken."""
    when = "until" if ahead else "max(due, until)"
    query = f"SELECT min({when}) - ? FROM jobs WHERE kind IN ({_marks(kinds)})"  # noqa: S608  only marks
    (wait,) = yield from values_of(query, steady_seconds(), *kinds)
    return None if wait is None else float(wait)


def take(
    connection: sqlite3.Connection, owner: str, kinds: Sequence[str], limit: int, *, seconds: float, ahead: bool = False
) -> list[Job]:
    """Have some of those that nobody has."""
    now = steady_seconds()
    chosen = (
        f"SELECT key FROM jobs WHERE kind IN ({_marks(kinds)}) AND until <= ? AND (? OR due <= ?) "  # noqa: S608  only marks
        "ORDER BY due LIMIT ?"
    )
    rows = connection.execute(
        f"UPDATE jobs SET owner = ?, until = max(due, ?) + ? WHERE key IN ({chosen}) RETURNING {_COLUMNS}",  # noqa: S608  fixed words
        (owner, now, seconds, *kinds, now, ahead, now, limit, now),
    ).fetchall()
    return [_job(*row) for row in rows]


def renew(connection: sqlite3.Connection, owner: str, keys: Sequence[str], *, seconds: float) -> None:
    """Have them longer."""
    update = f"UPDATE jobs SET until = ? WHERE owner = ? AND key IN ({_marks(keys)})"  # noqa: S608  only marks
    connection.execute(update, (steady_seconds() + seconds, owner, *keys))


def release(connection: sqlite3.Connection, owner: str) -> None:
    """Have them no longer."""
    connection.execute("UPDATE jobs SET owner = '', until = 0 WHERE owner = ?", (owner,))


def retry(connection: sqlite3.Connection, key: str, owner: str, *, after: float) -> None:
    """Have it no longer; it is due later."""
    connection.execute(
        "UPDATE jobs SET tries = tries + 1, due = ?, owner = '', until = 0 WHERE key = ? AND owner = ?",
        (steady_seconds() + after, key, owner),
    )


def finish(connection: sqlite3.Connection, key: str) -> None:
    """Remove it."""
    connection.execute("DELETE FROM jobs WHERE key = ?", (key,))


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" for _ in values)


def _job(key: str, kind: str, body: bytes, tries: int, age: float) -> Job:
    return Job(key=key, kind=kind, body=body, tries=tries, age=age)
