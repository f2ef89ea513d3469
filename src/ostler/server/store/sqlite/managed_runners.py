"""Runners that servers make themselves, in SQLite; `store/protocol.py` says what the verbs mean."""

import asyncio
import sqlite3

from ostler.server.store.records import ManagedRunner
from ostler.server.store.sql import managed_runners
from ostler.server.store.sqlite.database import Database


class SqliteManagedRunners:
    """Implements ManagedRunners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, new: ManagedRunner, most: int) -> "asyncio.Future[bool]":
        """Add a row if there is room."""
        return self._database.write(_add, new, most)

    async def all(self) -> list[ManagedRunner]:
        """Every row."""
        return await self._database.read(managed_runners.every)

    def update(self, row: ManagedRunner, server: str) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._database.write(_update, row, server)

    def remove(self, runner_id: str) -> "asyncio.Future[None]":
        """Remove a row."""
        return self._database.write(_remove, runner_id)


def _add(connection: sqlite3.Connection, new: ManagedRunner, most: int) -> bool:
    (count,) = connection.execute(managed_runners.COUNT, (new.pool,)).fetchone()
    if count < most:
        connection.execute(managed_runners.INSERT, managed_runners.inserted(new))
    return bool(count < most)


def _update(connection: sqlite3.Connection, row: ManagedRunner, server: str) -> bool:
    return connection.execute(managed_runners.UPDATE, managed_runners.updated(row, server)).rowcount > 0


def _remove(connection: sqlite3.Connection, runner_id: str) -> None:
    connection.execute(managed_runners.DELETE, (runner_id,))
