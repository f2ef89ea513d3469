"""Which runner a session is placed on, and what it waits for."""

import asyncio
import tarfile
from collections import Counter
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from ostler.base.errors.runners import RunnerRemoved
from ostler.server.runners.agents import agent_for, agent_named, catalogue
from ostler.server.sessions.runners.waiting import Waiting
from ostler.server.store.records import NewSession, SessionRecord
from tests.support.fleet import Fleet, fleet_in
from tests.support.http_helpers import assert_problem
from tests.support.log_writing import NOW, SPEC, Writing, change, notice
from tests.support.patience import stretched

NONE = {"mode": "none"}


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    """A server that runs no agents itself."""
    async with fleet_in(tmp_path, local_slots=0) as made:
        yield made


async def order(fleet: Fleet, prompt: str = "mock: say done", **more: Any) -> str:
    return str((await fleet.post("/tasks", prompt=prompt, agent={"type": "mock"}, repo=NONE, **more))["id"])


async def finished(fleet: Fleet, session: str) -> dict[str, Any]:
    return await fleet.until(session, lambda found: found["status"] == "completed", "it is done")


async def waits(fleet: Fleet, session: str) -> str | None:
    found = await fleet.session(session)
    assert ("runner" in found, found["placement"]["state"]) == (False, "queued")
    reason: str | None = found["placement"]["reason"]
    return reason


async def test_the_runner_of_the_server_is_preferred_where_nothing_is_said(tmp_path: Path) -> None:
    async with fleet_in(tmp_path) as fleet:
        await fleet.host("far", labels={"gpu": "true"})
        near, far = await order(fleet), await order(fleet, runtime={"labels": {"gpu": "true"}})
        assert (await finished(fleet, near))["runner"]["name"] == "local"
        done = await finished(fleet, far)
        assert (done["runner"]["name"], done["workspace"]["host"]) == ("far", "far")
        assert done["runtime"]["labels"] == {"gpu": "true"}


async def test_a_task_waits_for_a_runner_with_its_labels(fleet: Fleet) -> None:
    await fleet.host("plain")
    task = await order(fleet, runtime={"labels": {"gpu": "true"}})
    assert await waits(fleet, task) == "waiting for a runner with gpu=true"
    await fleet.host("big", labels={"gpu": "true", "zone": "b"})
    assert (await finished(fleet, task))["runner"]["name"] == "big"
    lines = await fleet.lines(task)
    assert lines[:2] == ["waiting for a runner with gpu=true", "Placed on the runner 'big'."]


async def test_a_session_is_placed_on_the_host_that_it_names(fleet: Fleet) -> None:
    one, other = await fleet.host("one"), await fleet.host("other")
    named = [await order(fleet, workspace={"executionHostId": name}) for name in ("other", one.about.id)]
    placed = [(await finished(fleet, task))["runner"]["id"] for task in named]
    assert placed == [other.about.id, one.about.id]
    answer = await fleet.api.post(
        "/sessions", json={"agent": "mock", "repo": NONE, "workspace": {"executionHostId": "nowhere"}}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "unprocessable")
    assert "'nowhere'" in answer.json()["errors"]["workspace.executionHostId"][0]


async def test_a_runner_gets_no_more_sessions_than_it_has_slots_and_the_rest_wait(fleet: Fleet) -> None:
    await fleet.host("small", slots=1)
    first = await order(fleet, "mock: wait 600")
    await fleet.until(first, lambda found: found["activity"] == "working", "it works")
    second = await order(fleet)
    assert await waits(fleet, second) == "waiting for a slot: the runner 'small' is full"
    assert fleet.runners.describe("small").used == 1
    await fleet.post(f"/sessions/{first}/cancel")
    assert (await finished(fleet, second))["runner"]["name"] == "small"


async def test_an_idle_agent_is_put_to_sleep_for_what_waits_for_its_slot(fleet: Fleet) -> None:
    await fleet.host("small", labels={"gpu": "yes"}, slots=2)
    idle, busy = await order(fleet, keepOpen=True), await order(fleet, "mock: wait 600", keepOpen=True)
    await fleet.until(idle, lambda found: found["turnCount"] == 1 and found["activity"] == "idle", "its turn is over")
    await finished(fleet, await order(fleet, runtime={"labels": {"gpu": "yes"}}))
    assert "process" not in await fleet.session(idle)
    assert (await fleet.session(busy))["activity"] == "working"
    await fleet.post(f"/sessions/{idle}/messages", message="mock: say again")
    await fleet.until(idle, lambda found: found["turnCount"] == 2 and found["activity"] == "idle", "it woke up")


