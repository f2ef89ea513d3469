"""Every test of the contract runs on every engine and every store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ostler.base.ids import new_id
from ostler.server.engine.embedded import EmbeddedEngine
from ostler.server.engine.protocol import Engine
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.protocol import Store
from ostler.server.store.sqlite.store import SqliteStore
from tests.databases import shared_cluster

Maker = Callable[[], Awaitable[Engine]]


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store with nothing in it."""
    if request.param == "sqlite":
        store: Store = await SqliteStore.open(tmp_path / "ostler.db", sync="normal", boot="now")
    else:
        store = await PostgresStore.open(shared_cluster().new_database(), tmp_path, boot="now")
    yield store
    await store.close()


@pytest.fixture
async def make(store: Store) -> AsyncIterator[Maker]:
    """Makes engines on the same store, as several servers have them; they are closed in the end."""
    made: list[Engine] = []

    async def one() -> Engine:
        made.append(EmbeddedEngine(store.jobs, new_id("srv")))
        return made[-1]

    yield one
    for engine in made:
        await engine.close()
