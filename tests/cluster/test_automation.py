"""Two servers of one database: what begins or is told by itself happens once, also when one of them is killed."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import httpx
import pytest

from tests.cluster.conftest import Servers
from tests.support.patience import wait_until
from tests.support.receiving import SECRET, receiving
from tests.support.triggering import create, deliveries, new_session, push, said, send

_MANY = 40


def _tasks(api: httpx.Client, label: str) -> list[str]:
    found: list[dict[str, Any]] = api.get("/sessions", params={"label": label, "perPage": 100}).json()["items"]
    return [each["id"] for each in found]


def _runs(api: httpx.Client, name: str) -> list[str]:
    return [run["state"] for run in api.get(f"/schedules/{name}/runs").json()["items"]]


def test_each_time_of_a_schedule_begins_one_task_whoever_is_killed(
    servers: Servers, a: httpx.Client, b: httpx.Client
) -> None:
    servers.start_missing()
    push(a, prompt="mock: say Tick")
    soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    names = [f"once-{number}" for number in range(6)]
    for name in names:
        made = b.post("/schedules", json={"name": name, "template": "triage", "at": soon})
        assert made.status_code == 201, made.text
    servers.kill("a")
    wait_until(lambda: [_runs(b, name) for name in names] == [["started"]] * 6, "all have begun")
    for name in names:
        assert len(_tasks(b, f"schedule={name}")) == 1
    servers.start_missing()


def test_each_delivery_begins_one_task_whoever_is_killed(servers: Servers, b: httpx.Client) -> None:
    servers.start_missing()
    push(b, prompt="mock: say Seen")
    made = create(b, "storm")
    with servers.api("a") as first, ThreadPoolExecutor(4) as pool:
        sent = [pool.submit(send, (first, b)[n % 2], made, {"n": n // 2}, f"n{n // 2}") for n in range(2 * _MANY)]
        answers = [each.result().status_code for each in sent]
    assert (answers.count(202), answers.count(200)) == (_MANY, _MANY), "each came twice, to another server"
    servers.kill("a")
    wait_until(lambda: {each["state"] for each in deliveries(b, "storm")} == {"started"}, "all were acted on")
    begun = {each["session"] for each in deliveries(b, "storm")}
    assert len(begun) == _MANY
    assert set(_tasks(b, "trigger=storm")) == begun
    servers.start_missing()


def test_a_delivery_that_had_begun_its_task_waits_for_no_server_that_is_away(servers: Servers, b: httpx.Client) -> None:
    servers.start_missing()
    push(b, prompt="mock: say Seen")
    made = create(b, "begun", perMinute=3)
    late = [send(b, made, {"n": n}, f"n{n}").json()["delivery"] for n in range(2)][1]
    with servers.api("a") as a:
        there = a.post("/sessions", json={"agent": "mock", "key": late}).json()[
            "id"
        ]  # and then killed before it says so
    servers.kill("a")

    def acted_on() -> dict[str, Any]:
        return next(each for each in deliveries(b, "begun") if each["id"] == late)

    wait_until(lambda: acted_on()["state"] != "waiting", "it was acted on")
    assert (acted_on()["state"], acted_on()["session"]) == ("started", there)
    servers.start_missing()


@pytest.mark.timeout(400)
def test_a_storm_is_stored_once_and_keeps_the_rate_of_its_trigger_over_both_servers(
    servers: Servers, b: httpx.Client
) -> None:
    servers.start_missing()
    push(b, prompt="mock: say Seen")
    made = create(b, "paced", perMinute=6)
    thousand = [f"n{number}" for number in range(1000)]
    began = time.monotonic()
    with servers.api("a") as first, ThreadPoolExecutor(8) as pool:
        sent = list(pool.map(lambda n: send((first, b)[n % 2], made, {"n": n}, thousand[n]), range(1000)))
    print(f"1000 deliveries were taken by two servers in {time.monotonic() - began:.1f} s")
    assert {answered.status_code for answered in sent} == {202}
    servers.kill("a")
    with ThreadPoolExecutor(8) as pool:
        again = list(pool.map(lambda n: send(b, made, {"n": n}, thousand[n]), range(1000)))
    assert [each.json() for each in again] == [{**each.json(), "duplicate": True} for each in sent], "none was lost"
    begun = _tasks(b, "trigger=paced")
    assert 1 <= len(begun) <= 1 + (time.monotonic() - began) / 10
    waiting = deliveries(b, "paced")
    assert {each["state"] for each in waiting} == {"waiting"}
    due = sorted(each["beginsAt"] for each in waiting)
    steps = [_seconds(later) - _seconds(sooner) for sooner, later in pairwise(due)]
    assert {round(step) for step in steps} == {10}, "each waits its time behind the one before, whoever took it"
    assert b.delete("/triggers/paced").status_code == 204
    servers.start_missing()


def _seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def test_calls_of_webhooks_come_in_order_and_none_is_lost_whoever_is_killed(servers: Servers) -> None:
    servers.start_missing()
    with receiving() as receiver, servers.api("b") as b:
        body = {"url": receiver.url, "events": ["item.completed", "turn.ended"], "secret": SECRET}
        webhook = b.post("/webhooks", json=body).json()["id"]
        with servers.api("a") as a:
            sessions = [new_session(api) for api in (a, b, b)]
            receiver.go_on.clear()
            for api, session in zip((a, b, b), sessions, strict=True):
                said(api, session, "One.", "Two.", "Three.")
            wait_until(lambda: len(receiver.heard) >= 3, "calls are under way")
        servers.kill("a")
        receiver.go_on.set()

        def wanted(session: str) -> list[int]:
            params = {"types": "item.completed,turn.ended", "limit": "1000"}
            return [each["sequence"] for each in b.get(f"/sessions/{session}/events", params=params).json()["events"]]

        def told(session: str) -> list[int]:
            return list(dict.fromkeys(receiver.texts(session)))

        wait_until(lambda: all(len(wanted(each)) == 9 for each in sessions[1:]), "turns of the server that is left")
        wait_until(lambda: all(told(each) == wanted(each) for each in sessions), "all is told in order", seconds=90)
        assert receiver.forged == 0
        names = {name for name, _ in receiver.heard}
        assert len(names) == len({(each["data"]["session"], each["data"]["sequence"]) for _, each in receiver.heard})
        b.delete(f"/webhooks/{webhook}")
    servers.start_missing()
