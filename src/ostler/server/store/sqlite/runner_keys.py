"""Runners and their tokens in SQLite; `store/protocol.py` says what the verbs mean."""

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping

from ostler.server.store.records import RunnerKey, RunnerToken
from ostler.server.store.sql import runner_keys
from ostler.server.store.sqlite.database import Database


class SqliteRunnerKeys:
    """Implements RunnerKeys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_token(self, token: RunnerToken) -> "asyncio.Future[None]":
        """Add a row."""
        return self._database.write(_add_token, token)

    def register(self, token_hash: str, new: RunnerKey) -> "asyncio.Future[RunnerKey]":
        """Add a row and use its token."""
        return self._database.write(_register, token_hash, new)

    async def find(self, key_hash: str) -> RunnerKey | None:
        """By hash."""
        return await self._database.read(lambda: runner_keys.find(key_hash))

    async def all(self) -> list[RunnerKey]:
        """Those that are not revoked."""
        return await self._database.read(runner_keys.every)

    async def with_sessions(self, terminal: Iterable[str]) -> dict[str, str]:
        """Their names by id."""
        return await self._database.read(lambda: runner_keys.with_sessions(terminal))

    def set_draining(self, runner: str, until: str | None) -> "asyncio.Future[None]":
        """Change a row."""
        return self._database.write(_change, {"is_draining": until is not None, "drain_until": until}, runner)

    def revoke(self, runner: str, at: str) -> "asyncio.Future[None]":
        """Change a row."""
        return self._database.write(_change, {"revoked_at": at}, runner)


def _add_token(connection: sqlite3.Connection, token: RunnerToken) -> None:
    connection.execute(runner_keys.FORGET_TOKENS, (runner_keys.forgotten_before(token.created_at),))
    connection.execute("INSERT INTO runner_tokens VALUES (?, ?, ?, ?, ?, ?)", runner_keys.token_row(token))


def _register(connection: sqlite3.Connection, token_hash: str, new: RunnerKey) -> RunnerKey:
    query = "SELECT id, fixed_labels, uses, expires_at FROM runner_tokens WHERE hash = ?"
    token = connection.execute(query, (token_hash,)).fetchone()
    query = f"SELECT {runner_keys.KEY_COLUMNS}, token FROM runner_keys WHERE hash = ?"  # noqa: S608  fixed columns
    if (row := connection.execute(query, (new.hash,)).fetchone()) is not None:
        return runner_keys.known_again(row, runner_keys.some(token)[0])
    token_id, labels = runner_keys.check(token, new.created_at)
    runner_keys.check_name(new.name, *connection.execute(runner_keys.NAMED, (new.name,)).fetchone())
    connection.execute("UPDATE runner_tokens SET uses = uses - 1 WHERE id = ?", (token_id,))
    row = runner_keys.key_row(new, labels, token_id)
    connection.execute("INSERT INTO runner_keys VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    return runner_keys.with_labels(new, labels)


def _change(connection: sqlite3.Connection, values: Mapping[str, str | bool | None], runner: str) -> None:
    changes = ", ".join(f"{column} = ?" for column in values)
    connection.execute(f"UPDATE runner_keys SET {changes} WHERE runner = ?", (*values.values(), runner))  # noqa: S608  fixed names
