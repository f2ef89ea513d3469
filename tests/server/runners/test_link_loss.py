"""A link that is cut is no lost agent: turns stay under way, prompts wait, and all of it goes on when it is back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ostler.runner.processes.journal import Steered
from tests.support.fleet import Fleet, Host, fleet_in
from tests.support.patience import until


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with fleet_in(tmp_path) as made:
        yield made


async def session_on(fleet: Fleet, host: Host) -> str:
    made = await fleet.post("/sessions", agent="mock", workspace={"executionHostId": host.about.name})
    assert made["runner"] == {"id": host.about.id, "name": host.about.name}
    assert made["placement"] == {"state": "placed"}
    return str(made["id"])


async def send(fleet: Fleet, session: str, message: str) -> str:
    return str((await fleet.post(f"/sessions/{session}/messages", message=message))["disposition"])


async def words(fleet: Fleet, session: str) -> list[str]:
    events = await fleet.events(session)
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    deltas = [event["data"]["delta"]["text"] for event in events if event["type"] == "item.delta"]
    return "".join(deltas).split()


async def ends(fleet: Fleet, session: str) -> list[str]:
    return [event["data"]["outcome"] for event in await fleet.events(session) if event["type"] == "turn.ended"]


def both_over(found: dict[str, Any]) -> bool:
    return bool(found["turnCount"] == 2 and found["activity"] == "idle")


async def test_a_turn_goes_on_over_a_cut_link_without_a_gap_or_a_double(fleet: Fleet) -> None:
    host = await fleet.host("far")
    session = await session_on(fleet, host)
    await send(fleet, session, "mock: stream 300 words 100/s")
    await fleet.until(session, lambda found: found["lastSequence"] > 20, "it has begun to speak")
    await host.cut()
    cut = await fleet.session(session)
    assert (cut["status"], cut["activity"], await ends(fleet, session)) == ("running", "working", [])
    assert await send(fleet, session, "mock: say afterwards") == "queued"
    await host.link()
    await fleet.until(session, both_over, "both turns are over")
    spoken = await words(fleet, session)
    assert (len(spoken), len(set(spoken))) == (301, 301)
    assert await ends(fleet, session) == ["completed", "completed"]
    lines = await fleet.lines(session)
    assert [line for line in lines if "link to the runner 'far'" in line] == [
        "The link to the runner 'far' was lost. Its agents work on there; what they do is shown when it is back.",
        "The link to the runner 'far' is back.",
    ]
    assert not [event for event in await fleet.events(session) if event["type"] == "error"]


async def test_what_needs_the_runner_is_refused_while_it_is_away_and_the_rest_is_answered(fleet: Fleet) -> None:
    host = await fleet.host("far")
    session, other = await session_on(fleet, host), (await fleet.post("/sessions", agent="mock"))["id"]
    await send(fleet, session, "mock: wait 600")
    await fleet.until(session, lambda found: "process" in found, "its agent runs")
    await host.cut()
    for path in ("interrupt", "pause"):
        answer = await fleet.api.post(f"/sessions/{session}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (503, "runner_unavailable")
        assert answer.headers["retry-after"]
    assert (await fleet.api.get(f"/sessions/{session}/files")).status_code == 503
    assert (await fleet.api.get("/agents")).status_code == 200
    assert await send(fleet, other, "mock: say hi") == "started"
    await host.link()
    await fleet.post(f"/sessions/{session}/interrupt")
    await fleet.until(session, lambda found: found["activity"] == "idle", "the turn is over")
    assert await ends(fleet, session) == ["interrupted"]


async def test_a_prompt_that_came_while_the_runner_was_away_is_begun_when_it_is_back(fleet: Fleet) -> None:
    host = await fleet.host("far")
    session = await session_on(fleet, host)
    await host.cut()
    assert await send(fleet, session, "mock: say hello") == "queued"
    await host.link()
    await fleet.until(session, lambda found: found["turnCount"] == 1 and found["activity"] == "idle", "it is answered")
    assert await words(fleet, session) == ["hello"]
    assert await fleet.lines(session) == []


async def test_an_ask_is_answered_while_the_runner_is_away_and_its_agent_hears_it_later(fleet: Fleet) -> None:
    host = await fleet.host("far")
    session = await session_on(fleet, host)
    await send(fleet, session, "mock: permission write")
    await fleet.until(session, lambda found: found["openAsks"] == 1, "it asks")
    (ask,) = (await fleet.api.get(f"/asks?session={session}")).json()["items"]
    await host.cut()
    await fleet.post(f"/sessions/{session}/permissions/{ask['askId']}/reply", reply="once")
    await host.link()
    await fleet.until(session, lambda found: found["activity"] == "idle", "the turn is over")
    assert await ends(fleet, session) == ["completed"]


async def test_a_session_that_is_cancelled_while_its_runner_is_away_is_over_and_its_agent_is_ended(
    fleet: Fleet,
) -> None:
    host = await fleet.host("far")
    session = await session_on(fleet, host)
    await send(fleet, session, "mock: wait 600")
    await fleet.until(session, lambda found: "process" in found, "its agent runs")
    await host.cut()
    assert (await fleet.post(f"/sessions/{session}/cancel"))["status"] == "cancelled"
    await host.link()
    assert host.runner is not None
    assert await host.runner.surviving() == []


async def test_sessions_that_are_deleted_while_the_link_comes_back_leave_no_agent(fleet: Fleet) -> None:
    host = await fleet.host("far")
    sessions = [await session_on(fleet, host) for _ in range(6)]
    for session in sessions:
        await send(fleet, session, "mock: wait 600")
        await fleet.until(session, lambda found: "process" in found, "its agent runs")
    await host.cut()
    linking = asyncio.create_task(host.link())
    for session in sessions:
        assert (await fleet.api.delete(f"/sessions/{session}")).status_code == 204
    await linking
    assert host.runner is not None
    assert await host.runner.surviving() == []


async def test_nothing_follows_the_end_of_sessions_that_are_cancelled_while_the_link_is_cut(fleet: Fleet) -> None:
    host = await fleet.host("far")
    sessions = [await session_on(fleet, host) for _ in range(3)]
    for session in sessions:
        await send(fleet, session, "mock: ignore-signals\nmock: wait 600")
        await fleet.until(session, lambda found: "process" in found, "its agent runs")
    cancelling = [asyncio.create_task(fleet.api.post(f"/sessions/{session}/cancel")) for session in sessions]
    await asyncio.gather(host.cut(), *cancelling)
    await host.link()
    for session in sessions:
        assert (await fleet.post(f"/sessions/{session}/cancel"))["status"] == "cancelled"  # the first may have failed
        assert (await fleet.events(session))[-1]["type"] == "session.ended"


async def test_sessions_that_are_cancelled_while_the_link_comes_back_end_once(fleet: Fleet) -> None:
    host = await fleet.host("far")
    sessions = [await session_on(fleet, host) for _ in range(6)]
    for session in sessions:
        await send(fleet, session, "mock: stream 600 words 100/s")
        await fleet.until(session, lambda found: "process" in found, "its agent runs")
    await host.cut()
    linking = asyncio.create_task(host.link())
    for session in sessions:
        await asyncio.sleep(0)
        assert (await fleet.post(f"/sessions/{session}/cancel"))["status"] == "cancelled"
    await linking
    assert host.runner is not None
    assert await host.runner.surviving() == []
    for session in sessions:
        assert await ends(fleet, session) == ["interrupted"]
        assert (await fleet.events(session))[-1]["type"] == "session.ended"


async def test_a_message_that_was_heard_within_a_turn_while_the_link_was_lost_is_not_said_again(fleet: Fleet) -> None:
    host = await fleet.host("far")
    session = await session_on(fleet, host)
    await send(fleet, session, "mock: permission first")
    await fleet.until(session, lambda found: found["openAsks"] == 1, "it asks")
    host.deafen()
    steer = {"message": "mock: say once", "whenBusy": "steer"}
    sending = asyncio.create_task(fleet.api.post(f"/sessions/{session}/messages", json=steer))
    await until(lambda: any(isinstance(entry.call, Steered) for entry in host.calls(session)))
    await host.cut()
    assert (await sending).json()["disposition"] == "queued"  # nobody knows better yet
    await host.link()
    (ask,) = (await fleet.api.get(f"/asks?session={session}")).json()["items"]
    await fleet.post(f"/sessions/{session}/permissions/{ask['askId']}/reply", reply="once")
    found = await fleet.until(session, lambda found: found["activity"] == "idle", "the turn is over")
    assert (found["turnCount"], found["queueLength"]) == (1, 0)
    assert (await words(fleet, session)).count("once") == 1


async def test_a_stop_that_a_server_had_no_time_for_is_done_when_it_is_asked_for_again(tmp_path: Path) -> None:
    async with fleet_in(tmp_path) as first:
        host = await first.host("far")
        session = await session_on(first, host)
        await send(first, session, "mock: wait 600")
        await first.until(session, lambda found: "process" in found, "its agent runs")
        stopping = asyncio.create_task(first.api.post(f"/sessions/{session}/stop"))
        await first.until(session, lambda found: found["status"] == "stopping", "it is being stopped")
        first.services.sessions.registry.leave()
        await host.cut()
        await stopping
        first.let_go(host)
    async with fleet_in(tmp_path) as second:
        assert (await second.session(session))["status"] == "stopping"
        assert (await second.post(f"/sessions/{session}/stop"))["status"] == "stopped"
        host = await second.host("far")
        assert host.runner is not None
        assert await host.runner.surviving() == []


async def test_one_runner_does_not_remove_what_is_on_another(fleet: Fleet, tmp_path: Path) -> None:
    (folder := tmp_path / "project").mkdir()
    (folder / "a.txt").write_text("here")
    repo = {"mode": "folder", "path": str(folder)}
    one, other = await fleet.host("one"), await fleet.host("other")
    sessions = [
        (await fleet.post("/sessions", agent="mock", repo=repo, workspace={"executionHostId": host.about.name}))["id"]
        for host in (one, other)
    ]
    for session in sessions:
        await fleet.until(session, lambda found: found["status"] == "running", "its workspace is there")
    await one.cut()
    await one.link()
    for session in sessions:
        listed = (await fleet.api.get(f"/sessions/{session}/files")).json()
        assert [entry["path"] for entry in listed["entries"]] == ["a.txt"]


async def test_a_server_that_starts_again_goes_on_with_a_runner_when_it_links(tmp_path: Path) -> None:
    async with fleet_in(tmp_path) as first:
        host = await first.host("far")
        session = await session_on(first, host)
        await send(first, session, "mock: stream 300 words 100/s")
        await first.until(session, lambda found: found["lastSequence"] > 20, "it has begun to speak")
        await host.cut()
        first.let_go(host)
    async with fleet_in(tmp_path) as second:
        away = await second.session(session)
        assert (away["activity"], away["runner"]["name"]) == ("working", "far")
        assert await send(second, session, "mock: say afterwards") == "queued"
        await second.host("far")
        await second.until(session, both_over, "both turns are over")
        spoken = await words(second, session)
        assert (len(spoken), len(set(spoken))) == (301, 301)
        assert await ends(second, session) == ["completed", "completed"]