async def test_an_agent_that_comes_to_rest_makes_room_for_what_waits(fleet: Fleet) -> None:
    await fleet.host("small", slots=1)
    first = await order(fleet, "mock: permission go on", keepOpen=True)
    await fleet.until(first, lambda found: found["openAsks"] == 1, "it asks")
    second = await order(fleet)
    assert await waits(fleet, second) == "waiting for a slot: the runner 'small' is full"
    await fleet.post(f"/sessions/{first}/permissions/per_1_1/reply", reply="once")
    await finished(fleet, second)


async def test_a_runner_whose_agents_are_taken_over_from_another_server_gets_no_more_than_it_has_slots(
    tmp_path: Path,
) -> None:
    async with fleet_in(tmp_path, local_slots=0) as first:
        host = await first.host("small", slots=3)
        kept = [await order(first, keepOpen=True) for _ in range(3)]
        for session in kept:
            await first.until(
                session, lambda found: found["turnCount"] == 1 and found["activity"] == "idle", "it rests"
            )
        await host.cut()
        first.let_go(host)
    async with fleet_in(tmp_path, local_slots=0) as second:
        linking = asyncio.create_task(second.host("small", slots=3))
        async with asyncio.timeout(stretched(60)):
            while (known := second.runners.get(host.about.id)) is None or known.link is None:
                await asyncio.sleep(0)
        late = await order(second, "mock: wait 600")
        used = []
        while (await second.session(late))["activity"] != "working":
            used.append(second.runners.describe("small").used)
            await asyncio.sleep(0.01)
        await linking
        assert max(used) <= second.runners.describe("small").used == 3
        assert ["process" in await second.session(session) for session in kept].count(True) == 2


async def test_a_runner_that_is_drained_gets_none_until_it_is_not(fleet: Fleet) -> None:
    host = await fleet.host("one")
    fleet.runners.drain(host.about.id, "2026-01-01T00:00:00.000Z")
    task = await order(fleet)
    await waits(fleet, task)
    (_, shown) = (await fleet.api.get("/runners")).json()["items"]
    assert (shown["name"], shown["draining"]) == ("one", True)
    fleet.runners.drain(host.about.id, None)
    await finished(fleet, task)


async def test_a_runner_is_drained_when_also_what_sleeps_there_has_left(fleet: Fleet) -> None:
    host = await fleet.host("one")
    talk = await fleet.post("/sessions", agent="mock")
    await fleet.until(talk["id"], lambda found: found["status"] == "running", "it is there")
    await host.cut()
    fleet.runners.drain(host.about.id, "2026-01-01T00:00:00.000Z")
    assert await _state(fleet, "one") == (0, 1)
    await host.link()
    async with asyncio.timeout(stretched(60)):
        while await _state(fleet, "one") != (0, 0):
            await asyncio.sleep(0.02)
    assert (await fleet.session(talk["id"]))["placement"]["state"] == "queued"


async def _state(fleet: Fleet, name: str) -> tuple[int, int]:
    found = (await fleet.api.get(f"/runners/{name}")).json()
    return found["used"], found["leaving"]


def waiting_record(session: str, project: str) -> SessionRecord:
    new = NewSession(id=session, project=project, key=session, agent="mock", created_at=NOW, spec=SPEC, runner=None)
    first = Writing(cast("Any", None), session, 1).burst(notice("created"), change=change("queued"))
    return new.stored(first, "server")


def test_those_who_wait_are_placed_oldest_first_and_fair_between_projects() -> None:
    waiting, at_work = Waiting(), Counter({"default/busy": 2})
    for session, project in (("ses_1", "busy"), ("ses_2", "one"), ("ses_3", "one"), ("ses_4", "one"), ("ses_5", "two")):
        waiting.add(waiting_record(session, project))
    order_of: list[str] = []
    for each in waiting.in_turn(at_work):
        order_of.append(each.id)
        at_work[each.share] += 1
    assert order_of == ["ses_2", "ses_5", "ses_3", "ses_1", "ses_4"]


