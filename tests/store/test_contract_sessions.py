"""What every store answers about sessions: finding, listing, counting and deleting them."""

import msgspec
import pytest

from ostler.server.store.errors import StaleOwner
from ostler.server.store.protocol import Store
from ostler.server.store.records import NewJob, Placed, SessionFilter, SessionRecord
from ostler.wire.sessions import Ask, Turn
from tests.store.test_contract_runner_keys import TOKEN, key
from tests.support.log_writing import NOW, SPEC, TASK, Writing, change, created, notice, sequences


async def ids(store: Store, **wanted: object) -> list[str]:
    found = msgspec.convert({"project": "default", "page": 1, "per_page": 10, **wanted}, SessionFilter)
    records, total = await store.page_sessions(found)
    assert total == len(records)
    return [record.id for record in records]


async def test_a_session_is_found_by_id_and_key_as_it_was_written(store: Store) -> None:
    session = await created(store, "ses_a", key="mine")
    await session.append(
        notice("x"), change=change("paused", title="T", labels={"l": "1"}, state=b'{"s":1}', updated_at="later")
    )
    expected = SessionRecord(
        id="ses_a",
        project="default",
        key="mine",
        agent="mock",
        status="paused",
        title="T",
        labels={"l": "1"},
        created_at=NOW,
        updated_at="later",
        spec=SPEC,
        state=b'{"s":1}',
        last_sequence=2,
        owner="server",
        epoch=1,
        runner="run_1",
    )
    assert await store.find_session("default", "ses_a") == expected
    assert await store.find_session("default", "mine") == expected
    assert await store.find_session("other", "mine") is None


async def test_an_id_comes_before_a_key_that_looks_like_it(store: Store) -> None:
    await created(store, "ses_a", key="ses_b")
    await created(store, "ses_b", key="other")
    found = await store.find_session("default", "ses_b")
    assert found is not None
    assert found.id == "ses_b"


async def test_a_spec_can_be_changed(store: Store) -> None:
    await created(store, "ses_a")
    spec = msgspec.structs.replace(SPEC, model="large", env={"A": "b"})
    await store.update_spec("ses_a", 1, spec)
    found = await store.find_session("default", "ses_a")
    assert found is not None
    assert found.spec == spec


async def test_sessions_are_listed_newest_first_by_what_is_wanted(store: Store) -> None:
    await created(store, "ses_1", key="first", first=change("running", title="Fix it", labels={"team": "a"}))
    await created(store, "ses_2", agent="codex", first=change("stopped", labels={"team": "b"}))
    await created(store, "ses_3", task=TASK)
    await created(store, "ses_4", project="other")
    assert await ids(store) == ["ses_3", "ses_2", "ses_1"]
    assert await ids(store, statuses=("stopped", "failed")) == ["ses_2"]
    assert await ids(store, agent="codex") == ["ses_2"]
    assert await ids(store, labels={"team": "a"}) == ["ses_1"]
    assert await ids(store, labels={"team": "a"}, unlabelled=("team",)) == ["ses_3", "ses_1"]
    assert await ids(store, text="FIX") == ["ses_1"]
    assert await ids(store, text="irs") == ["ses_1"]
    assert await ids(store, project_id="website") == ["ses_3"]
    assert await ids(store, tenant_id="default") == ["ses_2", "ses_1"]
    assert await ids(store, only_tasks=True) == ["ses_3"]
    page = SessionFilter(project="default", page=2, per_page=2)
    records, total = await store.page_sessions(page)
    assert ([record.id for record in records], total) == (["ses_1"], 3)


async def test_sessions_are_counted(store: Store) -> None:
    await created(store, "ses_1")
    await created(store, "ses_2", first=change("stopped"))
    await created(store, "ses_3", task=TASK)
    assert await store.count_by_status() == {"running": 2, "stopped": 1}
    assert await store.count_by_project("default") == {"default": 2, "website": 1}
    assert await store.count_by_project("other") == {"other": 0}
    assert await store.session_ids() == {"ses_1", "ses_2", "ses_3"}


async def test_a_server_finds_what_it_has_to_go_on_with(store: Store) -> None:
    await created(store, "ses_1", first=change("running", state=b'{"busy":1}', workspace="wsp_1"))
    await created(store, "ses_2", first=change("running", state=b"{}"))
    await created(store, "ses_3", first=change("stopped", state=b'{"busy":1}', workspace="wsp_3"))
    seen: list[str] = []

    def is_busy(session_id: str, state: bytes) -> bool:
        seen.append(session_id)
        return b"busy" in state

    assert [found.id for found in await store.unfinished_sessions("run_1", ["stopped"], is_busy)] == ["ses_1"]
    assert sorted(seen) == ["ses_1", "ses_2"]
    assert [found.id for found in await store.sessions_in_state(is_busy)] == ["ses_1", "ses_3"]
    assert await store.workspaces_in_use("run_1") == {"wsp_1", "wsp_3"}
    assert [found.id for found in await store.ended_with_workspace(["stopped"])] == ["ses_3"]


