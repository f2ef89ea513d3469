"""The door to the database: opens it for one server, writes through one thread, reads through a few."""

import asyncio
import queue
import shutil
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from ostler.base.errors import OstlerError, StoreUnavailable
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.base.state_lock import StateLock
from ostler.base.tasks import Outcome, settle
from ostler.base.undo import undone_by
from ostler.server.store.errors import Refused
from ostler.server.store.sql.reading import Query
from ostler.server.store.sqlite import statements
from ostler.server.store.sqlite.dialect import run
from ostler.server.store.sqlite.ledger import Ledger
from ostler.server.store.sqlite.schema import migrate

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=sqlite3.Connection)


log = Log(__name__)
Work = Callable[[Ledger], Any]
Job = tuple[Work, "asyncio.Future[Any]"]

_LITTLE_BYTES = 2**20
_LOG_SECONDS = 1.0
"""How long a reader is waited for before its log is left for later; commits wait as long."""


class Writer:
    """Runs jobs in the order they were submitted; a job's future is done only after its commit is on disk.

    Grouping needs no timer: while one commit waits for the disk, the next group gathers.
    """

    def __init__(self, ledger: Ledger, loop: asyncio.AbstractEventLoop) -> None:
        self._ledger = ledger
        self._loop = loop
        self.is_refused = False
        """Whether the disk did not take the last commit."""
        self._submitted: list[Job] = []
        self._groups: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ostler-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Ledger], T]) -> "asyncio.Future[T]":
        """Queue a job; its SQL becomes durable together with its group, or not at all."""
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._submitted:  # whatever else is ready now comes along, and the thread is woken once
            self._loop.call_soon(self._hand_over)
        self._submitted.append((work, future))
        return future

    def _hand_over(self) -> None:
        if self._submitted:
            self._groups.put(self._submitted)
            self._submitted = []

    async def close(self) -> None:
        """Finish everything submitted so far, then end the thread."""
        self._hand_over()
        self._groups.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._ledger.close()

    def _run(self) -> None:
        while self._write_next():  # what a group held is let go of before the next one is waited for
            continue

    def _write_next(self) -> bool:
        """Wait for a group and commit it; False when there will be no more."""
        first = self._groups.get()
        if first is None:
            return False
        group, ended = self._gather(first)
        self._loop.call_soon_threadsafe(settle, self._commit(group))
        return not ended

    def _gather(self, group: list[Job]) -> tuple[list[Job], bool]:
        while not self._groups.empty():
            more = self._groups.get()
            if more is None:
                return group, True
            group += more
        return group, False

    def _commit(self, group: list[Job]) -> list[Outcome]:
        try:
            outcomes = self._performed(group)
            failpoint("commit.before", sqlite3.OperationalError)
            self._ledger.commit()
        except sqlite3.Error as error:
            log.error("store.commit_failed", reason=str(error), jobs=len(group))
            self._ledger.rollback()
            self.is_refused = True
            return [(future, None, StoreUnavailable(reason=str(error))) for _, future in group]
        except Exception as error:  # a value that cannot be written, found only now
            log.error("store.group_failed", jobs=len(group), exc_info=error)
            self._ledger.rollback()
            return [(future, None, StoreUnavailable(reason=str(error))) for _, future in group]
        self.is_refused = False
        failpoint("commit.after")
        return outcomes

    def _performed(self, group: list[Job]) -> list[Outcome]:
        """Run all jobs; only when one fails is it worth to be able to undo each by itself, and they run again."""
        self._ledger.begin()
        try:
            return [(future, work(self._ledger), None) for work, future in group]
        except Exception as error:
            if _is_of_database(error):
                raise
            self._ledger.rollback()
        self._ledger.begin()
        return [self._perform(work, future) for work, future in group]

    def _perform(self, work: Work, future: "asyncio.Future[Any]") -> Outcome:
        """Run one job so that its failure undoes only itself; an error of the database itself ends the group."""
        before = self._ledger.attempt()
        try:
            result = work(self._ledger)
        except Exception as error:
            if _is_of_database(error):
                raise
            if not isinstance(error, OstlerError | Refused | sqlite3.IntegrityError):
                log.error("store.job_failed", exc_info=error)
            self._ledger.give_up(before)
            return future, None, error
        finally:
            if self._ledger.in_transaction:
                self._ledger.execute("RELEASE job")
        return future, result, None


