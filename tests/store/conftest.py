"""Every test of the contract runs on every store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ostler.server.store.protocol import Store
from ostler.server.store.sqlite.store import SqliteStore

Opener = Callable[[], Awaitable[Store]]


async def _sqlite(folder: Path) -> Store:
    return await SqliteStore.open(folder / "ostler.db", sync="normal", boot="now")


STORES: dict[str, Callable[[Path], Awaitable[Store]]] = {"sqlite": _sqlite}
"""How each kind of store is opened, again and again, in one place."""


@pytest.fixture(params=STORES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store each time; close it before the next."""
    return lambda: STORES[request.param](tmp_path)


@pytest.fixture
async def store(opener: Opener) -> AsyncIterator[Store]:
    """A store with nothing in it."""
    store = await opener()
    yield store
    await store.close()
