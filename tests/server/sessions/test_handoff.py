"""A session is handed over to another agent: in its place, at the end of a turn, with what was said and what waits."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.client import Client

from tests.support.finding import find
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk, said

_ECHO = Path(__file__).parents[2] / "support" / "programs" / "forgetful_agent.py"
AGENTS = json.dumps({"echo": {"command": [sys.executable, str(_ECHO), "always-the-same-id"]}})
"""An agent that repeats every text of its prompt."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server with a second agent."""
    with (
        running_server(tmp_path_factory.mktemp("handoff") / "state", env={"OSTLER_AGENTS": AGENTS}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client,
    ):
        yield client


def handed(talk: Talk, **body: Any) -> dict[str, Any]:
    """Hand a session over; gives it as it is then."""
    answer = talk.post("/handoff", **body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def steps(talk: Talk) -> list[tuple[str, str]]:
    """What the log tells of handing over."""
    events = talk.get("/events?limit=1000")["events"]
    return [(each["data"]["status"], each["data"]["to_agent"]) for each in events if each["type"] == "session.handoff"]


def is_with(agent: str) -> Any:
    return lambda event: (
        event["type"] == "session.handoff"
        and event["data"]["status"] == "done"
        and (event["data"]["to_agent"] == agent)
    )


def test_an_idle_session_is_handed_over_at_once_with_what_was_said(api: httpx.Client) -> None:
    talk = Talk(api, model="mock-large", permissionMode="bypass")
    talk.turn("mock: say My cat is called Ada.")
    found = handed(talk, agent="echo")
    assert (found["agent"]["type"], found.get("handoff"), found.get("model")) == ("echo", None, None)
    assert found["permissionMode"] == "bypass"
    assert talk.get()["agent"]["type"] == "echo"
    history, question = json.loads(said(talk.turn("What is my cat called?")))
    assert "assistant: My cat is called Ada." in history
    assert question == "What is my cat called?"
    assert steps(talk) == [("requested", "echo"), ("done", "echo")]
    # and back again, which is told what the other one did
    handed(talk, agent="mock", model="mock-small")
    told = said(talk.turn("mock: about"))
    assert "mock-small" in told


def test_a_turn_under_way_is_not_disturbed_and_what_waits_goes_to_the_new_agent(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: permission go on\nmock: say done by mock")
    ask = talk.until_type("permission.requested")["data"]["permission_id"]
    talk.send("The one that waits.")
    found = handed(talk, agent="echo", message="Look at this first.")
    assert (found["agent"]["type"], found["handoff"]) == ("mock", "echo")
    assert found["queueLength"] == 2
    assert talk.send("mock: say steered", whenBusy="steer")["disposition"] == "steered"
    talk.api.post(f"/sessions/{talk.id}/permissions/{ask}/reply", json={"reply": "once"})
    talk.until_type("turn.ended")
    before = len(talk.events)
    assert "done by mock" in said(talk.events)
    for _ in range(2):
        talk.until_type("turn.ended")
    first, second = [json.loads(part) for part in said(talk.events[before:]).replace('"]["', '"]\n["').splitlines()]
    assert "done by mock" in first[0]
    assert first[1] == "Look at this first."
    assert second == ["The one that waits."]
    assert talk.get()["agent"]["type"] == "echo"


def test_a_search_names_the_agent_that_said_it(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: permission go on\nmock: say A tapir.")
    ask = talk.until_type("permission.requested")["data"]["permission_id"]
    handed(talk, agent="echo", message="And a wombat.")
    talk.api.post(f"/sessions/{talk.id}/permissions/{ask}/reply", json={"reply": "once"})
    for _ in range(2):
        talk.until_type("turn.ended")
    speaker: dict[str, str] = {"from": "agent", "session": talk.id}
    assert [hit["agent"] for hit in find(api, '"A tapir"', agent="mock", **speaker)] == ["mock"]
    assert [hit["agent"] for hit in find(api, "wombat", **speaker)] == ["echo"]


def test_the_last_word_counts_and_it_can_be_taken_back(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: permission go on")
    ask = talk.until_type("permission.requested")["data"]["permission_id"]
    handed(talk, agent="echo")
    assert handed(talk, agent="mock").get("handoff") is None
    assert steps(talk) == [("requested", "echo"), ("dropped", "echo")]
    talk.api.post(f"/sessions/{talk.id}/permissions/{ask}/reply", json={"reply": "once"})
    talk.until_type("turn.ended")
    assert talk.get()["agent"]["type"] == "mock"


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"agent": "mock"}, "unprocessable", "agent"),
        ({"agent": "nobody"}, "unsupported_agent", None),
        ({"agent": "claude-code", "variant": "-"}, "invalid_request", "variant"),
        ({"agent": "echo", "message": " "}, "unprocessable", "message"),
        ({"agent": "echo", "permissionMode": "god"}, "invalid_request", "permissionMode"),
        ({}, "invalid_request", "agent"),
        ({"agent": "echo", "fork": True}, "no_workspace", None),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    api: httpx.Client, body: dict[str, Any], code: str, field: str | None
) -> None:
    talk = Talk(api)
    last = talk.get()["lastSequence"]
    assert_problem(talk.post("/handoff", **body), code, field=field)
    assert (talk.get()["lastSequence"], talk.get()["agent"]["type"]) == (last, "mock")


def test_a_session_that_is_over_is_not_handed_over(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.post("/stop")
    assert_problem(talk.post("/handoff", agent="echo"), "session_ended")


def test_lists_filters_and_search_know_who_has_it_now(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say zanzibar")
    handed(talk, agent="echo")
    talk.turn("The word is quetzal.")
    of_echo = api.get("/sessions", params={"agent": "echo", "perPage": 500}).json()["items"]
    of_mock = api.get("/sessions", params={"agent": "mock", "perPage": 500}).json()["items"]
    assert talk.id in {each["id"] for each in of_echo}
    assert talk.id not in {each["id"] for each in of_mock}

    def found(word: str) -> set[str]:
        items = api.get("/search", params={"q": f"{word} from:agent session:{talk.id}"}).json()["items"]
        return {each["agent"] for each in items}

    wait_until(lambda: found("quetzal") == {"echo"}, what="what the new agent said is not found")


async def test_an_agent_hands_its_own_session_over_while_it_works(api: httpx.Client) -> None:
    talk = Talk(api, key="its-own")
    talk.send("mock: permission go on")
    ask = talk.until_type("permission.requested")["data"]["permission_id"]
    async with Client(str(api.base_url).replace("/api/v1/", "/mcp")) as mcp:
        wanted = {"session_id": "its-own", "agent": "echo", "message": "Review what I did."}
        result = await mcp.call_tool("hand_over", wanted)
        assert not result.is_error, result.content
        assert (result.structured_content or {})["next_agent"] == "echo"
        again = await mcp.call_tool("hand_over", {"session_id": "its-own", "agent": "nobody"})
        assert again.is_error
    api.post(f"/sessions/{talk.id}/permissions/{ask}/reply", json={"reply": "once"})
    talk.until(is_with("echo"))
    before = len(talk.events)
    talk.until_type("turn.ended")
    assert json.loads(said(talk.events[before:]))[1] == "Review what I did."


def test_a_handoff_that_was_asked_for_survives_the_server(state_dir: Path) -> None:
    env = {"OSTLER_AGENTS": AGENTS}
    with running_server(state_dir, env=env) as server, httpx.Client(base_url=f"{server.url}/api/v1") as api:
        talk = Talk(api)
        talk.send("mock: permission go on\nmock: say done by mock")
        ask = talk.until_type("permission.requested")["data"]["permission_id"]
        handed(talk, agent="echo", message="Go on.")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    with running_server(state_dir, env=env) as server, httpx.Client(base_url=f"{server.url}/api/v1") as api:
        talk.api = api
        assert (talk.get()["agent"]["type"], talk.get()["handoff"]) == ("mock", "echo")
        wait_until(lambda: "process" in talk.get(), what="the agent was not adopted")
        api.post(f"/sessions/{talk.id}/permissions/{ask}/reply", json={"reply": "once"})
        talk.until(is_with("echo"))
        before = len(talk.events)
        talk.until_type("turn.ended")
        history, message = json.loads(said(talk.events[before:]))
        assert "done by mock" in history
        assert message == "Go on."


def test_an_agent_that_is_gone_when_its_time_comes_leaves_the_session_where_it_is(state_dir: Path) -> None:
    with (
        running_server(state_dir, env={"OSTLER_AGENTS": AGENTS}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1") as api,
    ):
        talk = Talk(api)
        talk.send("mock: permission go on\nmock: say done by mock")
        ask = talk.until_type("permission.requested")["data"]["permission_id"]
        handed(talk, agent="echo")
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1") as api:
        talk.api = api
        wait_until(lambda: "process" in talk.get(), what="the agent was not adopted")
        api.post(f"/sessions/{talk.id}/permissions/{ask}/reply", json={"reply": "once"})
        event = talk.until(lambda each: each["type"] == "session.handoff" and each["data"]["status"] == "dropped")
        assert "echo" in event["data"]["reason"]
        assert said(talk.turn("mock: say still here")) == "still here"
