"""A session that moves is afterwards what it was before: paused, with the prompts that wait, or asked no more."""

from collections.abc import Iterator

import httpx
import pytest

from tests.runners.test_moves import SERVER, Hosts
from tests.support.hosts import moved, next_turn
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk, said


@pytest.fixture(scope="module")
def all_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp("states")
    with running_server(folder / "server", *SERVER) as server:
        yield Hosts(server, folder)


@pytest.fixture
def hosts(all_hosts: Hosts) -> Iterator[Hosts]:
    yield all_hosts
    all_hosts.lose_all()


@pytest.fixture
def api(hosts: Hosts) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{hosts.server.url}/api/v1", timeout=120) as client:
        yield client


def paused(api: httpx.Client, turn: str | None = None) -> Talk:
    """A session that was paused between two turns, or in the middle of one."""
    talk = Talk(api)
    talk.turn("mock: say one")
    if turn is not None:
        talk.send(turn)
        talk.until_type("turn.started")
    assert talk.post("/pause").status_code == 200
    return talk


def prompts(talk: Talk) -> list[str]:
    """What the user said, in order."""
    done = [event["data"]["item"] for event in talk.events if event["type"] == "item.completed"]
    return [item["content"][0]["text"] for item in done if item["role"] == "user"]


def wait_paused_on(talk: Talk, runner: str) -> None:
    def is_there() -> bool:
        found = talk.get()
        return (found["status"], found.get("runner", {}).get("name")) == ("paused", runner)

    wait_until(is_there, what=f"it is paused on {runner}")


def test_what_a_lost_runner_had_arrives_as_it_was(hosts: Hosts, api: httpx.Client) -> None:
    hosts.start("a")
    idle, frozen, asked = paused(api), paused(api, "mock: wait 600"), Talk(api)
    assert idle.send("mock: recall")["disposition"] == "queued"
    asked.send("mock: permission go on")
    asked.until_type("permission.requested")
    assert asked.send("mock: say and then", whenBusy="queue")["disposition"] == "queued"
    hosts.lose("a")
    hosts.start("b")
    for talk in (idle, frozen):
        assert moved(talk)["to_runner"] == "b"
        wait_paused_on(talk, "b")
    assert "mock: recall" not in prompts(idle)
    assert idle.post("/resume").status_code == 200
    idle.until_type("turn.ended")
    assert said(idle.events).endswith("I remember 2 user turns, this one included.")
    assert frozen.post("/resume").status_code == 200
    assert next_turn(frozen, "mock: say on") == "on"
    moved(asked)
    asked.until_type("turn.ended")
    assert said(asked.events) == "and then"
    assert api.get("/asks", params={"session": asked.id}).json()["items"] == []


def test_a_drain_moves_what_is_paused_and_begins_no_prompt_that_waits(hosts: Hosts, api: httpx.Client) -> None:
    hosts.start("c")
    idle, frozen, busy = paused(api), paused(api, "mock: wait 600"), Talk(api)
    busy.send("mock: wait 600")
    busy.until_type("turn.started")
    for number in (1, 2, 3):
        busy.send(f"mock: say {number}", whenBusy="queue")
    hosts.start("d")
    assert api.post("/runners/c/drain", json={"deadlineSeconds": 0}).status_code == 200
    for talk in (idle, frozen):
        assert moved(talk)["to_runner"] == "d"
        wait_paused_on(talk, "d")
        assert talk.post("/resume").status_code == 200
        assert next_turn(talk, "mock: say on") == "on"
    moved(busy)
    wait_until(lambda: len(busy.get("/turns")["turns"]) == 4, what="all prompts are begun")
    busy.until(lambda event: event["type"] == "turn.ended" and said(busy.events).endswith("3"))
    outcomes = [event["data"]["outcome"] for event in busy.events if event["type"] == "turn.ended"]
    assert outcomes == ["interrupted", "completed", "completed", "completed"]
