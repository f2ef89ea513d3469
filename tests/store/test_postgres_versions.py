"""Versions of the tables in PostgreSQL: nobody changes them under a server at work, and an older server notices."""

from pathlib import Path

import asyncpg
import pytest

from ostler.base.errors import SettingsError
from ostler.server.store.postgres import connecting
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.connecting import InUse, connect_serving
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.sql.schema import MIGRATIONS, SCHEMA_VERSION
from tests.support.databases import shared_cluster


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def version(url: str) -> int:
    connection = await asyncpg.connect(url)
    found = await connection.fetchval("SELECT version FROM schema_version")
    await connection.close()
    return int(found)


async def test_tables_are_not_changed_while_a_server_of_an_older_version_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = shared_cluster().new_database()
    for name in ("older", "newer"):
        (tmp_path / name).mkdir()
    with monkeypatch.context() as before:
        before.setattr(connecting, "MIGRATIONS", MIGRATIONS[:-1])
        before.setattr(connecting, "SCHEMA_VERSION", SCHEMA_VERSION - 1)
        older = await PostgresStore.open(url, tmp_path / "older", boot="now")
        await older.settled()
    with pytest.raises(SettingsError, match="tables of an older version, which servers of that version use"):
        await PostgresStore.open(url, tmp_path / "newer", boot="now")
    assert await version(url) == SCHEMA_VERSION - 1
    await older.close()
    newer = await PostgresStore.open(url, tmp_path / "newer", boot="now")
    assert await version(url) == SCHEMA_VERSION
    await newer.close()


async def test_a_server_whose_tables_a_newer_version_changed_does_not_write_to_them(tmp_path: Path) -> None:
    url = shared_cluster().new_database()
    store = await PostgresStore.open(url, tmp_path, boot="now")
    await store.close()
    await execute(url, f"UPDATE schema_version SET version = {SCHEMA_VERSION + 1}")
    with pytest.raises(InUse, match="upgrade this server"):
        await connect_serving(Address.reading(url))
