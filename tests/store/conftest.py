"""Every test of the contract runs on every store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.protocol import Store
from ostler.server.store.sqlite.store import SqliteStore
from tests.support.databases import shared_cluster

Opener = Callable[[], Awaitable[Store]]


@pytest.fixture(params=["sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store each time; close it before the next."""
    if request.param == "sqlite":
        return lambda: SqliteStore.open(tmp_path / "ostler.db", sync="normal", boot="now")
    url = shared_cluster().new_database()
    return lambda: PostgresStore.open(url, tmp_path, boot="now")


@pytest.fixture
async def store(opener: Opener) -> AsyncIterator[Store]:
    """A store with nothing in it."""
    store = await opener()
    yield store
    await store.close()
