"""The verbs of the store, each with the statement or query that does it; `store/protocol.py` says what they mean."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import asyncpg

from ostler.base.errors import StoreUnavailable, StoreUnreadable
from ostler.base.retry import delays
from ostler.base.state_lock import StateLock
from ostler.base.undo import undone_by
from ostler.server.store.access import Access
from ostler.server.store.audit import Audit
from ostler.server.store.postgres import jobs, statements
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.connecting import FAILURES, new_pool, passes, prepare
from ostler.server.store.postgres.dialect import POSTGRES, numbered, run, sendable
from ostler.server.store.postgres.managed_runners import PostgresManagedRunners
from ostler.server.store.postgres.owners import PostgresOwners
from ostler.server.store.postgres.prompts import PostgresPrompts
from ostler.server.store.postgres.runner_keys import PostgresRunnerKeys
from ostler.server.store.postgres.search import PostgresSearch
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.postgres.writer import Writer
from ostler.server.store.prompts import Prompts
from ostler.server.store.protocol import Jobs, Logs, ManagedRunners, Owners, RunnerKeys
from ostler.server.store.reads import Reads
from ostler.server.store.records import Append, AppendResult, Job
from ostler.server.store.schedules import Schedules
from ostler.server.store.search import SearchIndex
from ostler.server.store.sql.access import SqlAccess
from ostler.server.store.sql.audit import SqlAudit
from ostler.server.store.sql.reading import Query
from ostler.server.store.sql.reads import SqlReadRows
from ostler.server.store.sql.schedules import SqlSchedules
from ostler.server.store.sql.schema import SCHEMA_VERSION
from ostler.server.store.sql.templates import SqlTemplates
from ostler.server.store.sql.triggers import SqlTriggers
from ostler.server.store.sql.verbs import SqlLogs, SqlReads
from ostler.server.store.sql.webhooks import SqlWebhooks
from ostler.server.store.templates import Templates
from ostler.server.store.triggers import Triggers
from ostler.server.store.webhooks import Webhooks

P = ParamSpec("P")
T = TypeVar("T")
_READERS = 4
_WRITE_PATIENCE, _READ_PATIENCE = 90.0, 10.0
_FIRST_DELAY, _LONGEST_DELAY = 0.05, 1.0
_PROBE_SECONDS = 0.8
_ALONE = 0x05731E7
"""The lock of those that run alone; beside writers, which hold rows and wait for each other."""
_AWAY = "The database does not answer."


class _Reader:
    """Runs queries on a few connections; it sees everything that was committed before."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self.pool = pool
        self.bytes_read = 0
        self._away_since: float | None = None

    async def answers(self) -> bool:
        """Whether the database answers just now."""
        with suppress(TimeoutError, *FAILURES):
            async with asyncio.timeout(_PROBE_SECONDS), self.pool.acquire() as connection:
                return bool(await connection.fetchval("SELECT TRUE"))
        return False

    async def read(self, query: Callable[[], Query[T]]) -> T:
        """Run a query, again and again for a while if the database is away; those who come later wait no longer."""
        waits = delays(_FIRST_DELAY, _LONGEST_DELAY)
        while True:
            try:
                async with self.pool.acquire(timeout=_READ_PATIENCE) as connection:
                    result, size = await run(connection, query())
            except FAILURES as error:
                self._away_since = self._away_since or time.monotonic()
                if not passes(error) or time.monotonic() - self._away_since > _READ_PATIENCE:
                    raise StoreUnreadable(reason=str(error) or type(error).__name__) from error
                await asyncio.sleep(next(waits))
            else:
                self._away_since = None
                self.bytes_read += size
                return result

    async def alone(self, query: Callable[[], Query[None]]) -> None:
        """Run a query in a transaction of its own, after those of all servers that are run so."""
        try:
            async with self.pool.acquire(timeout=_READ_PATIENCE) as connection, connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock($1)", _ALONE)
                await run(connection, query())
        except FAILURES as error:
            raise StoreUnavailable(reason=str(error) or type(error).__name__) from error


class _Writing:
    """Has the writer of the database that its verbs write to."""

    _writer: Writer


