"""The index of what was said in a table of the same database, which any of its servers brings up to date."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import asyncpg

from ostler.base.errors import StoreUnavailable
from ostler.server.store.postgres.connecting import FAILURES
from ostler.server.store.postgres.dialect import sendable
from ostler.server.store.search import Entry, Found, Wanted

T = TypeVar("T")

_NO_WORD = re.compile(r"[^\w]+|_")
"""What stands between words. PostgreSQL would take paths, hosts and so on as one word each, so it never sees any."""
_POSITION = "SELECT value FROM counters WHERE name = 'said'"
_GO_ON = "UPDATE counters SET value = $1 WHERE name = 'said' AND value = $2 RETURNING value"
_THERE = "SELECT id FROM sessions WHERE id = ANY($1) FOR KEY SHARE"
_PATIENCE_SECONDS = 10.0
_INSERT = """
INSERT INTO said (project, session, agent, first, role, time, body, words)
VALUES ($1, $2, $3, $4, $5, $6, $7, to_tsvector('simple', $8))
ON CONFLICT (session, first) DO UPDATE SET time = excluded.time, body = excluded.body, words = excluded.words
"""
_FIND = """
SELECT id, session, agent, first, role, time, body FROM said
WHERE words @@ ({query}) AND project = $1 AND id < $2 {filters} ORDER BY id DESC LIMIT $3
"""
_NO_LIMIT = 2**62


class PostgresSearch:
    """Implements SearchIndex."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def position(self) -> int:
        """Up to where it has everything, whoever took it in."""
        return int(await self._with(lambda connection: connection.fetchval(_POSITION)))

    async def add(self, entries: Sequence[Entry], after: int, upto: int) -> bool:
        """Take in what was said, unless another server has."""

        async def work(connection: asyncpg.Connection) -> bool:
            async with connection.transaction():
                went_on = await connection.fetchval(_GO_ON, upto, after)
                if went_on is not None and entries:
                    # locked until the end: who deletes one of them finds all that is said of it
                    there = await connection.fetch(_THERE, list({entry.session for entry in entries}))
                    live = {row["id"] for row in there}
                    rows = [(*entry, _spaced(entry.text)) for entry in entries if entry.session in live]
                    await connection.executemany(_INSERT, rows)
                return went_on is not None

        return await self._with(work)

    async def forget_deleted(self) -> None:
        """What is said in a deleted session is cleared together with its events."""

    async def find(self, wanted: Wanted) -> list[Found]:
        """Entries that fit, the newest first."""
        values: list[object] = [wanted.project, wanted.before or _NO_LIMIT, wanted.limit]
        filters = ""
        for name in ("agent", "session", "role"):
            if (value := getattr(wanted, name)) is not None:
                values.append(sendable(value))
                filters += f"AND {name} = ${len(values)} "
        queries = []
        for number, phrase in enumerate(wanted.phrases, 1):
            is_beginning = number == len(wanted.phrases) and not wanted.is_whole
            words = _spaced(phrase).split()
            values.append(" <-> ".join(words) + ":*" if is_beginning else " ".join(words))
            queries.append(f"{'to_tsquery' if is_beginning else 'phraseto_tsquery'}('simple', ${len(values)})")
        query = _FIND.format(query=" && ".join(queries), filters=filters)
        rows = await self._with(lambda connection: connection.fetch(query, *values))
        return [Found(*row) for row in rows]

    async def _with(self, work: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        try:
            async with self._pool.acquire(timeout=_PATIENCE_SECONDS) as connection:
                return await work(connection)
        except FAILURES as error:
            reason = f"the search index cannot be used ({error or type(error).__name__})"
            raise StoreUnavailable(reason=reason) from error


def _spaced(text: str) -> str:
    """Only words with spaces between them."""
    return _NO_WORD.sub(" ", text)
