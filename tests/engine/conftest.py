"""Every test of the contract runs on every engine and every store."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ostler.base.ids import new_id
from ostler.base.settings import Settings
from ostler.server.engine.opening import engine_of
from ostler.server.engine.protocol import Engine
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.protocol import Store
from ostler.server.store.sqlite.store import SqliteStore
from tests.support.databases import shared_cluster
from tests.support.temporal_server import shared_temporal

ENGINES: dict[str, Callable[[], str | None]] = {"embedded": lambda: None, "temporal": lambda: shared_temporal().url}
Maker = Callable[[], Awaitable[Engine]]


def new_deployment() -> str:
    """A name that no other test has."""
    return f"test-{secrets.token_hex(6)}"


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store with nothing in it."""
    if request.param == "sqlite":
        store: Store = await SqliteStore.open(tmp_path / "ostler.db", sync="normal", boot="now")
    else:
        store = await PostgresStore.open(shared_cluster().new_database(), tmp_path, boot="now")
    yield store
    await store.close()


@pytest.fixture(params=["embedded", "temporal"])
async def make(request: pytest.FixtureRequest, store: Store) -> AsyncIterator[Maker]:
    """Makes engines on the same store, as several servers have them; they are closed in the end."""
    made: list[Engine] = []
    settings = Settings(state_dir=Path("/nonexistent"), engine=ENGINES[request.param](), deployment=new_deployment())
    new_engine = engine_of(settings)

    async def one() -> Engine:
        made.append(new_engine(store.jobs, new_id("srv")))
        return made[-1]

    yield one
    for engine in made:
        await engine.close()