class Reads:
    """Counts what one reading thread takes out of the database."""

    def __init__(self) -> None:
        self.bytes = 0

    def count(self, _: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take note of a row."""
        self.bytes += sum(len(value) if isinstance(value, bytes | str) else 8 for value in row)
        return row


class Database:
    """One open database."""

    def __init__(self, path: Path, writer: Writer, lock: StateLock) -> None:
        self._path = path
        self._writer = writer
        self._lock = lock
        self.was_cut = lock.was_cut
        self._local = threading.local()
        self._reads: list[Reads] = []
        self._readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="ostler-reader")

    @classmethod
    def open(cls, path: Path, *, sync: Literal["full", "normal"], boot: str) -> "Database":
        """Open or create the database, from within the loop that its writes are awaited in."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = StateLock.take(path.with_suffix(".lock"), boot)
        with undone_by(lock.drop):
            ledger = _connect(path, Ledger)
            ledger.execute("PRAGMA journal_mode = WAL")
            ledger.execute(f"PRAGMA synchronous = {sync}")
            ledger.execute("PRAGMA secure_delete = ON")  # also in pages that nothing uses any more
            migrate(ledger, path=str(path))
            empty_log(ledger)
        return cls(path, Writer(ledger, asyncio.get_running_loop()), lock)

    def write(
        self, work: Callable[Concatenate[Ledger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> "asyncio.Future[T]":
        """Queue a statement; order of calls is order of commits."""
        return self._writer.submit(lambda ledger: work(ledger, *args, **kwargs))

    def change(self, query: Callable[[], Query[T]]) -> "asyncio.Future[T]":
        """Queue a query that changes something; it sees everything that was queued before."""
        return self._writer.submit(lambda ledger: run(ledger, query()))

    async def read(self, query: Callable[[], Query[T]]) -> T:
        """Run a query on a reading thread; it sees everything that was committed before."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._run, query())

    def _run(self, query: Query[T]) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = _connect(self._path, sqlite3.Connection)
            self._reads.append(Reads())
            connection.row_factory = self._reads[-1].count
        return run(connection, query)

    @property
    def bytes_read(self) -> int:
        """How much queries took out of the database so far."""
        return sum(reads.bytes for reads in self._reads)

    async def empty_log(self) -> bool:
        """Bring what was written to the database's own file and leave nothing in its log; False if it is being read."""
        return await asyncio.to_thread(self._empty_log)

    def _empty_log(self) -> bool:
        with closing(_connect(self._path, sqlite3.Connection, timeout=_LOG_SECONDS)) as connection:
            return empty_log(connection)

    async def problem(self) -> str | None:
        """Why nothing can be written, if the last commit failed and the next would too."""
        if not self._writer.is_refused:
            return None
        if shutil.disk_usage(self._path.parent).free < _LITTLE_BYTES:  # the log may still have room for something small
            return "its disk is full"
        try:
            await self.write(statements.touch)
        except StoreUnavailable as error:
            return str(error.fields["reason"])
        return None

    async def close(self) -> None:
        """Write what is pending and give the database back."""
        await self._writer.close()
        self._readers.shutdown()
        self._lock.release()


def _is_of_database(error: Exception) -> bool:
    """Whether the jobs beside the one that raised it cannot be done either."""
    return isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError)


def empty_log(connection: sqlite3.Connection) -> bool:
    """What `Database.empty_log` does, on any database; who writes waits so long."""
    try:
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(reason=str(error)) from error
    return not is_busy


def _connect(path: Path, kind: type[C], timeout: float = 10) -> C:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=timeout, factory=kind)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection
