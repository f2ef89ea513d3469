"""The example of the specification of workflow executions runs with Ostler's own agent, with all its settings."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from tests.support.http_helpers import assert_problem, wait_idle
from tests.support.own_agent import with_model
from tests.support.patience import wait_until
from tests.support.serving import running_server

ALL = "/api/orgs/acme/workflow-executions"
EXAMPLE: dict[str, Any] = {
    "systemPrompt": "You are a helpful coding assistant...",
    "userPrompt": "Analyze the top 10 trending GitHub repos...",
    "model": {"provider": "openrouter", "modelId": "deepseek/deepseek-chat-v3-0324"},
    "tools": ["read", "write", "edit", "bash", "grep", "find", "run-sandbox"],
    "config": {"maxTurns": 25, "maxTokens": 16384, "temperature": 0.7, "thinking": "medium"},
}


class Door(NamedTuple):
    """A server whose agent has the scripted model for OpenRouter."""

    client: httpx.Client
    api: httpx.Client
    """The same below /api/v1."""
    model: ScriptedModel

    def create(self, **changed: Any) -> httpx.Response:
        """The example with other fields."""
        return self.client.post(ALL, json={"kind": "agent", "input": {**EXAMPLE, **changed}})

    def idle(self, session: str, turns: int = 1) -> None:
        """Wait until its turns are over."""
        wait_idle(self.api, session, turns=turns)

    def state(self, session: str) -> tuple[str, int, list[tuple[str, list[str]]]]:
        """Status, turn and messages, each message by its role and the types of its pieces."""
        values = {
            key: self.client.get(f"{ALL}/{session}/state", params={"key": key}).json()["value"]
            for key in ("status", "currentTurn", "messages")
        }
        messages = [(each["role"], [piece["type"] for piece in each["content"]]) for each in values["messages"]]
        return values["status"], values["currentTurn"], messages

    def asked(self, session: str) -> str:
        """Wait until it asks for a permission."""
        wait_until(lambda: self.api.get("/asks", params={"session": session}).json()["items"], what="nothing is asked")
        [ask] = self.api.get("/asks", params={"session": session}).json()["items"]
        return str(ask["askId"])

    def stream(self, session: str) -> list[tuple[str, Any]]:
        """The whole stream of an execution that is over: states by their keys, and what the tokens carry."""
        answer = self.client.get(f"{ALL}/{session}/stream/consolidated", params={"offset": 0})
        data = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
        return [(each.get("key", ""), each.get("value", each.get("data"))) for each in data]

    def notices(self, session: str) -> dict[str, str]:
        """What people were told, by its code."""
        answer = self.api.get(f"/sessions/{session}/events", params={"types": "notice"})
        return {event["data"]["code"]: event["data"]["message"] for event in answer.json()["events"]}

    def ends(self, session: str) -> list[tuple[str, str]]:
        """How its turns ended."""
        answer = self.api.get(f"/sessions/{session}/events", params={"types": "turn.ended"})
        return [(event["data"]["outcome"], event["data"]["stop_reason"]) for event in answer.json()["events"]]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with (
        ScriptedModel() as model,
        running_server(tmp_path_factory.mktemp("door") / "state", env=with_model(model)) as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield Door(client, api, model)


def test_the_example_runs_as_it_stands(door: Door) -> None:
    answer = door.create()
    assert (answer.status_code, answer.json()["agent"], answer.json()["status"]) == (201, "ostler", "RUNNING")
    session = answer.json()["id"]
    door.idle(session)
    body = door.model.requests[-1]["body"]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("deepseek/deepseek-chat-v3-0324", 16384, 0.7)
    assert {tool["function"]["name"] for tool in body["tools"]} == set(EXAMPLE["tools"])
    assert "helpful coding assistant" in body["messages"][0]["content"]
    assert set(door.notices(session)) == {"setting_dropped"}
    assert door.ends(session) == [("completed", "end_turn")]


def test_a_follow_up_knows_what_was_said_before(door: Door) -> None:
    session = door.create(userPrompt="SCRIPT: say one").json()["id"]
    door.idle(session)
    signal = {"name": "userMessage", "payload": {"text": "SCRIPT: recall"}}
    assert door.client.post(f"{ALL}/{session}/signal", json=signal).is_success
    door.idle(session, turns=2)
    state = door.client.get(f"{ALL}/{session}/state", params={"key": "messages"}).json()
    assert "2 scripted user turns" in json.dumps(state)


def test_one_model_call_is_all_that_a_turn_gets_if_that_is_its_limit(door: Door) -> None:
    session = door.create(userPrompt="SCRIPT: bash echo hi\nSCRIPT: say Never.", config={"maxTurns": 1}).json()["id"]
    door.idle(session)
    assert door.ends(session) == [("completed", "max_turn_requests")]
    assert "Stopped after 1 model calls" in door.notices(session)["max_turn_requests"]


def test_messages_and_turns_are_right_at_every_moment(door: Door) -> None:
    session = door.create(userPrompt="SCRIPT: say Well. ;; bash echo hi\nSCRIPT: say Done.").json()["id"]
    ask = door.asked(session)
    said = [("user", ["text"]), ("assistant", ["text"]), ("assistant", ["toolCall"])]
    assert door.state(session) == ("waiting_for_input", 1, said)
    reply = {"name": "permissionReply", "payload": {"permissionId": ask, "reply": "once"}}
    assert door.client.post(f"{ALL}/{session}/signal", json=reply).is_success
    door.idle(session)
    said += [("tool", ["toolResult"]), ("assistant", ["text"])]
    assert door.state(session) == ("waiting_for_input", 1, said)
    signal = {"name": "userMessage", "payload": {"text": "SCRIPT: say Twice."}}
    assert door.client.post(f"{ALL}/{session}/signal", json=signal).is_success
    door.idle(session, turns=2)
    said += [("user", ["text"]), ("assistant", ["text"])]
    assert door.state(session) == ("waiting_for_input", 2, said)


@pytest.mark.parametrize("script", ["bash echo hi", "say Well."], ids=["asks", "is idle"])
def test_an_execution_that_waits_is_cancelled_without_running_between(door: Door, script: str) -> None:
    session = door.create(userPrompt=f"SCRIPT: {script}").json()["id"]
    door.asked(session) if script.startswith("bash") else door.idle(session)
    assert door.client.post(f"{ALL}/{session}/cancel").json()["status"] == "CANCELLED"
    statuses = [value for key, value in door.stream(session) if key == "status"]
    assert statuses == ["pending", "running", "waiting_for_input", "cancelled"]


@pytest.mark.parametrize("has_folder", [False, True])
def test_artifacts_of_the_stream_have_the_paths_of_those_of_the_session(
    door: Door, tmp_path: Path, *, has_folder: bool
) -> None:
    place = {"workingDirectory": str(tmp_path)} if has_folder else {}
    script = "SCRIPT: write notes/a.md one\nSCRIPT: write b.py two\nSCRIPT: say Done."
    config = {"permissionMode": "bypass"}
    session = door.create(userPrompt=script, config=config, **place).json()["id"]
    door.idle(session)
    listed = [each["path"] for each in door.api.get(f"/sessions/{session}/artifacts").json()["artifacts"]]
    door.client.post(f"{ALL}/{session}/cancel")
    tokens = [value for _, value in door.stream(session) if isinstance(value, dict)]
    told = [token["path"] for token in tokens if token["type"] == "artifact"]
    assert sorted(told) == sorted(listed) == ["b.py", "notes/a.md"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"tools": ["read", "teleport"]},
            "input.tools: 'teleport' cannot be chosen: agent 'ostler' has read, write, edit",
        ),
        ({"config": {"thinking": "frantic"}}, "'frantic' is not one that agent 'ostler' has"),
        ({"config": {"maxTurns": 10_001}}, "limits.maxTurns 10001 must be from 1 to 10000"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(door: Door, changed: dict[str, Any], words: str) -> None:
    problem = assert_problem(door.create(**changed), "unprocessable")
    assert words in problem["detail"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"limits": {"maxTurns": 3}}, "limits.maxTurns"),
        ({"limits": {"maxTokens": 3}}, "limits.maxTokens"),
        ({"temperature": 0.5}, "temperature"),
        ({"tools": ["read"]}, "tools"),
    ],
)
def test_a_session_of_an_agent_that_does_not_obey_a_setting_is_refused(
    door: Door, given: dict[str, Any], field: str
) -> None:
    problem = assert_problem(door.api.post("/sessions", json={"agent": "mock", **given}), "unprocessable")
    assert list(problem["errors"]) == [field]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limits": {"maxTurns": 0}}, "limits.maxTurns 0 must be from 1 to 10000"),
        ({"limits": {"maxTokens": 0}}, "limits.maxTokens 0 must be from 1 to 10000000"),
        ({"temperature": 2.5}, "temperature 2.5 must be from 0 to 2"),
        ({"tools": ["read", "teleport"]}, "tools: 'teleport' cannot be chosen"),
    ],
)
def test_a_session_is_refused_what_is_out_of_range(door: Door, given: dict[str, Any], words: str) -> None:
    problem = assert_problem(door.api.post("/sessions", json={"agent": "ostler", **given}), "unprocessable")
    assert words in problem["detail"]


def test_a_task_limits_the_length_of_an_answer_where_the_agent_obeys(door: Door) -> None:
    settings = {"maxTokens": 8000, "model": "openrouter/deepseek/deepseek-chat-v3-0324"}
    order = {"repo": {"mode": "none"}, "runtime": {"type": "local"}, "prompt": "SCRIPT: say one"}
    made = door.api.post("/tasks", json={**order, "agent": {"type": "ostler", "settings": settings}})
    assert made.status_code == 201, made.text
    wait_until(lambda: door.api.get(f"/tasks/{made.json()['id']}").json()["status"] == "completed", what="not done")
    assert door.model.requests[-1]["body"]["max_tokens"] == 8000
    other = {**order, "agent": {"type": "mock", "settings": {"maxTokens": 8000}}}
    refused = assert_problem(door.api.post("/tasks", json=other), "unprocessable")
    assert refused["errors"] == {"agent.settings.maxTokens": ["has no effect on agent 'mock'"]}
