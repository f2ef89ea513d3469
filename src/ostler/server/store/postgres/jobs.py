"""Durable work in PostgreSQL, by the clock of the database; `store/protocol.py` says what its verbs mean."""

from collections.abc import Sequence

from ostler.server.store.postgres.bursts import NOW
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.records import Job, NewJob
from ostler.server.store.sql.reading import Query, row_of, values_of

_COLUMNS = f"key, kind, body, tries, {NOW} - since"
_TAKE = f"""
UPDATE jobs SET owner = $1, until = greatest(due, {NOW}) + $2 WHERE key IN (
    SELECT key FROM jobs WHERE kind = ANY($3) AND until <= {NOW} AND ($4 OR due <= {NOW})
    ORDER BY due LIMIT $5 FOR UPDATE SKIP LOCKED
) RETURNING {_COLUMNS}
"""  # noqa: S608  fixed words


async def add(transaction: Transaction, new: NewJob) -> None:
    """Add it unless its key is there."""
    await transaction.add_jobs([new])


def find(key: str) -> Query[Job | None]:
    """One job."""
    row = yield from row_of(f"SELECT {_COLUMNS} FROM jobs WHERE key = ?", key)  # noqa: S608  fixed columns
    return _job(*row) if row is not None else None


def next_due(kinds: Sequence[str], *, ahead: bool = False) -> Query[float | None]:
    """Seconds until one can be taken."""
    when = "until" if ahead else "greatest(due, until)"
    (wait,) = yield from values_of(f"SELECT min({when}) - {NOW} FROM jobs WHERE kind = ANY(?)", list(kinds))  # noqa: S608  fixed words
    return None if wait is None else float(wait)


async def take(
    transaction: Transaction, owner: str, kinds: Sequence[str], limit: int, *, seconds: float, ahead: bool = False
) -> list[Job]:
    """Have some of those that nobody has, and that no other server is about to take."""
    rows = await transaction.connection.fetch(_TAKE, owner, seconds, list(kinds), ahead, limit)
    return [_job(*row) for row in rows]


async def renew(transaction: Transaction, owner: str, keys: Sequence[str], *, seconds: float) -> None:
    """Have them longer."""
    update = f"UPDATE jobs SET until = {NOW} + $3 WHERE owner = $1 AND key = ANY($2)"  # noqa: S608  fixed words
    await transaction.connection.execute(update, owner, list(keys), seconds)


async def release(transaction: Transaction, owner: str) -> None:
    """Have them no longer."""
    await transaction.connection.execute("UPDATE jobs SET owner = '', until = 0 WHERE owner = $1", owner)


async def retry(transaction: Transaction, key: str, owner: str, *, after: float) -> None:
    """Have it no longer; it is due later."""
    update = f"UPDATE jobs SET tries = tries + 1, due = {NOW} + $3, owner = '', until = 0 WHERE key = $1 AND owner = $2"  # noqa: S608  fixed words
    await transaction.connection.execute(update, key, owner, after)


async def finish(transaction: Transaction, key: str) -> None:
    """Remove it."""
    await transaction.connection.execute("DELETE FROM jobs WHERE key = $1", key)


def _job(key: str, kind: str, body: bytes, tries: int, age: float) -> Job:
    return Job(key=key, kind=kind, body=body, tries=tries, age=age)
