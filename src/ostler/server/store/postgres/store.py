"""The verbs of the store, each with the statement or query that does it; `store/protocol.py` says what they mean."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import asyncpg

from ostler.base.errors import StoreUnavailable
from ostler.base.retry import delays
from ostler.base.undo import undone_by
from ostler.server.store.lock import StateLock
from ostler.server.store.postgres import statements
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.connecting import FAILURES, passes, pool, prepare
from ostler.server.store.postgres.dialect import POSTGRES, run
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.postgres.writer import Writer
from ostler.server.store.protocol import Logs
from ostler.server.store.records import Append, AppendResult
from ostler.server.store.sql import log_queries, queries
from ostler.server.store.sql.reading import Query
from ostler.server.store.sql.schema import SCHEMA_VERSION

P = ParamSpec("P")
T = TypeVar("T")
_READERS = 4
_WRITE_PATIENCE, _READ_PATIENCE = 90.0, 10.0
_FIRST_DELAY, _LONGEST_DELAY = 0.05, 1.0


class _Reader:
    """Runs queries on a few connections; it sees everything that was committed before."""

    def __init__(self, connections: asyncpg.Pool) -> None:
        self.connections = connections
        self.bytes_read = 0
        self._away_since: float | None = None

    async def read(self, query: Callable[[], Query[T]]) -> T:
        """Run a query, again and again for a while if the database is away; those who come later wait no longer."""
        waits = delays(_FIRST_DELAY, _LONGEST_DELAY)
        while True:
            try:
                async with self.connections.acquire(timeout=_READ_PATIENCE) as connection:
                    result, size = await run(connection, query())
            except FAILURES as error:
                self._away_since = self._away_since or time.monotonic()
                if not passes(error) or time.monotonic() - self._away_since > _READ_PATIENCE:
                    raise StoreUnavailable(reason=str(error) or type(error).__name__) from error
                await asyncio.sleep(next(waits))
            else:
                self._away_since = None
                self.bytes_read += size
                return result


class _Verbs:
    """Has the connections that its verbs are done on."""

    def __init__(self, reader: _Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer


def _reads(query: Callable[P, Query[T]]) -> Callable[Concatenate[_Verbs, P], Coroutine[Any, Any, T]]:
    async def verb(self: _Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._reader.read(lambda: query(*args, **kwargs))

    return verb


def _writes(
    work: Callable[Concatenate[Transaction, P], Awaitable[T]],
) -> Callable[Concatenate[_Verbs, P], "asyncio.Future[T]"]:
    def verb(self: _Verbs, /, *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        return self._writer.submit(lambda transaction: work(transaction, *args, **kwargs))

    return verb


class PostgresLogs(_Verbs):
    """The logs of the sessions in one database."""

    events = _reads(log_queries.session_events)
    project_events = _reads(partial(log_queries.project_events, POSTGRES))
    last_position = _reads(partial(log_queries.last_position, POSTGRES))
    settled_position = _reads(partial(log_queries.settled_position, POSTGRES))
    size = _reads(log_queries.log_size)
    last_step = _reads(log_queries.last_step)
    items_after = _reads(log_queries.items_after)
    items_before = _reads(log_queries.items_before)
    items_since = _reads(log_queries.items_since)
    messages_after = _reads(log_queries.messages_after)
    lines = _reads(log_queries.newest_lines)
    artifacts = _reads(log_queries.newest_artifacts)
    snapshots = _reads(log_queries.session_snapshots)
    turns = _reads(log_queries.session_turns)
    find_turn = _reads(partial(log_queries.find_turn, POSTGRES))
    turn_around = _reads(partial(log_queries.turn_around, POSTGRES))
    branching_turns = _reads(partial(log_queries.branching_turns, POSTGRES))
    turns_within = _reads(log_queries.turns_within)
    find_ask = _reads(log_queries.find_ask)
    asks = _reads(log_queries.list_asks)


class PostgresStore(_Verbs):
    """One database of a PostgreSQL server."""

    schema_version = SCHEMA_VERSION

    def __init__(self, reader: _Reader, writer: Writer, lock: StateLock) -> None:
        super().__init__(reader, writer)
        self.logs: Logs = PostgresLogs(reader, writer)
        self.was_cut = lock.was_cut
        self._lock = lock

    @classmethod
    async def open(cls, url: str, folder: Path, *, boot: str) -> "PostgresStore":
        """Open the database and make its tables; fails if it cannot be reached or a newer version wrote it.

        The folder is what a server has beside it, for itself alone; `boot` is which start of the machine this is.
        """
        address = Address.reading(url)
        lock = StateLock.take(folder / "ostler.lock", boot)
        with undone_by(lock.drop):
            await prepare(address)
            reader = _Reader(await pool(address, _READERS))
        return cls(reader, Writer(address, _WRITE_PATIENCE), lock)

    create_session = _writes(statements.create_session)
    update_spec = _writes(statements.update_spec)
    delete_session = _writes(statements.delete_session)
    clear_some_events = _writes(statements.clear_some_events)
    deleted_with_events = _reads(queries.deleted_with_events)
    was_deleted = _reads(queries.was_deleted)
    find_session = _reads(queries.find_session)
    find_branches = _reads(partial(queries.find_branches, POSTGRES))
    page_sessions = _reads(partial(queries.page_sessions, POSTGRES))
    unfinished_sessions = _reads(queries.unfinished_sessions)
    ended_with_workspace = _reads(queries.ended_with_workspace)
    session_ids = _reads(queries.session_ids)
    workspaces_in_use = _reads(queries.workspaces_in_use)
    count_by_status = _reads(queries.count_by_status)
    count_by_project = _reads(partial(queries.count_by_project, POSTGRES))
    uncalled_webhooks = _reads(queries.uncalled_webhooks)
    forget_webhook = _writes(statements.forget_webhook)
    find_response = _reads(queries.find_response)
    remember_response = _writes(statements.remember_response)
    settled = _writes(statements.nothing)

    def append(self, append: Append) -> "asyncio.Future[AppendResult]":
        """Append a burst and everything that belongs to it."""
        return self._writer.submit(lambda transaction: transaction.append(append), append)

    async def claim(self, owner: str, session_ids: Sequence[str] | None = None) -> int:
        """Have these sessions, or all, from now on."""
        return await self._writer.submit(lambda transaction: statements.claim(transaction, owner, session_ids))

    @property
    def bytes_read(self) -> int:
        """How much queries took out of the database so far."""
        return self._reader.bytes_read

    async def problem(self) -> str | None:
        """Why nothing can be written, if the last write failed and the next would too."""
        if self._writer.problem is None or not self._writer.is_idle:
            return self._writer.problem
        try:
            await self._writer.submit(statements.touch)
        except StoreUnavailable as error:
            return str(error.fields["reason"])
        return None

    async def close(self) -> None:
        """Write what is pending and let go of the database."""
        await self._writer.close()
        self._reader.connections.terminate()
        self._lock.release()
