"""An event names who did it; what agents, policies and the server do by themselves names nobody."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.support.serving import RunningServer, running_server
from tests.support.talk import Event, Talk

HOLDER = {"authorization": "Bearer open sesame"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a token."""
    with running_server(tmp_path_factory.mktemp("guarded") / "state", "--token", "open sesame") as running:
        yield running


@pytest.fixture
def holder(guarded: RunningServer) -> Iterator[httpx.Client]:
    """A client with the token."""
    with httpx.Client(base_url=f"{guarded.url}/api/v1", headers=HOLDER, timeout=60) as client:
        yield client


def deeds(events: list[Event], actor: str = "token") -> list[str]:
    """The types of the events that name this actor; all others name nobody."""
    assert {event["actor"] for event in events if "actor" in event} <= {actor}
    return [event["type"] for event in events if "actor" in event]


def all_events(talk: Talk) -> list[Event]:
    events: list[Event] = talk.get("/events?limit=10000")["events"]
    return events


def test_a_session_and_its_turns_name_who_wanted_them_and_what_the_agent_does_names_nobody(
    holder: httpx.Client,
) -> None:
    talk = Talk(holder, title="Tea", permission_mode="bypass")
    talk.turn("mock: run echo hi\nmock: say hello")
    assert deeds(talk.events) == [
        "session.started",
        "session.info",
        "session.status",
        "session.status",
        "turn.started",
        "item.started",
        "item.completed",
    ]
    assert {event["data"]["item"]["role"] for event in talk.events if "actor" in event and "item" in event["data"]} == {
        "user"
    }


def test_a_decision_names_who_took_it_and_a_policy_names_nobody(holder: httpx.Client) -> None:
    talk = Talk(holder)
    talk.send("mock: permission delete the notes")
    asked = talk.until_type("permission.requested")["data"]["permission_id"]
    talk.post(f"/permissions/{asked}/reply", reply="always").raise_for_status()
    talk.until_type("turn.ended")
    talk.turn("mock: permission delete the notes")
    resolved = [event for event in talk.events if event["type"] == "permission.resolved"]
    assert [(event["data"]["metadata"]["resolved_by"], event.get("actor")) for event in resolved] == [
        ("user", "token"),
        ("policy", None),
    ]


def test_the_answer_to_a_question_names_who_gave_it(holder: httpx.Client) -> None:
    talk = Talk(holder)
    talk.send("mock: question Tea or coffee? | tea | coffee")
    asked = talk.until_type("question.requested")["data"]["question_id"]
    talk.post(f"/questions/{asked}/reply", answers=[["tea"]]).raise_for_status()
    assert talk.until_type("question.resolved")["actor"] == "token"


def test_a_prompt_that_waited_or_steered_names_who_sent_it(holder: httpx.Client) -> None:
    talk = Talk(holder)
    talk.send("mock: wait 600")
    talk.until(lambda event: "start" in event["data"])  # it has heard of its turn
    talk.send("mock: say later", when_busy="queue")
    (entry,) = talk.until_type("queue.updated")["data"]["entries"]
    taken_back = talk.send("mock: say never", when_busy="queue")["promptId"]
    holder.delete(f"/sessions/{talk.id}/queue/{taken_back}").raise_for_status()
    assert talk.send("mock: say steered", when_busy="steer")["disposition"] == "steered"
    talk.post("/interrupt").raise_for_status()
    ended, begun = talk.until_type("turn.ended"), talk.until_type("turn.started")
    assert (entry["actor"], ended["data"]["outcome"], ended["actor"]) == ("token", "interrupted", "token")
    assert begun["actor"] == "token"
    end = talk.until_type("turn.ended")
    assert (end["data"]["outcome"], "actor" in end) == ("completed", False)
    users = [event for event in talk.events if event["data"].get("item", {}).get("role") == "user"]
    assert {event.get("actor") for event in users} == {"token"}
    assert [event.get("actor") for event in talk.events if event["type"] == "queue.updated"] == [*["token"] * 3, None]


def test_changes_and_the_end_of_a_session_name_who_wanted_them(holder: httpx.Client) -> None:
    talk = Talk(holder)
    holder.patch(f"/sessions/{talk.id}", json={"title": "Coffee"}).raise_for_status()
    for verb in ("pause", "resume", "stop"):
        talk.post(f"/{verb}").raise_for_status()
    statuses = ["session.status"] * 2
    assert deeds(all_events(talk)[3:]) == [
        "session.info",
        *statuses,
        *statuses,
        *statuses,
        "session.ended",
    ]


def test_who_starts_a_session_through_mcp_is_named(guarded: RunningServer, holder: httpx.Client) -> None:
    arguments = {"agent": "mock", "prompt": "mock: say hi"}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "start_session", "arguments": arguments},
    }
    headers = {"accept": "application/json, text/event-stream"}
    answer = holder.post(f"{guarded.url}/mcp", json=body, headers=headers)
    (told,) = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    session = told["result"]["structuredContent"]["session_id"]
    assert begun_by(holder, session) == {("session.started", "token"), ("turn.started", "token")}


def test_who_starts_a_session_through_acp_is_named(
    guarded: RunningServer, holder: httpx.Client, tmp_path: Path
) -> None:
    with connect(f"ws{guarded.url.removeprefix('http')}/acp", additional_headers=HOLDER) as socket:

        def call(number: int, method: str, **params: Any) -> Any:
            socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
            return next(said for said in map(json.loads, socket) if said.get("id") == number)["result"]

        call(1, "initialize", protocolVersion=1)
        made = call(2, "session/new", cwd=str(tmp_path), mcpServers=[], _meta={"ostler": {"agent": "mock"}})
        call(3, "session/prompt", sessionId=made["sessionId"], prompt=[{"type": "text", "text": "mock: say hi"}])
    assert begun_by(holder, made["sessionId"]) == {("session.started", "token"), ("turn.started", "token")}


def begun_by(api: httpx.Client, session: str) -> set[tuple[str, str | None]]:
    """Who is named by the beginning of a session and of its turns."""
    events = api.get(f"/sessions/{session}/events").json()["events"]
    return {(event["type"], event.get("actor")) for event in events if event["type"].endswith(".started")} - {
        ("item.started", None),
        ("item.started", "token"),
    }


def test_whoever_needs_no_token_is_named_as_the_local_operator(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say hi")
    assert "turn.started" in deeds(talk.events, "local")
