"""Sessions on the machine of a server that died say what they wait for, and go on elsewhere when it is given up."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.cluster.test_two_servers import at, sequences
from tests.support.patience import wait_until
from tests.support.talk import Talk, said


@pytest.fixture(autouse=True)
def both(servers: Servers) -> Iterator[None]:
    """Whatever a test did to them, both are there again."""
    yield
    servers.start_missing()


def _lost(api: httpx.Client) -> list[dict[str, Any]]:
    return [each for each in api.get("/runners").json()["items"] if each["health"] == "lost"]


def test_what_was_on_its_machine_goes_on_elsewhere_when_an_operator_gives_it_up(
    servers: Servers, a: httpx.Client, b: httpx.Client
) -> None:
    busy, asleep, again = Talk(a), Talk(a), Talk(a)
    asleep.turn("mock: say before")
    again.turn("mock: say before")
    busy.send("mock: wait 600")
    busy.until_type("turn.started")
    home, address = busy.get()["runner"]["id"], servers.url("a")
    servers.kill("a")
    there = [at(b, talk) for talk in (busy, asleep, again)]
    wait_until(lambda: there[0].get()["placement"].get("reason") is not None, what="it says what it waits for")
    assert there[0].get()["placement"]["reason"] == (
        f"waiting for the server at {address}, whose machine it is on: start that again with its state folder, or "
        f"give it up with `ostler runners remove {home}`"
    )
    refused = b.post(f"/sessions/{asleep.id}/messages", json={"message": "mock: say hi"})
    assert (refused.status_code, refused.json()["code"]) == (503, "server_away")
    assert "`ostler runners remove`" in refused.json()["detail"]
    (lost,) = _lost(b)
    assert (lost["id"], lost["name"]) == (home, "local")

    assert b.delete(f"/runners/{home}").status_code == 204
    there[0].until(lambda event: event["type"] == "session.moved")
    ended = next(event for event in there[0].events if event["type"] == "turn.ended")
    assert ended["data"]["outcome"] == "interrupted"
    assert said(there[0].turn("mock: say after")) == "after"
    there[1].send("mock: say woken")
    there[1].until(lambda event: event["type"] == "session.moved")
    there[1].until_type("turn.ended")
    assert said(there[1].events).endswith("woken")
    for talk in there[:2]:
        assert sequences(talk.events) == list(range(1, len(talk.events) + 1))
        assert talk.get()["runner"]["id"] != home

    servers.start("a")
    wait_until(
        lambda: there[2].post("/messages", message="mock: say back").status_code == 202,
        what="the other server knows that it is back",
    )
    there[2].until_type("turn.ended")
    assert said(there[2].events).endswith("back")  # it slept all the time, on that machine
    assert there[2].get()["runner"]["id"] == home
    assert said(there[0].turn("mock: say still here")) == "still here"
    assert "Traceback" not in servers.logs()


def test_what_was_over_before_it_had_a_runner_waits_for_no_server(
    servers: Servers, a: httpx.Client, b: httpx.Client
) -> None:
    servers.start_missing()
    order = {"prompt": "mock: say hi", "agent": {"type": "mock"}, "runtime": {"labels": {"nobody": "has"}}}
    task = a.post("/tasks", json={**order, "repo": {"mode": "none"}}).json()["id"]
    assert a.post(f"/sessions/{task}/cancel").status_code == 200
    assert b.get(f"/sessions/{task}").json()["placement"]["state"] == "none"
    servers.kill("a")
    renamed = {"title": "still mine"}
    wait_until(lambda: b.patch(f"/sessions/{task}", json=renamed).status_code == 200, what="another server has it")
    assert b.get(f"/sessions/{task}").json()["title"] == "still mine"
