"""The door to the database: opens it for one server, writes through one thread, reads through a few."""

import asyncio
import fcntl
import functools
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from ostler.base.errors import DatabaseInUse, StoreUnavailable
from ostler.base.undo import undone_by
from ostler.server.store.sqlite import statements
from ostler.server.store.sqlite.ledger import Ledger
from ostler.server.store.sqlite.schema import migrate
from ostler.server.store.sqlite.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=sqlite3.Connection)

_LITTLE_BYTES = 2**20


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

    def __init__(self, path: Path, writer: Writer, lock: int, *, was_cut: bool) -> None:
        self._path = path
        self._writer = writer
        self._lock = lock
        self.was_cut = was_cut
        """Whether the machine stopped while a server had this database: files beside it may be gone."""
        self._local = threading.local()
        self._reads: list[Reads] = []
        self._readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="ostler-reader")

    @classmethod
    def open(cls, path: Path, *, sync: Literal["full", "normal"], boot: str) -> "Database":
        """Open or create the database, from within the loop that its writes are awaited in."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _take_lock(path)
        was_cut = _take_over(lock, boot)
        with undone_by(lambda: os.close(lock)):
            ledger = _connect(path, Ledger)
            ledger.execute("PRAGMA journal_mode = WAL")
            ledger.execute(f"PRAGMA synchronous = {sync}")
            migrate(ledger, path=str(path))
        return cls(path, Writer(ledger, asyncio.get_running_loop()), lock, was_cut=was_cut)

    def write(
        self, work: Callable[Concatenate[Ledger, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> "asyncio.Future[T]":
        """Queue a statement; order of calls is order of commits."""
        return self._writer.submit(lambda ledger: work(ledger, *args, **kwargs))

    async def read(
        self, query: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query on a reading thread; it sees everything that was committed before."""
        call = functools.partial(self._query, query, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._readers, call)

    def _query(self, query: Callable[..., T], *args: object, **kwargs: object) -> T:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = _connect(self._path, sqlite3.Connection)
            self._reads.append(Reads())
            connection.row_factory = self._reads[-1].count
        return query(connection, *args, **kwargs)

    @property
    def bytes_read(self) -> int:
        """How much queries took out of the database so far."""
        return sum(reads.bytes for reads in self._reads)

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
        os.truncate(self._lock, 0)  # who finds nothing in it knows that we were not cut off
        os.close(self._lock)


def _connect(path: Path, kind: type[C]) -> C:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10, factory=kind)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _take_lock(path: Path) -> int:
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 32).decode(errors="replace").partition("\n")[0].strip()
        os.close(descriptor)
        raise DatabaseInUse(path=path, holder=f" (process {holder})" if holder else "") from None
    return descriptor


def _take_over(lock: int, boot: str) -> bool:
    """Say in the lock who has it, and since which start of the machine; whether its last holder had another one."""
    _, _, before = os.pread(lock, 100, 0).decode(errors="replace").strip().partition("\n")
    with suppress(OSError):  # a full disk
        os.pwrite(lock, f"{os.getpid():<20}\n{boot}\n".encode(), 0)
        os.fsync(lock)
    return before not in {"", boot}
