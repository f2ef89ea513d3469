"""The index of what was said in a file of its own beside the database: it has another writer, and can be made anew."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from ostler.base.errors import StoreUnavailable
from ostler.base.logs import Log
from ostler.base.private import make_database
from ostler.server.store.search import Entry, Found, Wanted
from ostler.server.store.sqlite.database import empty_log

T = TypeVar("T")
log = Log(__name__)

_VERSION = 1
"""Of the tables; an index of another one is made anew."""
_SCHEMA = """
BEGIN IMMEDIATE;
DROP TABLE IF EXISTS words;
DROP TABLE IF EXISTS said;
DROP TABLE IF EXISTS cursors;
CREATE TABLE said (
    id INTEGER PRIMARY KEY,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    first INTEGER NOT NULL,
    role TEXT NOT NULL,
    time TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX said_by_session ON said (session, first);
CREATE VIRTUAL TABLE words USING fts5(
    body, content = 'said', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);
CREATE TABLE cursors (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO cursors VALUES ('position', 0), ('deleted', 0);
"""
_FORGOTTEN_ROWS = 500


class SqliteSearch:
    """Implements SearchIndex; nothing is opened before it is used."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "search.db"
        self._store = folder / "ostler.db"
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ostler-indexer")
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ostler-searcher")
        self._connections: dict[int, sqlite3.Connection] = {}
        self._opening = threading.Lock()

    async def position(self) -> int:
        """Up to where it has everything."""
        return await self._run(self._writer, lambda connection: _cursor(connection, "position"))

    async def add(self, entries: Sequence[Entry], after: int, upto: int) -> bool:
        """Take in what was said; nobody else does that here."""

        def work(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                for entry in entries:
                    _add(connection, entry)
                _set_cursor(connection, "position", upto)
            return True

        return await self._run(self._writer, work)

    async def forget_deleted(self) -> None:
        """Have nothing of sessions that are deleted; a little at a time, so that nobody waits."""
        has_forgotten = False
        while await self._run(self._writer, self._forget_some):
            has_forgotten = True
        if has_forgotten:
            await self._run(self._writer, _merge)
            await self._run(self._writer, empty_log)

    def _forget_some(self, connection: sqlite3.Connection) -> bool:
        """Of the session that was deleted next; False when there is none."""
        query = "SELECT rowid, id FROM deleted_sessions WHERE rowid > ? ORDER BY rowid LIMIT 1"
        if (row := self._of_store(query, _cursor(connection, "deleted"))) is None:
            return False
        number, session = row
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            query = "SELECT id, body FROM said WHERE session = ? LIMIT ?"
            rows = connection.execute(query, (session, _FORGOTTEN_ROWS)).fetchall()
            for each, body in rows:
                _remove(connection, each, body)
            if len(rows) < _FORGOTTEN_ROWS:
                _set_cursor(connection, "deleted", number)
        return True

    async def find(self, wanted: Wanted) -> list[Found]:
        """Entries that fit, the newest first: to rank them would take as long as to read all that fit."""
        where, values = ["words MATCH ?", "project = ?"], [_match(wanted), wanted.project]
        for name in ("agent", "session", "role"):
            if (value := getattr(wanted, name)) is not None:
                where.append(f"{name} = ?")
                values.append(value)
        query = (
            "SELECT id, session, agent, first, role, time, said.body FROM words JOIN said ON id = words.rowid "  # noqa: S608  fixed words
            f"WHERE {' AND '.join(where)} AND words.rowid < ? ORDER BY words.rowid DESC LIMIT ?"
        )
        before = wanted.before if wanted.before is not None else 2**62

        def work(connection: sqlite3.Connection) -> list[Found]:
            return [Found(*row) for row in connection.execute(query, (*values, before, wanted.limit))]

        return await self._run(self._reader, work)

    def close(self) -> None:
        """Let go of the file, when what is under way is done."""
        for threads in (self._writer, self._reader):
            threads.shutdown(cancel_futures=True)
        for connection in self._connections.values():
            connection.close()

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[sqlite3.Connection], T]) -> T:
        def attempt() -> T:
            try:
                return work(self._connection())
            except (OSError, sqlite3.OperationalError) as error:  # a full disk, a missing right: it may pass
                raise StoreUnavailable(reason=f"the search index cannot be used ({error})") from error
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:
                    raise  # no damage, but a mistake of ours
                self._discard()
                raise StoreUnavailable(reason=f"the search index was damaged ({error}) and is made anew") from error

        return await asyncio.get_running_loop().run_in_executor(threads, attempt)

    def _connection(self) -> sqlite3.Connection:
        thread = threading.get_ident()
        with self._opening:
            if thread not in self._connections:
                self._connections[thread] = self._opened()
            return self._connections[thread]

    def _opened(self) -> sqlite3.Connection:
        make_database(self._path)
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=10)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION or self._is_ahead(connection):
            connection.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT")
        return connection

    def _is_ahead(self, connection: sqlite3.Connection) -> bool:
        """Whether it is the index of a later state of the store, which was restored since."""
        (last,) = self._of_store("SELECT value FROM counters WHERE name = 'position'") or (0,)
        return _cursor(connection, "position") > int(last)

    def _of_store(self, query: str, *values: int) -> tuple[Any, ...] | None:
        """One row of the database that the index is of."""
        with closing(sqlite3.connect(f"{self._store.absolute().as_uri()}?mode=ro", uri=True, timeout=10)) as store:
            row: tuple[Any, ...] | None = store.execute(query, values).fetchone()
            return row

    def _discard(self) -> None:
        with self._opening:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()
            for end in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + end).unlink()


def _add(connection: sqlite3.Connection, entry: Entry) -> None:
    query = "SELECT id, body FROM said WHERE session = ? AND first = ?"
    for known, body in connection.execute(query, (entry.session, entry.first)).fetchall():  # completed once more
        _remove(connection, known, body)
    insert = "INSERT INTO said (project, session, agent, first, role, time, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
    number = connection.execute(insert, entry).lastrowid
    connection.execute("INSERT INTO words (rowid, body) VALUES (?, ?)", (number, entry.text))


def _remove(connection: sqlite3.Connection, number: int, body: str) -> None:
    connection.execute("INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)", (number, body))
    connection.execute("DELETE FROM said WHERE id = ?", (number,))


def _merge(connection: sqlite3.Connection) -> None:
    """FTS5 marks what is deleted, and has its words in older segments until these are merged."""
    connection.execute("INSERT INTO words (words) VALUES ('optimize')")


def _cursor(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute("SELECT value FROM cursors WHERE name = ?", (name,)).fetchone()
    return int(value)


def _set_cursor(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute("UPDATE cursors SET value = ? WHERE name = ?", (value, name))


def _match(wanted: Wanted) -> str:
    """The phrases as FTS5 reads them; quotes keep everything in them from being an operator."""
    quoted = ['"{}"'.format(phrase.replace('"', '""')) for phrase in wanted.phrases]
    return " ".join(quoted) + ("" if wanted.is_whole else "*")
