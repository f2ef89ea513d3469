"""What every store answers about the log of a session, and about what is kept beside it."""

import asyncio

import msgspec

from ostler.server.store.protocol import Store
from ostler.server.store.records import Placed, Progress, StoredItem
from ostler.wire.sessions import Ask, Turn
from ostler.wire.workspaces import Snapshot
from tests.support.log_writing import NOW, SPEC, Writing, change, created, made, notice, rewound, said, started

LARGE = "x" * 10_000


def texts(items: list[StoredItem]) -> list[str]:
    return [msgspec.json.decode(item.body)["data"]["item"]["content"][0]["text"] for item in items]


def turn(number: int, first: int, **more: int) -> Turn:
    return msgspec.convert(
        {"turn_id": f"trn_{number}", "number": number, "started_at": NOW, "first_sequence": first, **more}, Turn
    )


def ask(ask_id: str, session_id: str, status: str, at: str) -> Ask:
    return Ask(ask_id=ask_id, kind="permission", session_id=session_id, agent="mock", status=status, requested_at=at)


async def test_events_come_back_as_the_bytes_that_were_written_with_their_frames(store: Store) -> None:
    session = await created(store, "ses_a")
    burst = session.burst(notice("Grüße"), notice("世界"), raws=(b'{"frame":1}', None))
    await store.append(burst)
    found = await store.logs.events("ses_a", 1, 10, raw=True, max_bytes=2**20)
    assert [(event.number, event.body, event.raw) for event in found] == [
        (2, burst.events[0], b'{"frame":1}'),
        (3, burst.events[1], None),
    ]
    plain = await store.logs.events("ses_a", 1, 10, raw=False, max_bytes=2**20)
    assert [event.raw for event in plain] == [None, None]


async def test_a_page_begins_after_its_offset_and_ends_by_number_or_by_size(store: Store) -> None:
    session = await created(store, "ses_a")
    await session.append(*(notice(f"{number}") for number in range(2, 7)))
    await session.append(notice(LARGE), notice(LARGE))

    async def page(offset: int, limit: int, max_bytes: int) -> list[int]:
        found = await store.logs.events("ses_a", offset, limit, raw=False, max_bytes=max_bytes)
        return [event.number for event in found]

    assert await page(3, 2, 2**20) == [4, 5]
    assert await page(6, 100, 2**20) == [7, 8]
    assert await page(6, 100, 100) == [7]
    assert await page(8, 100, 2**20) == []


async def test_the_events_of_a_project_are_in_the_order_they_were_written(store: Store) -> None:
    one, two = Writing(store, "ses_a"), await created(store, "ses_b")
    await created(store, "ses_c", project="other")
    first = (await one.create()).position
    later = (await one.append(notice("1"), notice("2"))).position
    last = (await two.append(notice("3"))).position
    found = await store.logs.project_events("default", 0, 100, 2**20)
    sessions = [msgspec.json.decode(event.body)["session_id"] for event in found]
    assert sessions == ["ses_b", "ses_a", "ses_a", "ses_a", "ses_b"]
    assert [event.number for event in found[1:]] == [first, later - 1, later, last]
    assert found[0].number < first < later - 1 < later < last
    assert [event.number for event in await store.logs.project_events("default", later - 1, 1, 2**20)] == [later]
    assert await store.logs.last_position() == last
    assert await store.logs.settled_position() >= last


async def test_it_is_known_how_far_each_process_came(store: Store) -> None:
    session = await created(store, "ses_a")
    await session.append(notice("x"), progress=Progress(1, 5))
    await session.append(notice("x"), progress=Progress(1, 8))
    await session.append(notice("x"), progress=Progress(2, 3))
    assert [await store.logs.last_step("ses_a", start) for start in (1, 2, 3)] == [8, 3, 0]


async def test_a_log_has_the_size_that_its_appends_were_told(store: Store) -> None:
    session = await created(store, "ses_a")
    before = await store.logs.size("ses_a")
    placed = await session.append(notice("x"), said("itm_1", "hello " * 1000))
    assert await store.logs.size("ses_a") == before + placed.size
    again = await session.append(said("itm_1", "bye"))  # what is made of the events becomes less, they do not
    assert await store.logs.size("ses_a") == before + placed.size + again.size
    assert await store.logs.size("ses_none") == 0


async def test_items_are_paged_both_ways_and_large_ones_are_whole(store: Store) -> None:
    session = await created(store, "ses_a")
    await session.append(said("itm_1", "one"), notice("x"), said("itm_2", LARGE), started("itm_3"))
    logs = store.logs
    assert texts(await logs.items_after("ses_a", 0, 10)) == ["one", LARGE, ""]
    assert texts(await logs.items_after("ses_a", 1, 1)) == [LARGE]
    assert texts(await logs.items_before("ses_a", 3, 10)) == [LARGE, "one"]
    assert texts(await logs.items_since("ses_a", 2)) == [LARGE, ""]
    assert texts(await logs.messages_after("ses_a", 0, 10)) == ["one", LARGE]
    await session.append(said("itm_3", "three"))
    (last,) = await logs.items_after("ses_a", 2, 10)
    assert (last.number, last.first, last.last, last.is_open) == (3, 5, 6, False)
    assert texts(await logs.messages_after("ses_a", 4, 1)) == ["three"]


