"""Saved prompts in SQLite; `store/protocol.py` says what the verbs mean."""

import asyncio
import sqlite3
from collections.abc import Mapping

from ostler.server.store.records import PromptRow
from ostler.server.store.sql import prompts
from ostler.server.store.sqlite.database import Database


class SqlitePrompts:
    """Implements Prompts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self, project: str) -> list[PromptRow]:
        """Every row of a project."""
        return await self._database.read(lambda: prompts.every(project))

    async def find(self, project: str, name: str) -> PromptRow | None:
        """One row."""
        return await self._database.read(lambda: prompts.find(project, name))

    def add(self, new: PromptRow, most: int) -> "asyncio.Future[None]":
        """Add a row if there is room."""
        return self._database.write(_add, new, most)

    def change(self, project: str, name: str, changes: Mapping[str, str | None]) -> "asyncio.Future[PromptRow]":
        """Change a row."""
        return self._database.write(_change, project, name, changes)

    def remove(self, project: str, name: str) -> "asyncio.Future[bool]":
        """Remove a row."""
        return self._database.write(_remove, project, name)


def _add(connection: sqlite3.Connection, new: PromptRow, most: int) -> None:
    (named,) = connection.execute(prompts.NAMED, (new.project, new.name)).fetchone()
    (count,) = connection.execute(prompts.COUNT, (new.project,)).fetchone()
    prompts.check_room(new, named, count, most)
    connection.execute(prompts.INSERT, prompts.values(new))


def _change(connection: sqlite3.Connection, project: str, name: str, changes: Mapping[str, str | None]) -> PromptRow:
    old = connection.execute(prompts.FIND, (project, name)).fetchone()
    new_name = changes.get("name", name)
    (named,) = connection.execute(prompts.NAMED, (project, new_name)).fetchone()
    prompts.check_change(name, changes, old, named)
    connection.execute(prompts.update(changes), (*changes.values(), project, name))
    return prompts.row(connection.execute(prompts.FIND, (project, new_name)).fetchone())


def _remove(connection: sqlite3.Connection, project: str, name: str) -> bool:
    return connection.execute(prompts.DELETE, (project, name)).rowcount > 0
