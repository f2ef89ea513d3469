"""The tables of a PostgreSQL database, for moving them."""

from collections.abc import AsyncIterator

import asyncpg
import msgspec

from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.connecting import connect_alone, prepare
from ostler.server.store.records import SessionSpec
from ostler.server.store.tables import PAGE_ROWS, Row, Table, shared_row
from ostler.wire.sessions import Turn

_MORE = {
    "sessions": ("is_task", "task_project", "task_tenant"),
    "turns": ("turn_id", "first_sequence", "branches"),
}
"""Columns that other databases take out of JSON."""
_TEXT_KEYS = frozenset(
    {
        "id",
        "session",
        "ask_id",
        "scope",
        "key",
        "project",
        "name",
        "revision",
        "tag",
        "schedule",
        "trigger_id",
        "webhook_id",
        "tenant",
        "actor",
    }
)


class PostgresTables:
    """Implements Tables for a database that no server may use meanwhile."""

    def __init__(self, connection: asyncpg.Connection, transaction: asyncpg.transaction.Transaction) -> None:
        self._connection = connection
        self._transaction = transaction

    @classmethod
    async def open(cls, url: str) -> "PostgresTables":
        """Open it and bring it to the newest schema."""
        address = Address.reading(url)
        await prepare(address, alone=True)
        connection = await connect_alone(address)
        transaction = connection.transaction(isolation="repeatable_read")
        await transaction.start()
        return cls(connection, transaction)

    async def count(self, table: Table) -> int:
        """How many rows there are."""
        return int(await self._connection.fetchval(f"SELECT count(*) FROM {table.name}"))  # noqa: S608  fixed names

    async def rows(self, table: Table) -> AsyncIterator[list[Row]]:
        """All rows in the order of their key, some at a time."""
        key = ", ".join(f'{name} COLLATE "C"' if name in _TEXT_KEYS else name for name in table.key)
        query = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {key}"  # noqa: S608  fixed names
        cursor = await self._connection.cursor(query)
        while found := await cursor.fetch(PAGE_ROWS):
            yield [shared_row(table, tuple(row)) for row in found]

    async def add(self, table: Table, rows: list[Row]) -> None:
        """Put rows in."""
        columns = (*table.columns, *_MORE.get(table.name, ()))
        marks = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        insert = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608  fixed names
        await self._connection.executemany(insert, [(*row, *_more(table, row)) for row in rows])

    async def last_epoch(self) -> int:
        """The newest epoch that anybody had a session in."""
        return int(await self._connection.fetchval("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM epochs"))

    async def finish(self, epoch: int) -> None:
        """What was put in stays."""
        await self._connection.execute("SELECT setval('epochs', $1)", max(1, epoch))
        await self._transaction.commit()

    async def close(self) -> None:
        """Let go of the database; what was not finished is undone."""
        await self._connection.close()


def _more(table: Table, row: Row) -> Row:
    if table.name == "sessions":
        spec = msgspec.json.decode(row[table.columns.index("spec")], type=SessionSpec)
        return spec.task is not None, spec.task.project_id if spec.task is not None else None, spec.tenant
    if table.name == "turns":
        turn = msgspec.json.decode(row[table.columns.index("turn")], type=Turn)
        return turn.turn_id, turn.first_sequence, turn.after is not None
    return ()