async def test_sessions_are_found_by_the_runner_that_they_are_on(store: Store) -> None:
    await created(store, "ses_1", first=change("running", workspace="wsp_1"))
    await created(store, "ses_2", runner="run_2", first=change("running", workspace="wsp_2"))
    assert await store.session_ids("run_2") == {"ses_2"}
    assert await store.workspaces_in_use("run_2") == {"wsp_2"}
    found = await store.unfinished_sessions("run_2", ["stopped"], lambda *_: True)
    assert [(record.id, record.runner) for record in found] == [("ses_2", "run_2")]


async def test_sessions_on_a_runner_that_nobody_knows_are_taken_in(store: Store) -> None:
    await store.runner_keys.add_token(TOKEN)
    await store.runner_keys.register(TOKEN.hash, key(2))
    for number, runner in enumerate(["run_1", "run_2", "run_3", None]):
        await created(store, f"ses_{number}", runner=runner)
    await store.take_strays("run_1")
    assert await store.session_ids("run_1") == {"ses_0", "ses_2"}
    assert await store.session_ids("run_2") == {"ses_1"}


async def test_a_session_waits_until_it_is_placed_on_a_runner(store: Store) -> None:
    waiting = await created(store, "ses_1", first=change("queued"), runner=None)
    await created(store, "ses_2", first=change("queued"), runner=None)
    await created(store, "ses_3", first=change("cancelled"), runner=None)
    assert [record.id for record in await store.waiting_sessions(["cancelled"])] == ["ses_1", "ses_2"]
    spec = msgspec.structs.replace(SPEC, runner_name="big")
    late = Writing(store, "ses_1", epoch=99)
    late.last = waiting.last
    with pytest.raises(StaleOwner):
        await late.append(notice("placed"), placed=Placed("run_2", spec))
    await waiting.append(notice("placed"), placed=Placed("run_1", spec))
    placed = await store.find_session("default", "ses_1")
    assert placed is not None
    assert (placed.runner, placed.runner_name) == ("run_1", "big")
    assert [record.id for record in await store.waiting_sessions(["cancelled"])] == ["ses_2"]


async def test_a_session_is_given_to_another_agent_with_the_event_that_says_so(store: Store) -> None:
    session = await created(store, "ses_1", runner="run_1")
    await session.append(notice("moved"), placed=Placed("run_1", SPEC))
    same = await store.find_session("default", "ses_1")
    assert same is not None
    other = "another"
    await session.append(notice("handed over"), placed=Placed("run_1", SPEC, other))
    found = await store.find_session("default", "ses_1")
    assert found is not None
    assert (same.agent != other, found.agent, found.runner) == (True, other, "run_1")


async def test_branches_are_found_by_their_parent_and_their_keys(store: Store) -> None:
    await created(store, "ses_1", key="chat")
    for number in (2, 3, 4):
        await created(store, f"ses_{number}", key=f"chat:{number}", first=change(labels={"forked_from": "ses_1"}))
    await created(store, "ses_5", key="chat:5")
    records, taken = await store.find_branches("default", "ses_1", ("chat:", "chat;"), 2)
    assert ([record.id for record in records], taken) == (["ses_4", "ses_3"], 4)


async def test_of_a_deleted_session_nothing_is_left_but_that_it_was_there(store: Store) -> None:
    session = await created(store, "ses_a", key="mine", task=TASK)
    turn = Turn(turn_id="trn_1", number=1, started_at=NOW, first_sequence=2)
    ask = Ask(ask_id="ask_1", kind="permission", session_id="ses_a", agent="mock", status="requested", requested_at=NOW)
    await session.append(notice("x"), turns=(turn,), asks=(ask,), change=change("stopped"))
    await created(store, "ses_b")
    await store.delete_session("ses_a", 1, NOW, [NewJob(key="say-so", kind="webhook")])

    assert await store.find_session("default", "mine") is None
    assert (await store.was_deleted("default", "mine"), await store.was_deleted("default", "ses_a")) == (True, True)
    assert (await store.was_deleted("other", "mine"), await store.was_deleted("default", "ses_b")) == (False, False)
    assert await store.logs.turns("ses_a") == []
    assert await store.logs.asks("default", None, only_open=False) == []
    assert await store.jobs.find("say-so") is not None
    page = await store.logs.project_events("default", 0, 100, 2**20)
    assert {msgspec.json.decode(event.body)["session_id"] for event in page} == {"ses_b"}
    with pytest.raises(StaleOwner):
        await session.append(notice("late"))

    assert await store.deleted_with_events() == ["ses_a"]
    while await store.clear_some_events("ses_a"):
        continue
    assert await store.deleted_with_events() == []
    assert await sequences(store, "ses_a") == []
    assert await sequences(store, "ses_b") == [1]
    await created(store, "ses_c", key="mine")