async def test_the_next_free_slot_is_for_the_project_that_has_the_fewest(fleet: Fleet) -> None:
    await fleet.host("small", slots=2)
    working = [await order(fleet, "mock: wait 600", projectId="busy") for _ in range(2)]
    waiting = [await order(fleet, "mock: wait 600", projectId="busy") for _ in range(3)]
    other = await order(fleet, projectId="quiet")
    await fleet.post(f"/sessions/{working[0]}/cancel")
    await finished(fleet, other)
    begun = [await fleet.until(waiting[0], lambda found: "runner" in found, "the oldest of the others is next")]
    assert [each["projectId"] for each in begun] == ["busy"]
    for task in waiting[1:]:
        await waits(fleet, task)


async def test_a_session_without_files_waits_for_a_runner_too(fleet: Fleet) -> None:
    made = await fleet.post("/sessions", agent="mock", runtime={"labels": {"gpu": "true"}})
    assert (made["status"], made["placement"]) == (
        "queued",
        {"state": "queued", "reason": "waiting for a runner with gpu=true"},
    )
    sent = await fleet.post(f"/sessions/{made['id']}/messages", message="mock: say hello")
    assert sent["disposition"] == "queued"
    await fleet.host("small")
    assert await waits(fleet, made["id"]) == "waiting for a runner with gpu=true"
    await fleet.host("big", labels={"gpu": "true"})
    done = await fleet.until(
        made["id"], lambda found: found["turnCount"] == 1 and found["activity"] == "idle", "its prompt is done"
    )
    assert (done["status"], done["runner"]["name"], done["placement"]) == ("running", "big", {"state": "placed"})
    assert (await fleet.lines(made["id"]))[:2] == ["waiting for a runner with gpu=true", "Placed on the runner 'big'."]
    statuses = [
        event["data"]["status"] for event in await fleet.events(made["id"]) if event["type"] == "session.status"
    ]
    assert statuses == ["queued", "provisioning", "running"]


async def test_a_session_without_files_that_waits_can_be_stopped_and_outlives_its_server(tmp_path: Path) -> None:
    async with fleet_in(tmp_path, local_slots=0) as fleet:
        stopped, left = [(await fleet.post("/sessions", agent="mock"))["id"] for _ in range(2)]
        assert (await fleet.post(f"/sessions/{stopped}/stop"))["status"] == "stopped"
    async with fleet_in(tmp_path, local_slots=0) as fleet:
        assert await waits(fleet, left) == "waiting for a runner with room for mock"
        await fleet.host("one")
        await fleet.until(left, lambda found: found["status"] == "running", "it begins")
        assert (await fleet.session(stopped))["status"] == "stopped"


async def test_a_waiting_session_can_be_stopped_and_deleted(fleet: Fleet) -> None:
    stopped, deleted, left = [await order(fleet) for _ in range(3)]
    assert (await fleet.post(f"/sessions/{stopped}/stop"))["status"] == "stopped"
    assert (await fleet.api.delete(f"/sessions/{deleted}")).status_code == 204
    await fleet.host("one")
    await finished(fleet, left)
    assert (await fleet.session(stopped))["status"] == "stopped"


async def test_a_server_that_starts_again_goes_on_with_those_who_wait(tmp_path: Path) -> None:
    async with fleet_in(tmp_path, local_slots=0) as fleet:
        task = await order(fleet, runtime={"labels": {"gpu": "true"}})
    async with fleet_in(tmp_path, local_slots=0) as fleet:
        assert await waits(fleet, task) == "waiting for a runner with gpu=true"
        await fleet.host("big", labels={"gpu": "true"})
        await finished(fleet, task)


async def test_what_is_said_of_a_runner_that_was_removed_is_true(fleet: Fleet) -> None:
    host = await fleet.host("gone")
    task = await order(fleet, "mock: wait 600")
    await fleet.until(task, lambda found: "process" in found, "its agent is there")
    await fleet.services.links.revoke(host.about.id)
    await host.cut()
    with pytest.raises(RunnerRemoved, match="The runner 'gone', which the session is on, was removed"):
        fleet.runners.workspaces(host.about.id)
    async with asyncio.timeout(stretched(60)):
        while not [line for line in await fleet.lines(task) if line.startswith("The runner 'gone' was removed.")]:
            await asyncio.sleep(0.02)


