"""The universal daemon API works for a client that knows only its own specification."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from ostler.agents.mock import PROGRAM
from ostler.server.dialects.daemon.projection import EVENT_TYPES
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server

Event = dict[str, Any]


@pytest.fixture(params=["/v1", ""], ids=["prefixed", "unprefixed"])
def daemon(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """A client of the paths that exist with and without the prefix."""
    with httpx.Client(base_url=f"{server.url}{request.param}", timeout=60) as client:
        yield client


@pytest.fixture
def v1(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/v1", timeout=60) as client:
        yield client


def create(client: httpx.Client, **more: Any) -> str:
    session = f"my-{uuid4()}"
    answer = client.post(f"/sessions/{session}", json={"agent": "mock", **more})
    assert (answer.status_code, answer.json()["healthy"]) == (200, True)
    return session


def send(client: httpx.Client, session: str, text: str) -> None:
    answer = client.post(f"/sessions/{session}/messages", json={"message": text})
    assert (answer.status_code, answer.content) == (204, b"")


def events_until(client: httpx.Client, session: str, kind: str, offset: int = 0) -> list[Event]:
    """What the event stream gives up to the first event of this type."""
    found = []
    with client.stream("GET", f"/sessions/{session}/events/sse", params={"offset": offset}) as answer:
        for event in parsed(answer):
            found.append(event)
            if event["type"] == kind:
                return found
    raise AssertionError(found)


def parsed(answer: httpx.Response) -> Iterator[Event]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    for line in answer.iter_lines():
        if line.startswith("data:"):
            yield json.loads(line[5:])


def texts(events: list[Event]) -> str:
    return "".join(event["data"]["delta"] for event in events if event["type"] == "item.delta")


def test_a_session_is_created_prompted_and_read(daemon: httpx.Client) -> None:
    session = create(daemon)
    send(daemon, session, "mock: say Hello there.")
    events = events_until(daemon, session, "turn.ended")
    assert texts(events) == "Hello there."
    assert {event["session_id"] for event in events} == {session}
    assert {event["type"] for event in events} <= EVENT_TYPES


def test_thoughts_and_output_grow_their_items_between_start_and_completion(v1: httpx.Client) -> None:
    session = create(v1)
    send(v1, session, "mock: think Let me see.\nmock: run echo ran\nmock: say Done.")
    seen: dict[str, list[Event]] = {}
    for event in events_until(v1, session, "turn.ended"):
        data = event["data"]
        if event["type"].startswith("item."):
            seen.setdefault(data.get("item_id") or data["item"]["item_id"], []).append(event)
    at_once = [name for name, events in seen.items() if events[-1]["data"]["item"]["kind"] in {"status", "system"}]
    assert at_once, "what has no type of its own is an item that is whole at once"
    for events in (seen.pop(name) for name in at_once):
        assert [event["type"] for event in events] == ["item.completed"]
    for events in seen.values():
        kinds = [event["type"] for event in events]
        assert (kinds[0], kinds[-1]) == ("item.started", "item.completed")
        assert set(kinds[1:-1]) <= {"item.delta"}
    grown = {part["type"]: texts(events) for events in seen.values() for part in events[-1]["data"]["item"]["content"]}
    assert (grown["reasoning"], grown["tool_call"], grown["text"]) == ("Let me see.", "ran\n", "Done.")


def test_a_page_of_events_is_what_the_document_says(server: RunningServer, v1: httpx.Client) -> None:
    session = create(v1, permissionMode="default")
    work = ["think Hm.", 'tool search {"query": "tea"} -> 3 results', "fail-tool search {} -> no", "run echo ran"]
    send(v1, session, "\n".join(f"mock: {each}" for each in (*work, "write notes.md # Notes", "say Done.")))
    events_until(v1, session, "turn.ended")
    document = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=60).json()
    page = v1.get(f"/sessions/{session}/events", params={"includeRaw": "true"}).json()
    schema = {"$ref": "#/components/schemas/DaemonEventPage", "components": document["components"]}
    assert [fault.message for fault in Draft202012Validator(schema).iter_errors(page)] == []
    assert "item.delta" in {event["type"] for event in page["events"]}


def test_a_page_of_events_says_whether_there_is_more(daemon: httpx.Client) -> None:
    session = create(daemon)
    send(daemon, session, "mock: say one two three")
    streamed = events_until(daemon, session, "turn.ended")
    first = daemon.get(f"/sessions/{session}/events", params={"limit": 3}).json()
    rest = daemon.get(f"/sessions/{session}/events", params={"offset": first["events"][-1]["sequence"]}).json()
    assert (len(first["events"]), first["hasMore"], rest["hasMore"]) == (3, True, False)
    assert first["events"] + rest["events"] == streamed


def test_raw_frames_come_only_when_asked_for(daemon: httpx.Client) -> None:
    session = create(daemon)
    send(daemon, session, "mock: say hi")
    events_until(daemon, session, "turn.ended")
    with_raw = daemon.get(f"/sessions/{session}/events?includeRaw=true").json()["events"]
    without = daemon.get(f"/sessions/{session}/events").json()["events"]
    assert any("raw" in event for event in with_raw)
    assert not any("raw" in event for event in without)


@pytest.mark.parametrize(
    ("reply", "status"), [("once", "accept"), ("always", "accept_for_session"), ("reject", "reject")]
)
def test_a_permission_is_decided(daemon: httpx.Client, reply: str, status: str) -> None:
    session = create(daemon)
    send(daemon, session, "mock: permission delete the notes")
    asked = events_until(daemon, session, "permission.requested")[-1]
    path = f"/sessions/{session}/permissions/{asked['data']['permission_id']}/reply"
    assert daemon.post(path, json={"reply": reply}).status_code == 204
    resolved = events_until(daemon, session, "permission.resolved", asked["sequence"])[-1]
    assert resolved["data"]["status"] == status


def test_a_question_is_answered_with_the_labels_of_each_question(daemon: httpx.Client) -> None:
    session = create(daemon)
    send(daemon, session, "mock: question Tea or coffee? | tea | coffee")
    asked = events_until(daemon, session, "question.requested")[-1]
    assert (asked["data"]["prompt"], asked["data"]["options"]) == ("Tea or coffee?", ["tea", "coffee"])
    path = f"/sessions/{session}/questions/{asked['data']['question_id']}"
    assert daemon.post(f"{path}/reply", json={"answers": [["tea"]]}).status_code == 204
    resolved = events_until(daemon, session, "question.resolved", asked["sequence"])[-1]
    assert (resolved["data"]["status"], resolved["data"]["response"]) == ("answered", "tea")


@pytest.mark.parametrize("body", [None, {}])
def test_a_question_is_rejected(daemon: httpx.Client, body: dict[str, Any] | None) -> None:
    session = create(daemon)
    send(daemon, session, "mock: question Tea? | tea")
    asked = events_until(daemon, session, "question.requested")[-1]
    assert (
        daemon.post(f"/sessions/{session}/questions/{asked['data']['question_id']}/reject", json=body).status_code
        == 204
    )
    resolved = events_until(daemon, session, "question.resolved", asked["sequence"])[-1]
    assert resolved["data"]["status"] == "rejected"


def test_creating_a_session_tells_what_its_agent_calls_it(v1: httpx.Client) -> None:
    session = f"my-{uuid4()}"
    created = v1.post(f"/sessions/{session}", json={"agent": "mock"}).json()
    listed = next(found for found in v1.get("/sessions").json()["sessions"] if found["sessionId"] == session)
    assert created == {"healthy": True, "nativeSessionId": listed["nativeSessionId"]}


def test_modes_have_id_name_and_description(daemon: httpx.Client) -> None:
    modes = daemon.get("/agents/mock/modes").json()["modes"]
    assert [set(mode) for mode in modes] == [{"id", "name", "description"}] * len(modes)
    assert "build" in [mode["id"] for mode in modes]


def test_installing_what_is_there_is_done(daemon: httpx.Client) -> None:
    answer = daemon.post("/agents/mock/install", json={})
    assert (answer.status_code, answer.content) == (204, b"")


def test_what_we_did_not_install_is_not_installed_anew(daemon: httpx.Client) -> None:
    refused = assert_problem(daemon.post("/agents/mock/install", json={"reinstall": True}), "unprocessable")
    assert "Ostler did not install" in refused["detail"]
    assert daemon.post("/agents/mock/install", json={"reinstall": False}).status_code == 204


def test_one_turn_is_streamed_until_it_ends(v1: httpx.Client) -> None:
    session = create(v1)
    path = f"/sessions/{session}/messages/stream"
    with v1.stream("POST", path, json={"message": "mock: say first"}) as answer:
        first = list(parsed(answer))
    with v1.stream("POST", path, json={"message": "mock: say second"}) as answer:
        second = list(parsed(answer))
    assert (texts(first), texts(second)) == ("first", "second")
    assert [events[-1]["type"] for events in (first, second)] == ["turn.ended", "turn.ended"]
    assert second[0]["sequence"] == first[-1]["sequence"] + 1


def test_the_stream_of_a_waiting_prompt_is_that_of_its_own_turn(v1: httpx.Client) -> None:
    session = create(v1)
    send(v1, session, "mock: wait 3\nmock: say first")
    with v1.stream("POST", f"/sessions/{session}/messages/stream", json={"message": "mock: say second"}) as answer:
        events = list(parsed(answer))
    kinds = [event["type"] for event in events]
    assert (texts(events), kinds[0], kinds[-1]) == ("second", "turn.started", "turn.ended")
    assert kinds.count("turn.ended") == 1


def test_a_terminated_session_has_ended_and_can_be_terminated_again(v1: httpx.Client) -> None:
    session = create(v1)
    assert [v1.post(f"/sessions/{session}/terminate").status_code for _ in range(2)] == [204, 204]
    ended = events_until(v1, session, "session.ended")[-1]
    assert ended["data"] == {"reason": "terminated", "terminated_by": "daemon"}
    assert_problem(v1.post(f"/sessions/{session}/messages", json={"message": "hi"}), "session_ended")


def test_sessions_are_listed_with_everything_the_specification_names(v1: httpx.Client, tmp_path: Path) -> None:
    session = create(
        v1, title="Tea", directory=str(tmp_path), agentMode="plan", permissionMode="bypass", model="mock-large"
    )

    def listed() -> dict[str, Any]:
        return next(found for found in v1.get("/sessions").json()["sessions"] if found["sessionId"] == session)

    wait_until(lambda: "nativeSessionId" in listed(), what="its agent has said who it is")
    found = listed()
    assert found.pop("nativeSessionId").startswith("mock-")
    times = found.pop("createdAt"), found.pop("updatedAt")
    assert found == {
        "sessionId": session,
        "agent": "mock",
        "agentMode": "plan",
        "permissionMode": "bypass",
        "ended": False,
        "eventCount": 5,
        "directory": str(tmp_path),
        "model": "mock-large",
        "title": "Tea",
    }
    assert all(isinstance(time, int) for time in times)


def test_agents_have_the_names_and_capabilities_of_the_specification(v1: httpx.Client) -> None:
    agents = {agent["id"]: agent for agent in v1.get("/agents").json()["agents"]}
    assert {"claude", "codex", "opencode", "amp", "pi", "mock"} <= set(agents)
    assert agents["mock"]["installed"] is True
    assert {"planMode", "toolCalls", "mcpTools", "sharedProcess"} <= set(agents["mock"]["capabilities"])
    assert v1.get("/agents/claude/models").status_code == 200
    assert v1.get("/health").json() == {"status": "ok"}


def test_an_unknown_agent_is_answered_with_the_names_of_this_api(v1: httpx.Client) -> None:
    known = {agent["id"] for agent in v1.get("/agents").json()["agents"]}
    answers = [
        v1.post("/sessions/nobody-s", json={"agent": "nobody"}),
        v1.post("/agents/nobody/install", json={}),
        v1.get("/agents/nobody/modes"),
        v1.get("/agents/nobody/models"),
    ]
    for answer in answers:
        problem = assert_problem(answer, "unsupported_agent")
        assert set(problem["detail"].partition("Known agents: ")[2].rstrip(".").split(", ")) == known


def test_both_catalogues_say_which_agents_resume(server: RunningServer, v1: httpx.Client) -> None:
    here = {agent["id"]: agent["capabilities"] for agent in v1.get("/agents").json()["agents"]}
    ours = {each["id"]: each for each in httpx.get(f"{server.url}/api/v1/agents", timeout=60).json()["items"]}
    assert (here["claude"]["resume"], ours["claude-code"]["capabilities"]["resume"]) == (True, True)
    assert ours["codex"]["coverage"]["resume"] == "converted"


@pytest.mark.lane("server")
def test_an_agent_that_only_the_settings_know_promises_no_resume(tmp_path: Path) -> None:
    agents = {"mine": {"command": [sys.executable, "-c", "raise SystemExit(1)"]}}
    with running_server(tmp_path / "state", env={"OSTLER_AGENTS": json.dumps(agents)}) as server:
        found = httpx.get(f"{server.url}/api/v1/agents/mine", timeout=60).json()
    assert found["capabilities"]["resume"] is False


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "invalid_request", "agent"),
        ({"agent": "nobody"}, "unsupported_agent", None),
        ({"agent": "mock", "permissionMode": "yolo"}, "invalid_request", "permissionMode"),
        ({"agent": "mock", "agentMode": "dance"}, "invalid_request", "agentMode"),
        ({"agent": "mock", "token": "secret"}, "invalid_request", "token"),
        ({"agent": "mock", "skills": {"sources": [{}]}}, "invalid_request", "skills"),
        (
            {
                "agent": "mock",
                "mcp": {"x": {"type": "remote", "url": "http://x", "oauth": {}, "envHeaders": {"a": "B"}}},
            },
            "invalid_request",
            "mcp",
        ),
        ({"agent": "mock", "directory": "here"}, "unprocessable", "cwd"),
        ({"agent": "mock", "mcp": {"x": {"type": "local", "command": []}}}, "invalid_request", "mcp"),
        ({"agent": "mock", "mcp": {"x": {"type": "smoke"}}}, "invalid_request", "mcp"),
        ({"agent": "mock", "nonsense": 1}, "invalid_request", "nonsense"),
        ([], "invalid_request", "body"),
    ],
    ids=str,
)
def test_a_bad_session_is_refused_and_not_created(
    daemon: httpx.Client, body: Any, code: str, field: str | None
) -> None:
    session = f"bad-{uuid4()}"
    assert_problem(daemon.post(f"/sessions/{session}", json=body), code, field=field)
    assert_problem(daemon.get(f"/sessions/{session}/events"), "session_not_found")


def test_an_id_is_used_once(daemon: httpx.Client) -> None:
    session = create(daemon)
    assert_problem(daemon.post(f"/sessions/{session}", json={"agent": "mock"}), "session_already_exists")


def test_an_id_with_impossible_letters_is_refused(daemon: httpx.Client) -> None:
    assert_problem(daemon.post("/sessions/a b", json={"agent": "mock"}), "invalid_request", field="session")


def test_an_agent_that_cannot_be_installed_is_not_healthy_and_nothing_is_created(v1: httpx.Client) -> None:
    answer = v1.post("/sessions/never", json={"agent": "mock", "agentVersion": "99.0"})
    assert answer.status_code == 200
    assert (answer.json()["healthy"], answer.json()["error"]["type"]) == (False, "versionNotOffered")
    assert_problem(v1.get("/sessions/never/events"), "session_not_found")


@pytest.mark.lane("server")
def test_an_agent_that_does_not_start_is_not_healthy_and_its_id_stays_free(tmp_path: Path) -> None:
    agents = {"codex": {"command": ["/bin/false"]}}
    with (
        running_server(tmp_path / "state", env={"OSTLER_AGENTS": json.dumps(agents)}) as server,
        httpx.Client(base_url=f"{server.url}/v1", timeout=60) as daemon,
    ):
        answer = daemon.post("/sessions/dead", json={"agent": "codex"}).json()
        assert (answer["healthy"], answer["error"]["type"]) == (False, "processExited")
        assert daemon.get("/sessions/dead/events").status_code == 404
        again = daemon.post("/sessions/dead", json={"agent": "mock"}).json()
        assert (again["healthy"], again["nativeSessionId"].startswith("mock-")) == (True, True)


@pytest.mark.lane("server")
def test_a_session_has_a_mode_that_its_agent_has(tmp_path: Path) -> None:
    agents = {"pi": {"command": [sys.executable, "-c", "raise SystemExit(1)"]}}
    with running_server(tmp_path / "state", env={"OSTLER_AGENTS": json.dumps(agents)}) as server:
        httpx.post(f"{server.url}/api/v1/sessions", json={"agent": "pi"}, timeout=60).raise_for_status()
        with httpx.Client(base_url=f"{server.url}/v1", timeout=60) as daemon:
            (session,) = daemon.get("/sessions").json()["sessions"]
            offered = [mode["id"] for mode in daemon.get("/agents/pi/modes").json()["modes"]]
    assert (session["agentMode"], "default" in offered) == ("default", True)


@pytest.mark.parametrize(
    "body", [{}, {"message": None}, {"message": 1}, {"message": "x", "attachments": [{}]}, None], ids=str
)
def test_a_bad_message_is_refused(daemon: httpx.Client, body: Any) -> None:
    assert_problem(daemon.post(f"/sessions/{create(daemon)}/messages", json=body), "invalid_request")


def test_a_streamed_message_sent_twice_under_one_key_happens_once(v1: httpx.Client) -> None:
    session, key = create(v1), {"idempotency-key": str(uuid4())}
    path, body = f"/sessions/{session}/messages/stream", {"message": "mock: say once"}
    with v1.stream("POST", path, json=body, headers=key) as answer:
        assert texts(list(parsed(answer))) == "once"
    assert v1.post(path, json=body, headers=key).headers["idempotency-replayed"] == "true"
    types = [event["type"] for event in v1.get(f"/sessions/{session}/events").json()["events"]]
    assert types.count("turn.started") == 1


def test_newer_clients_ask_for_what_can_be_set_and_whether_programs_run(v1: httpx.Client) -> None:
    session = f"my-{uuid4()}"
    assert v1.post(f"/sessions/{session}", json={"agent": "mock"}).json()["healthy"]
    mock = v1.get("/agents/mock", params={"config": "true", "no_cache": "true"}).json()
    assert [(option["id"], option["currentValue"]) for option in mock["configOptions"]][:2] == [
        ("permission_mode", "default"),
        ("mode", "build"),
    ]
    assert mock["serverStatus"]["status"] == "running"
    assert mock["serverStatus"]["uptimeMs"] >= 0
    listed = {agent["id"]: agent for agent in v1.get("/agents").json()["agents"]}
    assert listed["pi"]["serverStatus"] == {"status": "stopped"}
    assert "configOptions" not in listed["mock"]
    wanted = {"agentVersion": mock["version"], "agentProcessVersion": "1.0.0", "reinstall": False}
    assert v1.post("/agents/mock/install", json=wanted).status_code == 204


def test_a_session_is_called_by_the_id_of_its_client_when_something_is_wrong(v1: httpx.Client) -> None:
    session = f"my-{uuid4()}"
    assert v1.post(f"/sessions/{session}", json={"agent": "mock"}).json()["healthy"]
    for path in ("permissions/x/reply", "questions/x/reply", "questions/x/reject"):
        body: dict[str, Any] = (
            {"reply": "once"} if path.startswith("perm") else {"answers": []} if "reply" in path else {}
        )
        answer = v1.post(f"/sessions/{session}/{path}", json=body)
        assert f"Session '{session}' has no" in assert_problem(answer, "ask_not_found")["detail"]
    assert v1.post(f"/sessions/{session}/terminate").status_code == 204
    over = v1.post(f"/sessions/{session}/messages", json={"message": "Hello"})
    assert assert_problem(over, "session_ended")["detail"].startswith(f"Session '{session}' is")
    unfit = assert_problem(v1.post("/sessions/a b", json={"agent": "mock"}), "invalid_request")
    assert (unfit["detail"].split(" must")[0], list(unfit["errors"])) == ("session 'a b'", ["session"])


@pytest.mark.lane("server")
def test_the_log_has_an_agent_s_own_name_and_this_api_its_name_for_it(tmp_path: Path) -> None:
    mock = [sys.executable, "-I", "-S", str(PROGRAM)]
    agents = {"claude-code": {"command": mock}}
    with running_server(tmp_path / "state", env={"OSTLER_AGENTS": json.dumps(agents)}) as server:
        with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
            for named in ("claude", "claude-code"):
                api.post("/sessions", json={"agent": named, "key": named}).raise_for_status()
                (began,) = api.get(f"/sessions/{named}/events", params={"limit": 1}).json()["events"]
                assert began["data"]["metadata"]["agent"] == "claude-code"
        with httpx.Client(base_url=f"{server.url}/v1", timeout=60) as daemon:
            (began,) = daemon.get("/sessions/claude-code/events", params={"limit": 1}).json()["events"]
            assert began["data"]["metadata"]["agent"] == "claude"
            taken = daemon.post("/sessions/claude", json={"agent": "codex"})
            assert "claude-code" not in taken.text
            version = daemon.post("/agents/claude/install", json={"version": "../../x"})
            assert version.status_code == 422
            assert "of agent 'claude' is not on offer" in version.json()["detail"]
