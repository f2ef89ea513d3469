"""The verbs of the store, each with the statement or query that does it; `store/protocol.py` says what they mean."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from ostler.server.store.access import Access
from ostler.server.store.audit import Audit
from ostler.server.store.prompts import Prompts
from ostler.server.store.protocol import Jobs, Logs, ManagedRunners, Owners, RunnerKeys
from ostler.server.store.reads import Reads
from ostler.server.store.records import Job
from ostler.server.store.schedules import Schedules
from ostler.server.store.search import SearchIndex
from ostler.server.store.sql.access import SqlAccess
from ostler.server.store.sql.audit import SqlAudit
from ostler.server.store.sql.reads import SqlReadRows
from ostler.server.store.sql.schedules import SqlSchedules
from ostler.server.store.sql.schema import SCHEMA_VERSION
from ostler.server.store.sql.templates import SqlTemplates
from ostler.server.store.sql.triggers import SqlTriggers
from ostler.server.store.sql.verbs import SqlLogs, SqlReads
from ostler.server.store.sql.webhooks import SqlWebhooks
from ostler.server.store.sqlite import jobs, statements
from ostler.server.store.sqlite.database import Database
from ostler.server.store.sqlite.dialect import SQLITE
from ostler.server.store.sqlite.ledger import Ledger
from ostler.server.store.sqlite.managed_runners import SqliteManagedRunners
from ostler.server.store.sqlite.owners import SqliteOwners
from ostler.server.store.sqlite.prompts import SqlitePrompts
from ostler.server.store.sqlite.runner_keys import SqliteRunnerKeys
from ostler.server.store.sqlite.search import SqliteSearch
from ostler.server.store.templates import Templates
from ostler.server.store.triggers import Triggers
from ostler.server.store.webhooks import Webhooks

P = ParamSpec("P")
T = TypeVar("T")


class _Writing:
    """Has the database that its verbs write to."""

    _database: Database


def _writes(
    work: Callable[Concatenate[Ledger, P], T],
) -> Callable[Concatenate[_Writing, P], "asyncio.Future[T]"]:
    def verb(self: _Writing, /, *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        return self._database.write(work, *args, **kwargs)

    return verb


class SqliteJobs(_Writing):
    """The durable work in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    add = _writes(jobs.add)
    take = _writes(jobs.take)
    renew = _writes(jobs.renew)
    release = _writes(jobs.release)
    retry = _writes(jobs.retry)
    finish = _writes(jobs.finish)

    async def find(self, key: str) -> Job | None:
        """One job."""
        return await self._database.read(lambda: jobs.find(key))

    async def next_due(self, kinds: Sequence[str], *, ahead: bool = False) -> float | None:
        """Seconds until one can be taken."""
        return await self._database.read(lambda: jobs.next_due(kinds, ahead=ahead))


class SqliteStore(_Writing, SqlReads):
    """One open database."""

    schema_version = SCHEMA_VERSION

    def __init__(self, database: Database, folder: Path) -> None:
        super().__init__(database, SQLITE)
        self._database = database
        self.logs: Logs = SqlLogs(database, SQLITE)
        self.owners: Owners = SqliteOwners(database)
        self.runner_keys: RunnerKeys = SqliteRunnerKeys(database)
        self.managed_runners: ManagedRunners = SqliteManagedRunners(database)
        self.prompts: Prompts = SqlitePrompts(database)
        self.access: Access = SqlAccess(database, lambda sql, values: database.write(_change, sql, values))
        self.audit: Audit = SqlAudit(database, database.change)
        self.templates: Templates = SqlTemplates(database, database.change)
        self.reads: Reads = SqlReadRows(database, database.change)
        self.schedules: Schedules = SqlSchedules(database, database.change)
        self.triggers: Triggers = SqlTriggers(database, database.change)
        self.webhooks: Webhooks = SqlWebhooks(database, database.change)
        self.jobs: Jobs = SqliteJobs(database)
        self._search = SqliteSearch(folder)
        self.search: SearchIndex = self._search
        self.was_cut = database.was_cut

    @classmethod
    async def open(cls, path: Path, *, sync: Literal["full", "normal"], boot: str) -> "SqliteStore":
        """Open or create the database; fails if another server has it or a newer version wrote it.

        `boot` is which start of the machine this is.
        """
        return cls(Database.open(path, sync=sync, boot=boot), path.parent)

    create_session = _writes(statements.create_session)
    append = _writes(statements.append_burst)
    update_spec = _writes(statements.update_spec)
    take_strays = _writes(statements.take_strays)
    delete_session = _writes(statements.delete_session)
    clear_some_events = _writes(statements.clear_some_events)
    remember_response = _writes(statements.remember_response)
    settled = _writes(statements.nothing)

    @property
    def bytes_read(self) -> int:
        """How much queries took out of the database so far."""
        return self._database.bytes_read

    async def wipe_deleted(self) -> bool:
        """Leave nothing of what was deleted in the database's log."""
        return await self._database.empty_log()

    async def problem(self) -> str | None:
        """Why nothing can be written, if the last commit failed and the next would too."""
        return await self._database.problem()

    async def close(self) -> None:
        """Write what is pending and give the database back."""
        self._search.close()
        await self._database.close()


def _change(connection: sqlite3.Connection, sql: str, values: tuple[Any, ...]) -> bool:
    return connection.execute(sql, values).rowcount > 0
