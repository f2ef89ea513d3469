"""Saved prompts in PostgreSQL; `store/protocol.py` says what the verbs mean."""

import asyncio
from collections.abc import Mapping

from ostler.server.store.postgres.dialect import numbered, sendable
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.postgres.writer import Writer
from ostler.server.store.records import PromptRow
from ostler.server.store.sql import prompts
from ostler.server.store.sql.verbs import Reader

_LOCK = "LOCK TABLE prompts IN SHARE ROW EXCLUSIVE MODE"
"""Others count as well, and take names."""


class PostgresPrompts:
    """Implements Prompts."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def all(self, project: str) -> list[PromptRow]:
        """Every row of a project."""
        return await self._reader.read(lambda: prompts.every(project))

    async def find(self, project: str, name: str) -> PromptRow | None:
        """One row."""
        return await self._reader.read(lambda: prompts.find(project, name))

    def add(self, new: PromptRow, most: int) -> "asyncio.Future[None]":
        """Add a row if there is room."""
        return self._writer.submit(lambda transaction: _add(transaction, new, most))

    def change(self, project: str, name: str, changes: Mapping[str, str | None]) -> "asyncio.Future[PromptRow]":
        """Change a row."""
        return self._writer.submit(lambda transaction: _change(transaction, project, name, changes))

    def remove(self, project: str, name: str) -> "asyncio.Future[bool]":
        """Remove a row."""
        return self._writer.submit(lambda transaction: _remove(transaction, project, name))


async def _add(transaction: Transaction, new: PromptRow, most: int) -> None:
    connection = transaction.connection
    await connection.execute(_LOCK)
    named = await connection.fetchval(numbered(prompts.NAMED), new.project, new.name)
    count = await connection.fetchval(numbered(prompts.COUNT), new.project)
    prompts.check_room(new, named, count, most)
    await connection.execute(numbered(prompts.INSERT), *map(sendable, prompts.values(new)))


async def _change(transaction: Transaction, project: str, name: str, changes: Mapping[str, str | None]) -> PromptRow:
    connection = transaction.connection
    await connection.execute(_LOCK)
    old = await connection.fetchrow(numbered(prompts.FIND), project, sendable(name))
    new_name = changes.get("name", name)
    named = await connection.fetchval(numbered(prompts.NAMED), project, new_name)
    prompts.check_change(name, changes, old, named)
    await connection.execute(numbered(prompts.update(changes)), *map(sendable, (*changes.values(), project, name)))
    return prompts.row(await connection.fetchrow(numbered(prompts.FIND), project, new_name))


async def _remove(transaction: Transaction, project: str, name: str) -> bool:
    return str(await transaction.connection.execute(numbered(prompts.DELETE), project, sendable(name))) != "DELETE 0"
