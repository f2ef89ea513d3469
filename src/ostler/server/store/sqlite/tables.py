"""The tables of a SQLite database, for moving them."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

from ostler.base.state_lock import StateLock
from ostler.base.undo import undone_by
from ostler.server.store.errors import NotCopied
from ostler.server.store.sqlite.schema import migrate
from ostler.server.store.tables import PAGE_ROWS, Row, Table, shared_row


class SqliteTables:
    """Implements Tables for the database of a state folder, which no server can take meanwhile."""

    def __init__(self, connection: sqlite3.Connection, lock: StateLock) -> None:
        self._connection = connection
        self._lock = lock

    @classmethod
    def open(cls, folder: Path, *, must_exist: bool) -> "SqliteTables":
        """Open it and bring it to the newest schema."""
        path = folder / "ostler.db"
        if must_exist and not path.exists():
            raise NotCopied(reason=f"{folder} is no state folder: it has no ostler.db.")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = StateLock.take(folder / "ostler.lock", None)
            with undone_by(lock.drop):
                return cls(_connected(path), lock)
        except (OSError, sqlite3.Error) as error:
            raise NotCopied(reason=f"{path} cannot be used ({error}).") from error

    async def count(self, table: Table) -> int:
        """How many rows there are."""
        (count,) = self._connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()  # noqa: S608  fixed names
        return int(count)

    async def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """All rows in the order of their key, some at a time."""
        columns, key = ", ".join(table.columns), ", ".join(table.key)
        cursor = self._connection.execute(f"SELECT {columns} FROM {table.name} ORDER BY {key}")  # noqa: S608  fixed names
        while found := cursor.fetchmany(PAGE_ROWS):
            yield [shared_row(table, row) for row in found]

    async def add(self, table: Table, rows: list[Row]) -> None:
        """Put rows in."""
        columns, marks = ", ".join(table.columns), ", ".join("?" for _ in table.columns)
        self._connection.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({marks})", rows)  # noqa: S608  fixed names

    async def last_epoch(self) -> int:
        """The newest epoch that anybody had a session in."""
        (epoch,) = self._connection.execute("SELECT value FROM counters WHERE name = 'epoch'").fetchone()
        return int(epoch)

    async def finish(self, epoch: int) -> None:
        """What was put in stays."""
        self._connection.execute("UPDATE counters SET value = ? WHERE name = 'epoch'", (epoch,))
        newest = "SELECT coalesce(max(position), 0) FROM chunks"
        self._connection.execute(f"UPDATE counters SET value = ({newest}) WHERE name = 'position'")  # noqa: S608  fixed words
        self._connection.execute("COMMIT")

    async def close(self) -> None:
        """Let go of the database; what was not finished is undone."""
        self._connection.close()
        self._lock.drop()


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    path.chmod(0o600)
    migrate(connection, path=str(path))
    connection.execute("BEGIN IMMEDIATE")
    return connection
