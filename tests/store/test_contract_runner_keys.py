"""What every store answers about runners that may dial in, and the tokens that they register with."""

import asyncio

import msgspec
import pytest

from ostler.base.errors.runners import RunnerRefused
from ostler.server.store.protocol import Store
from ostler.server.store.records import RunnerKey, RunnerToken
from tests.store.conftest import Opener

NOW, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
TOKEN = RunnerToken(id="rtk_1", hash="t1", labels={"gpu": "no"}, uses=1, expires_at=LATER, created_at=NOW)


def key(number: int, at: str = NOW) -> RunnerKey:
    return RunnerKey(runner=f"run_{number}", hash=f"k{number}", name=f"host {number}", labels={}, created_at=at)


async def test_a_runner_registers_once_with_the_labels_of_its_token(store: Store) -> None:
    await store.runner_keys.add_token(TOKEN)
    made = await store.runner_keys.register("t1", key(1))
    assert made == msgspec.structs.replace(key(1), labels={"gpu": "no"})
    assert await store.runner_keys.find("k1") == made
    assert await store.runner_keys.all() == [made]
    assert await store.runner_keys.find("k2") is None


async def test_a_runner_that_did_not_hear_the_answer_registers_again_and_uses_nothing(store: Store) -> None:
    await store.runner_keys.add_token(TOKEN)
    first = await store.runner_keys.register("t1", key(1))
    again = msgspec.structs.replace(key(1), runner="run_other", created_at=LATER)
    assert await store.runner_keys.register("t1", again) == first


@pytest.mark.parametrize(
    ("token_hash", "at", "why"),
    [("t1", NOW, "used up"), ("t1", LATER, "expired at 2026"), ("t2", NOW, "There is no such")],
)
async def test_a_token_that_is_not_good_is_refused(store: Store, token_hash: str, at: str, why: str) -> None:
    await store.runner_keys.add_token(TOKEN)
    await store.runner_keys.register("t1", key(1))
    with pytest.raises(RunnerRefused, match=why):
        await store.runner_keys.register(token_hash, key(2, at))
    assert len(await store.runner_keys.all()) == 1


async def test_a_token_is_used_no_more_often_than_it_may_be(store: Store) -> None:
    await store.runner_keys.add_token(msgspec.structs.replace(TOKEN, uses=2))
    done = await asyncio.gather(
        *(store.runner_keys.register("t1", key(number)) for number in range(5)), return_exceptions=True
    )
    assert sum(isinstance(each, RunnerKey) for each in done) == 2


async def test_a_key_of_another_token_is_not_taken_over(store: Store) -> None:
    await store.runner_keys.add_token(TOKEN)
    await store.runner_keys.add_token(msgspec.structs.replace(TOKEN, id="rtk_2", hash="t2", uses=None))
    await store.runner_keys.register("t1", key(1))
    with pytest.raises(RunnerRefused, match="known already"):
        await store.runner_keys.register("t2", key(1))


async def test_what_became_of_a_runner_is_remembered(opener: Opener) -> None:
    store = await opener()
    await store.runner_keys.add_token(msgspec.structs.replace(TOKEN, uses=None, expires_at=None))
    await asyncio.gather(*(store.runner_keys.register("t1", key(number)) for number in (1, 2)))
    await store.runner_keys.set_draining("run_1", LATER)
    await store.runner_keys.revoke("run_2", LATER)
    await store.close()
    store = await opener()
    found = await store.runner_keys.all()
    assert [(each.runner, each.draining, each.drain_until) for each in found] == [("run_1", True, LATER)]
    await store.runner_keys.set_draining("run_1", None)
    found = await store.runner_keys.all()
    assert [(each.runner, each.draining, each.drain_until) for each in found] == [("run_1", False, None)]
    revoked = await store.runner_keys.find("k2")
    assert revoked is not None
    assert revoked.revoked_at == LATER
    await store.close()


@pytest.mark.parametrize("name", ["host 1", "local", "run_01"])
async def test_two_runners_do_not_share_a_name(store: Store, name: str) -> None:
    await store.runner_keys.add_token(msgspec.structs.replace(TOKEN, uses=9))
    await store.runner_keys.register("t1", key(1))
    with pytest.raises(RunnerRefused, match="already"):
        await store.runner_keys.register("t1", msgspec.structs.replace(key(2), name=name))
    await store.runner_keys.revoke("run_1", LATER)
    assert (await store.runner_keys.register("t1", msgspec.structs.replace(key(2), name="host 1"))).name == "host 1"


async def test_tokens_that_expired_long_ago_are_forgotten_when_another_is_made(store: Store) -> None:
    for_ever = msgspec.structs.replace(TOKEN, id="rtk_2", hash="t2", expires_at=None)
    await store.runner_keys.add_token(TOKEN)
    await store.runner_keys.add_token(for_ever)
    for day, why in ((2, "expired at"), (5, "There is no such")):
        at = f"2026-01-0{day}T00:00:00.001Z"
        await store.runner_keys.add_token(msgspec.structs.replace(TOKEN, id=f"n{day}", hash=f"n{day}", created_at=at))
        with pytest.raises(RunnerRefused, match=why):
            await store.runner_keys.register("t1", key(1, at))
    await store.runner_keys.register("t2", key(2, at))