async def test_what_is_no_tenants_is_handed_to_no_runner_of_one(fleet: Fleet, tmp_path: Path) -> None:
    theirs = await fleet.host("theirs", labels={"tenant": "acme"})
    await fleet.host("ours")
    ticket, content = await fleet.post("/uploads"), BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    sent = await fleet.api.put(ticket["url"].removeprefix("/api/v1"), content=content.getvalue())
    assert sent.status_code == 200, sent.text
    repo = {"mode": "upload", "upload": ticket["token"]}
    task = await fleet.post("/tasks", prompt="mock: say done", agent={"type": "mock"}, repo=repo)
    assert (await finished(fleet, task["id"]))["runner"]["name"] == "ours"
    await fleet.post("/agents/ostler/login", method="key", key="k3y-of-the-server", variable="ANTHROPIC_API_KEY")
    holders = {
        file.relative_to(tmp_path).parts[0]
        for file in tmp_path.rglob("*.json")
        if b"k3y-of-the-server" in file.read_bytes()
    }
    assert holders <= {"server", "ours"}
    assert (len(holders), fleet.runners.any("acme")) == (1, theirs.about.id)


async def test_what_the_runner_of_a_tenant_says_of_agents_is_heard_by_that_tenant_alone(fleet: Fleet) -> None:
    theirs = await fleet.host("theirs", labels={"tenant": "acme"})
    known, home = fleet.runners.get(theirs.about.id), fleet.runners.get(fleet.runners.home)
    assert known is not None
    assert home is not None
    mock = home.agents["mock"]
    claimed = msgspec.structs.replace(mock, name="Forged", aliases=("codex",), installed=True)
    await known.offered([claimed, msgspec.structs.replace(mock, id="acme-secret", name="Secret", aliases=())])
    assert agent_named(fleet.runners, "mock").name == mock.name, "others are believed first"
    assert agent_named(fleet.runners, "codex").id == "codex"
    assert agent_for(fleet.runners, "acme-secret", "acme").name == "Secret"
    for path in ("/agents/acme-secret", "/agents/acme-secret/modes", "/agents/acme-secret/models"):
        answer = await fleet.api.get(path)
        assert_problem(answer, "unsupported_agent")
    unknown = assert_problem(await fleet.api.post("/sessions", json={"agent": "nobody"}), "unsupported_agent")
    assert "mock" in unknown["detail"]
    assert "acme-secret" not in unknown["detail"]
    assert "acme-secret" not in {agent.id for agent in await catalogue(fleet.runners, "default")}


async def test_a_session_that_is_deleted_while_it_is_placed_holds_up_no_other(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await order(fleet), await order(fleet)
    creation = fleet.services.sessions.creation
    startable = creation.startable

    async def deleted_meanwhile(runner: str, session: str, *more: Any) -> Any:
        if session == first:
            assert (await fleet.api.delete(f"/sessions/{first}")).status_code == 204
        return await startable(runner, session, *more)

    monkeypatch.setattr(creation, "startable", deleted_meanwhile)
    await fleet.host("small", slots=1)
    assert (await finished(fleet, second))["runner"]["name"] == "small"


async def test_files_of_one_tenant_are_laid_out_on_no_runner_of_another(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = await fleet.host("ours")
    task = await order(fleet, "mock: write new.txt more text", keepOpen=True)
    await fleet.until(task, lambda found: found["turnCount"] == 1 and found["activity"] == "idle", "its turn is over")
    kept = tmp_path / "server" / "snapshots" / task
    async with asyncio.timeout(stretched(60)):
        while not list(kept.glob("*/manifest.json")):
            await asyncio.sleep(0.02)
    await fleet.host("theirs", labels={"tenant": "acme"})
    await ours.cut()
    file = f"/sessions/{task}/files/content?path=new.txt"
    assert (await fleet.api.get(file)).text == "more text"
    monkeypatch.setattr(fleet.runners.get(fleet.runners.home), "link", None)
    answer = await fleet.api.get(file)
    assert (answer.status_code, answer.json()["code"]) == (503, "runner_unavailable")
