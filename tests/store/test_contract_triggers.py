"""What every store answers about triggers and deliveries."""

import asyncio
import time

import msgspec
from msgspec.structs import replace

from ostler.server.store.protocol import Store
from ostler.server.store.triggers import DELIVERY, Begins, DeliveryJob, DeliveryRow, TriggerRow
from tests.store.conftest import Opener

AT = "2026-01-01T00:00:00.000Z"


def _trigger(name: str, project: str = "default") -> TriggerRow:
    return TriggerRow(id=f"{project}-{name}", project=project, name=name, body=b"{}", created_at=AT)


def _delivery(name: str, at: float = 100.0, chain: str | None = None) -> DeliveryRow:
    return DeliveryRow(
        id=f"dlv_{name}", trigger_id="default-a", name=name, state="waiting", chain=chain, at=at, body=b"{}"
    )


async def test_a_delivery_is_taken_once_with_its_job_whoever_is_faster(opener: Opener) -> None:
    store = await opener()
    assert await store.triggers.add(_trigger("a"))
    assert not await store.triggers.add(replace(_trigger("a"), id="another"))
    taken = await asyncio.gather(*(store.triggers.take(_delivery("one"), most=9, oldest=0.0) for _ in range(4)))
    assert sorted(each.is_new for each in taken) == [False, False, False, True]
    await store.close()
    store = await opener()
    (job,) = await store.jobs.take("me", [DELIVERY], 9, seconds=1.0)
    assert msgspec.json.decode(job.body, type=DeliveryJob) == DeliveryJob(delivery="dlv_one")
    found = await store.triggers.delivery("dlv_one")
    assert found == replace(_delivery("one"), duplicates=3)
    await store.triggers.settle(replace(found, state="started", session="ses_1"))
    assert (await store.triggers.deliveries("default-a", 9))[0].session == "ses_1"
    await store.close()


async def test_no_more_wait_than_may_and_old_ones_are_forgotten(store: Store) -> None:
    assert (await store.triggers.take(_delivery("old", 10.0), most=2, oldest=0.0)).is_new
    assert (await store.triggers.take(_delivery("x", chain="k"), most=2, oldest=0.0)).is_new
    assert (await store.triggers.take(_delivery("y", chain="k"), most=2, oldest=50.0)).row is None, "none that waits"
    await store.triggers.settle(replace(_delivery("old"), state="failed"))
    assert (await store.triggers.take(_delivery("y", chain="k"), most=2, oldest=50.0)).is_new
    assert [row.id for row in await store.triggers.waiting(_delivery("y", chain="k"))] == ["dlv_x", "dlv_y"]
    assert [row.id for row in await store.triggers.waiting(_delivery("x", chain="k"))] == ["dlv_x"]


async def test_the_oldest_that_are_settled_go_when_there_are_too_many_or_too_large_ones(store: Store) -> None:
    body = b'{"event": "' + b"x" * 1000 + b'"}'
    for number in range(10):
        new = replace(_delivery(f"n{number}", 100.0 + number), body=body)
        assert (await store.triggers.take(new, most=99, oldest=0.0)).is_new
        if number != 1:
            await store.triggers.settle(replace(new, state="started"))

    async def left() -> list[str]:
        return [row.name for row in reversed(await store.triggers.deliveries("default-a", 99))]

    await store.triggers.trim("default-a", most=9, most_bytes=10**9)
    assert len(await left()) == 10
    await store.triggers.trim("default-a", most=5, most_bytes=10**9)
    assert await left() == ["n1", "n5", "n6", "n7", "n8", "n9"], "the one that waits stays"
    await store.triggers.trim("default-a", most=5, most_bytes=3 * len(body))
    assert await left() == ["n1", "n7", "n8", "n9"]


async def test_deliveries_of_a_trigger_with_a_rate_are_due_one_after_the_other(store: Store) -> None:
    assert await store.triggers.add(_trigger("a"))
    now, pause = time.time(), 3600.0
    await store.triggers.settle(replace(_delivery("none"), state="started"))
    names = ["one", "two", "three", "four"]
    taken = [await store.triggers.take(_delivery(name, now), most=9, oldest=0.0, pause=pause) for name in names]
    due = [msgspec.json.decode(each.row.body, type=Begins).begins - now for each in taken if each.row is not None]
    assert [round(each, 2) for each in due] == [0, pause, 2 * pause, 3 * pause]
    assert taken[3].row is not None
    await store.triggers.settle(replace(taken[3].row, state="started"))
    (later,) = [(await store.triggers.take(_delivery("five", now + 1), most=9, oldest=0.0, pause=pause)).row]
    assert later is not None
    assert round(msgspec.json.decode(later.body, type=Begins).begins - now, 2) == 4 * pause
    (job,) = await store.jobs.take("me", [DELIVERY], 9, seconds=1.0)
    assert msgspec.json.decode(job.body, type=DeliveryJob).delivery == "dlv_one", "the others are not due"


async def test_triggers_are_of_one_project_and_go_with_their_deliveries(store: Store) -> None:
    for row in (_trigger("b"), _trigger("a"), _trigger("a", "other")):
        assert await store.triggers.add(row)
    assert [row.name for row in await store.triggers.all("default")] == ["a", "b"]
    assert await store.triggers.find("other", "default-a") is None
    assert await store.triggers.named("default-a") == _trigger("a")
    assert not await store.triggers.change(replace(_trigger("a"), project="other", id="default-a"))
    assert await store.triggers.change(replace(_trigger("a"), body=b"[]"))
    await store.triggers.take(_delivery("one"), most=9, oldest=0.0)
    assert not await store.triggers.remove("other", "default-a")
    assert await store.triggers.remove("default", "default-a")
    assert await store.triggers.delivery("dlv_one") is None
