"""What every store promises about writing: order, no gaps, all or nothing, one owner, and that it stays."""

import asyncio

import msgspec
import pytest

from ostler.base.errors import StoreUnavailable
from ostler.server.store.errors import KeyTaken, StaleOwner
from ostler.server.store.protocol import Store
from ostler.server.store.records import DONE, AppendResult, Done, NewJob, Placed, StoredResponse
from tests.store.conftest import Opener
from tests.support.log_writing import NOW, SPEC, TASK, Writing, change, created, notice, sequences


async def test_what_is_queued_together_is_written_in_the_order_of_the_calls(store: Store) -> None:
    session = await created(store, "ses_a")
    placed = await asyncio.gather(*(session.append(notice(f"{number}")) for number in range(200)))
    positions = [place.position for place in placed]
    assert positions == sorted(set(positions))
    assert await sequences(store, "ses_a") == list(range(1, 202))
    assert await store.logs.last_position() == positions[-1]


async def test_a_burst_that_would_leave_a_gap_is_refused_and_its_neighbours_are_not(store: Store) -> None:
    one, two = await created(store, "ses_a"), await created(store, "ses_b")
    one.last += 1
    outcomes = await asyncio.gather(
        two.append(notice("before")), one.append(notice("gap")), two.append(notice("after")), return_exceptions=True
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["AppendResult", "StoreUnavailable", "AppendResult"]
    one.last = 1
    placed = await one.append(notice("follows"))
    assert (await sequences(store, "ses_a"), await sequences(store, "ses_b")) == ([1, 2], [1, 2, 3])
    assert await store.logs.last_position() == placed.position


async def test_of_those_who_want_a_key_at_once_one_gets_it_and_the_others_leave_nothing(store: Store) -> None:
    wanting = [Writing(store, f"ses_{number}") for number in range(10)]
    outcomes = await asyncio.gather(*(one.create("wanted") for one in wanting), return_exceptions=True)
    first, *others = outcomes
    assert isinstance(first, AppendResult)
    assert [outcome for outcome in others if isinstance(outcome, KeyTaken)] == others
    assert await store.session_ids() == {"ses_0"}
    assert [await sequences(store, one.id) for one in wanting[1:]] == [[]] * 9
    assert await store.logs.last_position() == first.position


async def test_a_key_is_taken_in_its_project_only(store: Store) -> None:
    await created(store, "ses_a", key="same", project="one")
    await created(store, "ses_b", key="same", project="two")
    with pytest.raises(KeyTaken):
        await created(store, "ses_c", key="same", project="two")


async def test_who_lost_a_session_can_append_nothing_to_it(store: Store) -> None:
    session = Writing(store, "ses_a", await store.owners.claim("first"))
    await session.create()
    newer = await store.owners.claim("second")
    assert newer > session.epoch
    with pytest.raises(StaleOwner):
        await session.append(notice("late"), done=Done("claim", b"done"))
    assert await sequences(store, "ses_a") == [1]
    assert await store.find_response(DONE, "claim") is None
    session.last, session.epoch = 1, newer
    await session.append(notice("ours"))
    assert await sequences(store, "ses_a") == [1, 2]


async def test_a_session_that_was_lost_does_not_hold_up_those_that_are_written_with_it(store: Store) -> None:
    epoch = await store.owners.claim("first")
    many = [Writing(store, f"ses_{number}", epoch) for number in range(3)]
    for session in many:
        await session.create()
        await session.append(notice("before"))
    await store.owners.claim("second", ["ses_1"])
    outcomes = await asyncio.gather(*(session.append(notice("after")) for session in many), return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == ["AppendResult", "StaleOwner", "AppendResult"]
    assert [await sequences(store, session.id) for session in many] == [[1, 2, 3], [1, 2], [1, 2, 3]]


async def test_a_claim_of_some_sessions_leaves_the_others_to_their_owner(store: Store) -> None:
    epoch = await store.owners.claim("first")
    one, two = Writing(store, "ses_a", epoch), Writing(store, "ses_b", epoch)
    await asyncio.gather(one.create(), two.create())
    one.epoch = await store.owners.claim("second", ["ses_a"])
    await asyncio.gather(one.append(notice("moved")), two.append(notice("stayed")))
    assert one.epoch != two.epoch


async def test_of_two_who_take_a_session_from_the_same_owner_one_has_it(store: Store) -> None:
    session = Writing(store, "ses_a", await store.owners.claim("first"))
    await session.create()
    taken = await asyncio.gather(*(store.owners.take(name, "ses_a", session.epoch) for name in ("one", "two")))
    record = await store.find_session("default", "ses_a")
    assert record is not None
    assert sorted(epoch is None for epoch in taken) == [False, True]
    assert (record.owner, record.epoch) == next(
        (name, epoch) for name, epoch in zip(("one", "two"), taken, strict=True) if epoch is not None
    )
    assert record.epoch > session.epoch
    session.epoch = record.epoch
    await session.append(notice("ours"))
    assert await store.owners.take("three", "ses_none", record.epoch) is None


async def test_who_lost_a_session_changes_nothing_about_it(store: Store) -> None:
    session = Writing(store, "ses_a", await store.owners.claim("first"))
    await session.create(task=TASK)
    assert await store.owners.take("second", "ses_a", session.epoch) is not None
    with pytest.raises(StaleOwner):
        await store.update_spec("ses_a", session.epoch, msgspec.structs.replace(SPEC, model="large"))
    with pytest.raises(StaleOwner):
        await store.delete_session("ses_a", session.epoch, NOW, [NewJob(key="say-so", kind="webhook")])
    found = await store.find_session("default", "ses_a")
    assert found is not None
    assert found.spec == msgspec.structs.replace(SPEC, task=TASK)
    assert await store.jobs.find("say-so") is None
    assert not await store.was_deleted("default", "ses_a")


async def test_a_session_leaves_its_runner_with_the_append_that_says_so_or_not_at_all(store: Store) -> None:
    session = Writing(store, "ses_a", await store.owners.claim("first"))
    await session.create(runner="run_1")
    left = Placed(None, msgspec.structs.replace(SPEC, moved_from="a"))
    epoch = await store.owners.take("second", "ses_a", session.epoch)
    with pytest.raises(StaleOwner):
        await session.append(notice("I leave"), change=change("queued"), placed=left)
    found = await store.find_session("default", "ses_a")
    assert found is not None
    assert (found.runner, found.spec, found.last_sequence) == ("run_1", SPEC, 1)
    session.last, session.epoch = 1, epoch or 0
    await session.append(notice("it leaves"), change=change("queued"), placed=left)
    found = await store.find_session("default", "ses_a")
    assert found is not None
    assert (found.runner, found.spec.moved_from, found.last_sequence) == (None, "a", 2)
    assert [record.id for record in await store.waiting_sessions(["stopped"])] == ["ses_a"]
    late = Writing(store, "ses_a", session.epoch - 1)
    late.last = session.last
    with pytest.raises(StaleOwner):
        await late.append(notice("placed"), placed=Placed("run_2", SPEC))
    await session.append(notice("it has arrived"), placed=Placed("run_2", SPEC))
    assert await store.session_ids("run_2") == {"ses_a"}


async def test_an_epoch_from_the_future_or_of_nobody_is_refused_too(store: Store) -> None:
    session = await created(store, "ses_a")
    session.epoch += 1
    with pytest.raises(StaleOwner):
        await session.append(notice("early"))
    with pytest.raises(StaleOwner):
        await Writing(store, "ses_none").append(notice("nowhere"))
    assert await sequences(store, "ses_a") == [1]


async def test_what_was_queued_before_a_claim_is_written_and_what_comes_after_is_not(store: Store) -> None:
    session = Writing(store, "ses_a", await store.owners.claim("server"))
    await session.create()
    before = session.append(notice("before"))
    claimed = asyncio.ensure_future(store.owners.claim("other"))
    await asyncio.sleep(0)
    after = session.append(notice("after"))
    outcomes = await asyncio.gather(before, claimed, after, return_exceptions=True)
    assert isinstance(outcomes[2], StaleOwner)
    assert await sequences(store, "ses_a") == [1, 2]


async def test_everything_that_was_acknowledged_is_there_when_it_is_opened_again(opener: Opener) -> None:
    store = await opener()
    epoch = await store.owners.claim("server")
    session = Writing(store, "ses_a", epoch)
    await session.create("a")
    await asyncio.gather(*(session.append(notice(f"{number}")) for number in range(20)))
    record, position = await store.find_session("default", "a"), await store.logs.last_position()
    await store.close()

    again = await opener()
    assert await again.find_session("default", "a") == record
    assert await sequences(again, "ses_a") == list(range(1, 22))
    assert await again.logs.last_position() == position
    assert await again.owners.claim("server") > epoch
    with pytest.raises(StoreUnavailable):
        await Writing(again, "ses_a", epoch).append(notice("of the earlier server"))
    await again.close()


async def test_what_is_pending_when_it_is_closed_is_written(opener: Opener) -> None:
    store = await opener()
    session = await created(store, "ses_a")
    pending = session.append(notice("pending"))
    await store.close()
    assert (await pending).position
    again = await opener()
    assert await sequences(again, "ses_a") == [1, 2]
    await again.close()


async def test_settled_waits_for_what_was_queued_before(store: Store) -> None:
    session = await created(store, "ses_a")
    pending = session.append(notice("pending"))
    await store.settled()
    assert pending.done()
    assert await store.problem() is None


async def test_what_came_of_an_act_is_kept_with_it_and_the_first_answer_stays(store: Store) -> None:
    session = await created(store, "ses_a")
    await session.append(notice("done"), done=Done("claim", b"result"))
    found = await store.find_response(DONE, "claim")
    assert found is not None
    assert found.body == b"result"
    first = StoredResponse(fingerprint="f", status=201, headers=[(b"a", b"b")], body=b"first")
    await store.remember_response("scope", "key", first)
    await store.remember_response("scope", "key", StoredResponse(fingerprint="g", status=200, headers=[], body=b"2"))
    assert await store.find_response("scope", "key") == first
    assert await store.find_response("other", "key") is None