def _writes(
    work: Callable[Concatenate[Transaction, P], Awaitable[T]],
) -> Callable[Concatenate[_Writing, P], "asyncio.Future[T]"]:
    def verb(self: _Writing, /, *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        return self._writer.submit(lambda transaction: work(transaction, *args, **kwargs))

    return verb


class PostgresJobs(_Writing):
    """The durable work in one database."""

    def __init__(self, reader: _Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    add = _writes(jobs.add)
    take = _writes(jobs.take)
    renew = _writes(jobs.renew)
    release = _writes(jobs.release)
    retry = _writes(jobs.retry)
    finish = _writes(jobs.finish)

    async def find(self, key: str) -> Job | None:
        """One job."""
        return await self._reader.read(lambda: jobs.find(key))

    async def next_due(self, kinds: Sequence[str], *, ahead: bool = False) -> float | None:
        """Seconds until one can be taken."""
        return await self._reader.read(lambda: jobs.next_due(kinds, ahead=ahead))


class PostgresStore(_Writing, SqlReads):
    """One database of a PostgreSQL server."""

    schema_version = SCHEMA_VERSION

    def __init__(self, reader: _Reader, writer: Writer, address: Address, lock: StateLock) -> None:
        super().__init__(reader, POSTGRES)
        self.logs: Logs = SqlLogs(reader, POSTGRES)
        self.jobs: Jobs = PostgresJobs(reader, writer)
        self._connections = reader
        self._writer = writer
        self.owners: Owners = PostgresOwners(reader, writer, address)
        self.runner_keys: RunnerKeys = PostgresRunnerKeys(reader, writer)
        self.managed_runners: ManagedRunners = PostgresManagedRunners(reader, writer)
        self.prompts: Prompts = PostgresPrompts(reader, writer)
        self.access: Access = SqlAccess(
            reader, lambda sql, values: writer.submit(lambda transaction: _change(transaction, sql, values))
        )
        self.audit: Audit = SqlAudit(reader, reader.alone)
        self.templates: Templates = SqlTemplates(reader, self._change)
        self.reads: Reads = SqlReadRows(reader, self._change)
        self.schedules: Schedules = SqlSchedules(reader, self._change)
        self.triggers: Triggers = SqlTriggers(reader, self._change)
        self.webhooks: Webhooks = SqlWebhooks(reader, self._change)
        self.search: SearchIndex = PostgresSearch(reader.pool)
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
            reader = _Reader(await new_pool(address, _READERS))
        return cls(reader, Writer(address, _WRITE_PATIENCE), address, lock)

    create_session = _writes(statements.create_session)
    update_spec = _writes(statements.update_spec)
    take_strays = _writes(statements.take_strays)
    delete_session = _writes(statements.delete_session)
    clear_some_events = _writes(statements.clear_some_events)
    remember_response = _writes(statements.remember_response)
    settled = _writes(statements.nothing)

    def _change(self, query: Callable[[], Query[T]]) -> "asyncio.Future[T]":
        async def work(transaction: Transaction) -> T:
            result, _ = await run(transaction.connection, query())
            return result

        return self._writer.submit(work)

    def append(self, append: Append) -> "asyncio.Future[AppendResult]":
        """Append a burst and everything that belongs to it."""
        return self._writer.submit(lambda transaction: transaction.append(append), append)

    async def wipe_deleted(self) -> bool:
        """Nothing: what is deleted leaves PostgreSQL's files with its own vacuum and the end of its log."""
        return True

    @property
    def bytes_read(self) -> int:
        """How much queries took out of the database so far."""
        return self._connections.bytes_read

    async def problem(self) -> str | None:
        """Why nothing can be read or written, known within a moment; no write is tried if none failed before."""
        if not await self._connections.answers():
            return _AWAY
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
        self._connections.pool.terminate()
        self._lock.release()


async def _change(transaction: Transaction, sql: str, values: tuple[Any, ...]) -> bool:
    status = await transaction.connection.execute(numbered(sql), *map(sendable, values))
    return not str(status).endswith(" 0")
