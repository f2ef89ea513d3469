"""Runners and their tokens in PostgreSQL; `store/protocol.py` says what the verbs mean."""

import asyncio
from collections.abc import Iterable

from ostler.server.store.postgres.dialect import sendable
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.postgres.writer import Writer
from ostler.server.store.records import RunnerKey, RunnerToken
from ostler.server.store.sql import runner_keys
from ostler.server.store.sql.verbs import Reader


class PostgresRunnerKeys:
    """Implements RunnerKeys."""

    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    def add_token(self, token: RunnerToken) -> "asyncio.Future[None]":
        """Add a row."""
        return self._writer.submit(lambda transaction: _add_token(transaction, token))

    def register(self, token_hash: str, new: RunnerKey) -> "asyncio.Future[RunnerKey]":
        """Add a row and use its token."""
        return self._writer.submit(lambda transaction: _register(transaction, token_hash, new))

    async def find(self, key_hash: str) -> RunnerKey | None:
        """By hash."""
        return await self._reader.read(lambda: runner_keys.find(key_hash))

    async def all(self) -> list[RunnerKey]:
        """Those that are not revoked."""
        return await self._reader.read(runner_keys.every)

    async def with_sessions(self, terminal: Iterable[str]) -> dict[str, str]:
        """Their names by id."""
        return await self._reader.read(lambda: runner_keys.with_sessions(terminal))

    def set_draining(self, runner: str, until: str | None) -> "asyncio.Future[None]":
        """Change a row."""
        return self._writer.submit(
            lambda transaction: _change(transaction, runner, is_draining=until is not None, drain_until=until)
        )

    def revoke(self, runner: str, at: str) -> "asyncio.Future[None]":
        """Change a row."""
        return self._writer.submit(lambda transaction: _revoke(transaction, runner, at))


async def _add_token(transaction: Transaction, token: RunnerToken) -> None:
    before = runner_keys.forgotten_before(token.created_at)
    await transaction.connection.execute(runner_keys.FORGET_TOKENS.replace("?", "$1"), before)
    insert = "INSERT INTO runner_tokens VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
    await transaction.connection.execute(insert, *map(sendable, runner_keys.token_row(token)))


async def _register(transaction: Transaction, token_hash: str, new: RunnerKey) -> RunnerKey:
    connection = transaction.connection
    query = "SELECT id, fixed_labels, uses, expires_at FROM runner_tokens WHERE hash = $1 FOR UPDATE"
    token = await connection.fetchrow(query, token_hash)
    query = f"SELECT {runner_keys.KEY_COLUMNS}, token FROM runner_keys WHERE hash = $1"  # noqa: S608  fixed columns
    if (row := await connection.fetchrow(query, new.hash)) is not None:
        return runner_keys.known_again(tuple(row), runner_keys.some(token)[0])
    token_id, labels = runner_keys.check(token and tuple(token), new.created_at)
    runner_keys.check_name(new.name, await connection.fetchval(runner_keys.NAMED.replace("?", "$1"), new.name))
    await connection.execute("UPDATE runner_tokens SET uses = uses - 1 WHERE id = $1", token_id)
    values = runner_keys.key_row(new, labels, token_id)
    await connection.execute(
        "INSERT INTO runner_keys VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", *map(sendable, values)
    )
    return runner_keys.with_labels(new, labels)


async def _revoke(transaction: Transaction, runner: str, at: str) -> None:
    await _change(transaction, runner, revoked_at=at)
    await transaction.connection.execute(
        "DELETE FROM runner_links WHERE runner = $1", runner
    )  # it has no link any more


async def _change(transaction: Transaction, runner: str, **values: str | bool | None) -> None:
    changes = ", ".join(f"{column} = ${number}" for number, column in enumerate(values, 2))
    update = f"UPDATE runner_keys SET {changes} WHERE runner = $1"  # noqa: S608  fixed names
    await transaction.connection.execute(update, runner, *values.values())
