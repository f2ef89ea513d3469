"""An agent is stopped by a limit: the session waits until it ends, and goes on by itself."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.base.clock import SystemClock
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Event, Talk, said

LONG = 3600


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        running_server(tmp_path_factory.mktemp("limits") / "state") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client,
    ):
        yield client


def is_limit(status: str) -> Any:
    return lambda event: event["type"] == "session.limit" and event["data"]["status"] == status


def limited(talk: Talk, seconds: float = LONG, before: str = "", after: str = "") -> Event:
    """Send a prompt that runs into a limit; gives what the log tells of that."""
    talk.send(f"{before}mock: limit {seconds}\n{after}")
    data: Event = talk.until(is_limit("reached"))["data"]
    return data


def prompts(talk: Talk) -> list[str]:
    """What the agent was asked, in order."""
    events = talk.get("/events?limit=1000")["events"]
    items = [event["data"]["item"] for event in events if event["type"] == "item.completed"]
    return [item["content"][0]["text"] for item in items if item["role"] == "user"]


def outcomes(talk: Talk) -> list[str]:
    return [turn["outcome"] for turn in talk.get("/turns")["turns"] if turn.get("outcome")]


def waiting(talk: Talk) -> tuple[str | None, bool]:
    """Until when, as the session shows it, and whether it goes on by itself then."""
    shown = talk.get()
    return shown.get("limitedUntil"), shown.get("waitsForLimit", False)


def stopped_waiting(talk: Talk) -> bool:
    return waiting(talk)[1] is False


def test_the_same_prompt_is_given_again_when_the_limit_is_over(api: httpx.Client) -> None:
    talk = Talk(api)
    data = limited(talk, 2, after="mock: say I am back.")
    assert waiting(talk) == (data["until"], True)
    assert (data["waits"], data["attempt"], data["acted"]) == (True, 1, False)
    failed = next(event for event in talk.events if event["type"] == "error")
    assert (failed["data"]["code"], failed["data"]["resets_at"]) == ("rate_limit", data["until"])
    since = len(talk.events)
    over = talk.until(is_limit("over"))
    assert over["time"] >= data["until"]
    talk.until_type("turn.ended")
    assert said(talk.events[since:]) == "I am back."
    first, again = prompts(talk)
    assert first == again
    assert waiting(talk) == (None, False)
    assert talk.get().get("error") is None


def test_an_agent_that_did_something_is_told_to_go_on(api: httpx.Client) -> None:
    talk = Talk(api)
    assert limited(talk, 1, before="mock: say Half of it.\n")["acted"] is True
    talk.until(is_limit("over"))
    talk.until_type("turn.ended")
    assert prompts(talk)[1] == "The limit that stopped you is over. Go on where you stopped."


def test_a_prompt_of_a_person_ends_the_waiting(api: httpx.Client) -> None:
    talk = Talk(api)
    limited(talk)
    assert said(talk.turn("mock: say Never mind.")) == "Never mind."
    assert waiting(talk) == (None, False)


def test_a_person_lets_it_go_on_as_it_would_by_itself(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send(f"mock: wait 1\nmock: limit {LONG}")
    talk.send("mock: say Second.")
    talk.until(is_limit("reached"))
    answer = talk.post("/go-on")
    assert answer.status_code == 200, answer.text
    over = talk.until(is_limit("over"))
    assert (over["data"]["waits"], over["actor"]) == (False, "local")
    again = talk.until(is_limit("reached"))["data"]  # it is as the agent said
    assert (again["waits"], again["attempt"], talk.get()["queueLength"]) == (True, 2, 1)
    first, second = prompts(talk)
    assert first == second


def test_an_agent_that_did_something_is_told_to_go_on_at_once(api: httpx.Client) -> None:
    talk = Talk(api)
    limited(talk, before="mock: say Half of it.\n")
    assert talk.post("/go-on").status_code == 200
    talk.until(is_limit("over"))
    talk.until_type("turn.ended")
    assert prompts(talk)[1] == "The limit that stopped you is over. Go on where you stopped."


def test_who_lets_go_on_what_does_not_wait_hears_that(api: httpx.Client) -> None:
    talk = Talk(api)
    assert_problem(talk.post("/go-on"), "not_waiting")
    limited(talk, before="mock: say Half of it.\n")
    with ThreadPoolExecutor() as people:
        answers = list(people.map(lambda _: talk.post("/go-on").status_code, range(4)))
    assert sorted(answers) == [200, 409, 409, 409]
    talk.until(is_limit("over"))
    talk.until_type("turn.ended")
    assert outcomes(talk) == ["failed", "completed"]
    assert talk.post("/stop").status_code in {200, 202}
    assert_problem(talk.post("/go-on"), "session_ended")


def test_what_was_queued_waits_as_well_and_a_new_prompt_lets_it_go_on(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send(f"mock: wait 1\nmock: limit {LONG}")
    talk.send("mock: say One.")
    talk.until(is_limit("reached"))
    assert talk.get()["queueLength"] == 1
    talk.send("mock: say Two.")
    talk.until(lambda event: event["type"] == "turn.ended" and outcomes(talk) == ["failed", "completed", "completed"])
    assert said(talk.events) == "One.Two."


def test_what_was_queued_comes_after_the_prompt_that_was_stopped(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: wait 1\nmock: limit 2\nmock: say First.")
    talk.send("mock: say Second.")
    talk.until(is_limit("over"))
    talk.until(lambda event: event["type"] == "turn.ended" and outcomes(talk) == ["failed", "completed", "completed"])
    assert said(talk.events) == "First.Second."


@pytest.mark.parametrize(
    ("path", "body"), [("/interrupt", {}), ("/restart", {}), ("/stop", {})], ids=["interrupt", "restart", "stop"]
)
def test_a_person_can_end_the_waiting(api: httpx.Client, path: str, body: dict[str, Any]) -> None:
    talk = Talk(api)
    limited(talk)
    answer = talk.post(path, **body)
    assert answer.status_code in {200, 202, 204}, answer.text
    assert stopped_waiting(talk)


def test_an_interrupt_says_that_it_ended_the_waiting_and_the_time_stays_shown(api: httpx.Client) -> None:
    talk = Talk(api)
    until = limited(talk)["until"]
    assert talk.post("/interrupt").json()["interrupted"] is True
    assert waiting(talk) == (until, False)
    assert talk.post("/interrupt").json()["interrupted"] is False


def test_a_session_that_is_put_out_of_the_way_does_not_wait(api: httpx.Client) -> None:
    talk = Talk(api)
    limited(talk)
    assert api.patch(f"/sessions/{talk.id}", json={"archived": True}).status_code == 200
    assert stopped_waiting(talk)


def test_a_session_that_waits_can_be_deleted(api: httpx.Client) -> None:
    talk = Talk(api)
    limited(talk)
    assert api.delete(f"/sessions/{talk.id}").status_code == 204
    assert api.get(f"/sessions/{talk.id}").status_code == 404


def test_a_limit_that_comes_again_and_again_is_left_to_a_person(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: limit 0.2 every time")
    last = talk.until(lambda event: is_limit("reached")(event) and not event["data"]["waits"])
    assert last["data"]["attempt"] == 6
    assert outcomes(talk) == ["failed"] * 6
    assert stopped_waiting(talk)


def test_without_the_setting_the_turn_stays_failed_and_the_time_is_shown(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "state", env={"OSTLER_GO_ON_AFTER_LIMIT": "false"}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client,
    ):
        talk = Talk(client)
        data = limited(talk)
        assert data["waits"] is False
        assert waiting(talk) == (data["until"], False)


@pytest.mark.parametrize("is_over", [False, True], ids=["before its end", "after its end"])
def test_a_server_that_is_killed_meanwhile_goes_on_with_it(state_dir: Path, *, is_over: bool) -> None:
    seconds = 1 if is_over else 4
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        until = limited(talk, seconds, after="mock: say I am back.")["until"]
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    wait_until(lambda: not is_over or SystemClock().now() > until, what="the limit did not end")
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk.api = api
        talk.until(is_limit("over"))
        talk.until_type("turn.ended")
        assert said(talk.events) == "I am back."
        assert outcomes(talk) == ["failed", "completed"]


def test_a_setting_that_was_turned_off_meanwhile_ends_the_waiting(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        limited(talk)
    off = {"OSTLER_GO_ON_AFTER_LIMIT": "false"}
    with running_server(state_dir, env=off) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk.api = api
        wait_until(lambda: stopped_waiting(talk), what="it still waits")
        assert talk.get()["limitedUntil"]