async def test_what_a_rewind_undid_is_no_longer_told(store: Store) -> None:
    session = await created(store, "ses_a")
    await session.append(said("itm_1", "stays"), made("a.txt"))
    await session.append(said("itm_2", "goes"), made("a.txt"), made("b.txt"))
    await session.append(rewound(3))
    await session.append(said("itm_4", "new"))
    assert texts(await store.logs.items_after("ses_a", 0, 10)) == ["stays", "new"]
    assert [event.number for event in await store.logs.artifacts("ses_a", 10)] == [3]


async def test_lines_and_artifacts_are_the_newest_in_order(store: Store) -> None:
    session = await created(store, "ses_a")
    await session.append(made("a.txt"), made("b.txt"), notice("x"), started("itm_1"), made("a.txt"))
    await session.append(said("itm_1", LARGE))
    assert [event.number for event in await store.logs.artifacts("ses_a", 10)] == [3, 6]
    assert [event.number for event in await store.logs.artifacts("ses_a", 1)] == [6]
    lines = await store.logs.lines("ses_a", 2)
    assert [event.number for event in lines] == [4, 7]
    assert LARGE.encode() in lines[1].body


async def test_turns_are_found_by_number_id_and_place(store: Store) -> None:
    session = await created(store, "ses_a")
    begun = [turn(1, 2), turn(2, 10), turn(3, 20, after=1)]
    await session.append(notice("x"), turns=tuple(begun))
    logs = store.logs
    assert await logs.turns("ses_a") == begun
    ended = turn(1, 2, last_sequence=9)
    again = msgspec.structs.replace(turn(4, 30), turn_id="trn_2")
    await session.append(notice("x"), turns=(ended, again))
    assert await logs.turns("ses_a") == [ended, *begun[1:], again]
    assert [await logs.find_turn("ses_a", which) for which in (1, "trn_2", 9, "trn_9")] == [ended, again, None, None]
    assert [await logs.turn_around("ses_a", place) for place in (1, 2, 19, 99)] == [None, ended, begun[1], again]
    assert await logs.branching_turns("ses_a") == [begun[2]]
    assert await logs.turns_within("ses_a", [(1, 1), (3, 9)]) == [ended, begun[2], again]


async def test_asks_are_an_inbox_of_the_project(store: Store) -> None:
    one, two = await created(store, "ses_a"), await created(store, "ses_b")
    older, newer = ask("ask_2", "ses_b", "requested", "2026-01-01"), ask("ask_1", "ses_a", "requested", "2026-01-02")
    await one.append(notice("x"), asks=(newer,))
    await two.append(notice("x"), asks=(older,))
    assert await store.logs.asks("default", None, only_open=True) == [older, newer]
    decided = msgspec.structs.replace(older, status="accept")
    await two.append(notice("x"), asks=(decided,))
    assert await store.logs.asks("default", None, only_open=True) == [newer]
    assert await store.logs.asks("default", "ses_b", only_open=False) == [decided]
    assert await store.logs.asks("other", None, only_open=False) == []
    assert await store.logs.find_ask("ses_b", "ask_2") == decided
    assert await store.logs.find_ask("ses_a", "ask_2") is None


async def test_snapshots_are_kept_in_order(store: Store) -> None:
    session = await created(store, "ses_a")
    kept = [
        Snapshot(snapshot_id=f"snp_{n}", workspace_id="wsp_1", turn=n, created_at=NOW, sequence=n + 2, tree="t")
        for n in (0, 1)
    ]
    await session.append(notice("x"), notice("y"), snapshots=tuple(reversed(kept)))
    assert await store.logs.snapshots("ses_a") == kept


async def test_what_is_read_is_counted(store: Store) -> None:
    session = await created(store, "ses_a")
    await session.append(notice(LARGE))
    before = store.bytes_read
    await store.logs.events("ses_a", 0, 10, raw=False, max_bytes=2**20)
    assert store.bytes_read > before


async def test_what_many_sessions_write_together_is_told_as_if_each_had_written_alone(store: Store) -> None:
    many = [await created(store, f"ses_{number}") for number in range(5)]
    spec = msgspec.structs.replace(SPEC, runner_name="big")
    bursts = [
        burst
        for session in many
        for burst in (
            session.append(started("itm_1"), made("a.txt"), turns=(turn(1, 2),), change=change(title="one")),
            session.append(said("itm_1", "first"), said("itm_2", "second"), made("a.txt"), change=change(title="two")),
            session.append(started("itm_3"), turns=(turn(1, 2, last_sequence=8),), placed=Placed("run_2", spec)),
        )
    ]
    await asyncio.gather(*bursts)
    for session in many:
        items = await store.logs.items_after(session.id, 0, 10)
        assert [(item.number, item.first, item.last, item.is_open) for item in items] == [
            (1, 2, 4, False),
            (2, 5, 5, False),
            (3, 7, 7, True),
        ]
        assert texts(items) == ["first", "second", ""]
        assert [event.number for event in await store.logs.artifacts(session.id, 10)] == [6]
        assert await store.logs.turns(session.id) == [turn(1, 2, last_sequence=8)]
        found = await store.find_session("default", session.id)
        assert found is not None
        assert (found.title, found.runner, found.runner_name, found.last_sequence) == ("two", "run_2", "big", 7)
