"""What every store answers about the runners that servers make themselves."""

import asyncio

from msgspec.structs import replace

from ostler.server.store.protocol import Store
from ostler.server.store.records import ManagedRunner

_NOW = "2026-01-01T00:00:00.000Z"


def _row(number: int, pool: str = "small") -> ManagedRunner:
    return ManagedRunner(
        id=f"{pool}-{number}", pool=pool, server="run_1", runner=None, state="making", created_at=f"{_NOW}{number}"
    )


async def test_a_pool_has_no_more_than_its_most_however_many_ask(store: Store) -> None:
    added = await asyncio.gather(*(store.managed_runners.add(_row(number), 2) for number in range(5)))
    assert added == [True, True, False, False, False]
    assert await store.managed_runners.add(_row(8, "large"), 1)
    assert await store.managed_runners.all() == [_row(0), _row(1), _row(8, "large")]
    await store.managed_runners.remove("small-0")
    assert await store.managed_runners.add(_row(3), 2)
    assert [row.id for row in await store.managed_runners.all()] == ["small-1", "small-3", "large-8"]


async def test_only_who_looks_after_it_says_how_it_is(store: Store) -> None:
    await store.managed_runners.add(_row(1), 2)
    made = replace(_row(1), runner="run_9", state="made")
    assert await store.managed_runners.update(made, "run_1")
    taken = replace(made, server="run_2")
    assert await store.managed_runners.update(taken, "run_1")
    assert not await store.managed_runners.update(made, "run_1")
    assert await store.managed_runners.all() == [taken]
    assert not await store.managed_runners.update(_row(7), "run_1")
