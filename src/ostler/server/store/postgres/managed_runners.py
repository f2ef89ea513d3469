"""Runners that servers make themselves, in PostgreSQL; `store/protocol.py` says what the verbs mean."""

import asyncio

from ostler.server.store.postgres.dialect import numbered, sendable
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.postgres.writer import Writer
from ostler.server.store.records import ManagedRunner
from ostler.server.store.sql import managed_runners
from ostler.server.store.sql.verbs import Reader


class PostgresManagedRunners:
    """Implements ManagedRunners."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    def add(self, new: ManagedRunner, most: int) -> "asyncio.Future[bool]":
        """Add a row if there is room."""
        return self._writer.submit(lambda transaction: _add(transaction, new, most))

    async def all(self) -> list[ManagedRunner]:
        """Every row."""
        return await self._reader.read(managed_runners.every)

    def update(self, row: ManagedRunner, server: str) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._writer.submit(lambda transaction: _update(transaction, row, server))

    def remove(self, runner_id: str) -> "asyncio.Future[None]":
        """Remove a row."""
        return self._writer.submit(lambda transaction: _remove(transaction, runner_id))


async def _add(transaction: Transaction, new: ManagedRunner, most: int) -> bool:
    connection = transaction.connection
    await connection.execute("LOCK TABLE managed_runners IN SHARE ROW EXCLUSIVE MODE")  # others count as well
    count = await connection.fetchval(numbered(managed_runners.COUNT), new.pool)
    if count < most:
        values = map(sendable, managed_runners.inserted(new))
        await connection.execute(f"{numbered(managed_runners.INSERT)} ON CONFLICT DO NOTHING", *values)
    return bool(count < most)


async def _update(transaction: Transaction, row: ManagedRunner, server: str) -> bool:
    values = managed_runners.updated(row, server)
    done = await transaction.connection.execute(numbered(managed_runners.UPDATE), *map(sendable, values))
    return str(done) != "UPDATE 0"


async def _remove(transaction: Transaction, runner_id: str) -> None:
    await transaction.connection.execute(numbered(managed_runners.DELETE), runner_id)
