"""Workflow executions work for a client that knows only their own specification."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import chatting
from tests.support.http_helpers import assert_problem, wait_idle
from tests.support.serving import RunningServer, running_server

Message = tuple[str, dict[str, Any]]
ALL = "/workflow-executions"
WAITING: Message = ("WorkflowState", {"key": "status", "value": "waiting_for_input"})
PENDING: Message = ("WorkflowState", {"key": "status", "value": "pending"})


@pytest.fixture
def acme(server: RunningServer) -> Iterator[httpx.Client]:
    """A client of one organisation's executions."""
    with httpx.Client(base_url=f"{server.url}/api/orgs/acme", timeout=60) as client:
        yield client


def create(client: httpx.Client, text: str, **more: Any) -> str:
    answer = client.post(ALL, json={"kind": "agent", "input": {"userPrompt": text, **more}})
    assert answer.status_code == 201, answer.text
    assert answer.json()["status"] == "RUNNING"
    return str(answer.json()["id"])


def messages(client: httpx.Client, execution: str, **params: Any) -> Iterator[Message]:
    """What the consolidated stream tells."""
    with client.stream("GET", f"{ALL}/{execution}/stream/consolidated", params=params) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            field, _, value = line.partition(": ")
            name = value if field == "event" else name
            if field == "data":
                yield name, json.loads(value)


def until(found: Iterator[Message], last: Message) -> list[Message]:
    seen: list[Message] = []
    for each in found:
        seen.append(each)
        if each == last:
            return seen
    raise AssertionError(seen)


def tokens(seen: list[Message]) -> list[Any]:
    return [data["data"] for name, data in seen if name == "Token"]


@pytest.mark.parametrize("place", [{}, {"repo": {"mode": "none"}}])
def test_artifacts_are_named_as_the_list_of_artifacts_names_them(server: RunningServer, place: dict[str, Any]) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as root:
        made = {"agent": "mock", "permissionMode": "bypass", **place}
        session = root.post("/api/v1/sessions", json=made).json()["id"]
        chatting.ask(root, chatting.message("mock: say ready"), session=session)
        cwd = root.get(f"/api/v1/sessions/{session}").json()["cwd"]
        chatting.ask(root, chatting.message(f"mock: write {cwd}/sub/notes.md # Notes"), session=session)
        listed = [found["path"] for found in root.get(f"/api/v1/sessions/{session}/artifacts").json()["artifacts"]]
    with httpx.Client(base_url=f"{server.url}/api/orgs/default", timeout=60) as client:
        seen = until(messages(client, session), WAITING)
    told = [token["path"] for token in tokens(seen) if isinstance(token, dict) and token["type"] == "artifact"]
    assert told == listed == ["sub/notes.md"]


def test_a_task_streams_tokens_tools_terminal_and_artifacts(acme: httpx.Client) -> None:
    script = "mock: think Hm\nmock: say Hi\nmock: run echo hi; echo no >&2\nmock: write a.py x\\n"
    execution = create(acme, script, config={"permissionMode": "bypass"})
    seen = until(messages(acme, execution), WAITING)
    started = [token for token in tokens(seen) if isinstance(token, dict) and token["type"] == "tool_call_start"]
    shell, write = (token["tool_call"]["id"] for token in started)
    assert tokens(seen) == [
        {"type": "thinking_delta", "delta": "Hm"},
        "Hi",
        {
            "type": "tool_call_start",
            "tool_call": {"id": shell, "name": "shell", "arguments": {"command": "echo hi; echo no >&2"}},
        },
        {"type": "terminal", "stream": "stdout", "data": "hi\n"},
        {"type": "terminal", "stream": "stderr", "data": "no\n"},
        {
            "type": "tool_call_end",
            "tool_call": {"id": shell, "name": "shell"},
            "result": {"content": "hi\nno\n", "is_error": False},
        },
        {
            "type": "tool_call_start",
            "tool_call": {"id": write, "name": "write", "arguments": {"path": "a.py", "content": "x\n"}},
        },
        {"type": "artifact", "path": "a.py", "action": "write", "artifact_type": "code"},
        {
            "type": "tool_call_end",
            "tool_call": {"id": write, "name": "write"},
            "result": {"content": "Wrote 2 bytes to a.py.", "is_error": False},
        },
    ]
    assert seen[:2] == [
        ("WorkflowState", {"key": "status", "value": "running"}),
        ("WorkflowState", {"key": "currentTurn", "value": 1}),
    ]
    assert ("TaskState", {"taskExecutionId": shell, "status": "COMPLETED"}) in seen


def test_a_follow_up_starts_the_next_turn_and_its_stream_begins_there(acme: httpx.Client) -> None:
    execution = create(acme, "mock: say one")
    until(messages(acme, execution), WAITING)
    answer = acme.post(f"{ALL}/{execution}/signal", json={"name": "userMessage", "payload": {"text": "mock: say two"}})
    assert answer.json() == {"status": "accepted", "disposition": "started"}
    seen = until(messages(acme, execution), WAITING)
    assert tokens(seen) == ["two"]
    assert seen[1] == ("WorkflowState", {"key": "currentTurn", "value": 2})


def test_the_whole_history_is_streamed_from_offset_zero_and_resumed_from_an_id(acme: httpx.Client) -> None:
    execution = create(acme, "mock: say a b c d")
    until(messages(acme, execution), WAITING)
    whole = until(messages(acme, execution, offset=0), WAITING)
    with acme.stream("GET", f"{ALL}/{execution}/stream/consolidated", params={"offset": 0}) as answer:
        numbers = []
        for line in answer.iter_lines():
            if line.startswith("id: "):
                numbers.append(int(line[4:]))
            if len(numbers) == len(whole):
                break
    rest = until(messages(acme, execution, offset=numbers[4]), WAITING)
    assert rest == [message for number, message in zip(numbers, whole, strict=True) if number > numbers[4]]


def test_a_message_while_the_agent_works_steers_it_or_waits(acme: httpx.Client) -> None:
    execution = create(acme, "mock: say begun\nmock: wait 600")
    stream = messages(acme, execution)
    next(message for message in stream if message[0] == "Token")
    answer = acme.post(f"{ALL}/{execution}/signal", json={"name": "userMessage", "payload": {"text": "mock: say more"}})
    assert answer.json()["disposition"] in {"steered", "queued"}


def test_state_has_messages_status_and_turn(acme: httpx.Client, api: httpx.Client) -> None:
    execution = create(acme, "mock: say Hi", systemPrompt="Be brief.")
    wait_idle(api, execution, turns=1)
    assert api.get(f"/sessions/{execution}").json()["instructions"] == "Be brief."
    state = {key: acme.get(f"{ALL}/{execution}/state", params={"key": key}).json() for key in ("status", "currentTurn")}
    assert state["status"] == {"key": "status", "value": "waiting_for_input"}
    assert state["currentTurn"] == {"key": "currentTurn", "value": 1}
    assert acme.get(f"{ALL}/{execution}/state", params={"key": "messages"}).json()["value"] == [
        {"role": "user", "content": [{"type": "text", "text": "mock: say Hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
    ]


def test_an_execution_that_waits_goes_from_there_to_its_end_when_it_is_cancelled(acme: httpx.Client) -> None:
    execution = create(acme, "mock: permission delete")
    stream = messages(acme, execution)
    until(stream, WAITING)
    acme.post(f"{ALL}/{execution}/cancel").raise_for_status()
    cancelled = ("WorkflowState", {"key": "status", "value": "cancelled"})
    assert [each for each in stream if each[1].get("key") == "status"] == [cancelled]
    again = [each for each in messages(acme, execution, offset=0) if each[1].get("key") == "status"]
    assert again == [PENDING, ("WorkflowState", {"key": "status", "value": "running"}), WAITING, cancelled]


def test_a_cancelled_execution_ends_its_stream(acme: httpx.Client, api: httpx.Client) -> None:
    execution = create(acme, "mock: say begun\nmock: wait 60")
    stream = messages(acme, execution)
    next(message for message in stream if message[0] == "Token")
    statuses = [acme.post(f"{ALL}/{execution}/cancel").json()["status"] for _ in range(2)]
    assert statuses == ["CANCELLED", "CANCELLED"]
    cancelled = ("WorkflowState", {"key": "status", "value": "cancelled"})
    told = [message for message in stream if message[1].get("key") == "status"]
    assert told == [cancelled]
    again = [message for message in messages(acme, execution, offset=0) if message[1].get("key") == "status"]
    assert again == [PENDING, ("WorkflowState", {"key": "status", "value": "running"}), cancelled]
    page = api.get(f"/sessions/{execution}/events", params={"format": "workflow"}).json()["events"]
    assert [(found["event"], found["data"]) for found in page if found["data"].get("key") == "status"] == again
    assert acme.get(f"{ALL}/{execution}/state", params={"key": "status"}).json()["value"] == "cancelled"


def test_asks_are_told_and_answered_by_signals(acme: httpx.Client) -> None:
    execution = create(acme, "mock: permission delete\nmock: question Tea? | tea | coffee")
    stream = messages(acme, execution)
    asked = next(data["data"] for name, data in stream if name == "Token")
    assert asked["type"] == "permission_request"
    assert next(stream) == WAITING
    assert acme.get(f"{ALL}/{execution}/state?key=status").json()["value"] == "waiting_for_input"
    signal = {"name": "permissionReply", "payload": {"permissionId": asked["permissionId"], "reply": "once"}}
    assert acme.post(f"{ALL}/{execution}/signal", json=signal).status_code == 200
    question = next(
        token for _, data in stream if isinstance(token := data.get("data"), dict) and token["type"] == "question"
    )
    assert next(stream) == WAITING
    signal = {"name": "questionReply", "payload": {"questionId": question["questionId"], "answers": [["tea"]]}}
    assert acme.post(f"{ALL}/{execution}/signal", json=signal).status_code == 200
    assert "tea" in "".join(token for token in tokens(until(stream, WAITING)) if isinstance(token, str))


def test_executions_are_listed_by_kind_and_hidden_from_other_organisations(
    acme: httpx.Client, server: RunningServer, tmp_path: Path
) -> None:
    execution = create(acme, "mock: say Hi", workingDirectory=str(tmp_path))
    assert execution in [found["id"] for found in acme.get(ALL, params={"kind": "agent"}).json()["items"]]
    assert acme.get(ALL, params={"kind": "report"}).json()["items"] == []
    assert acme.get(f"{ALL}/{execution}").json()["workingDirectory"] == str(tmp_path)
    other = f"{server.url}/api/orgs/other/workflow-executions"
    assert httpx.get(other).json()["items"] == []
    assert_problem(httpx.get(f"{other}/{execution}"), "session_not_found")
    assert_problem(httpx.post(f"{other}/{execution}/cancel"), "session_not_found")


def test_an_organisation_counts_and_shows_only_its_own_executions(state_dir: Path) -> None:
    with (
        running_server(state_dir) as server,
        httpx.Client(base_url=f"{server.url}/api/orgs/default", timeout=60) as default,
        httpx.Client(base_url=f"{server.url}/api/orgs/acme", timeout=60) as acme,
    ):
        orgs = {"default": default, "acme": acme}
        made = [(org, create(orgs[org], "mock: say Hi")) for org in ("default", "acme", "default", "acme", "acme")]
        for org, client in orgs.items():
            wanted = [execution for owner, execution in reversed(made) if owner == org]
            numbers = range(1, len(wanted) + 1)
            pages = [client.get(ALL, params={"per_page": 1, "page": number}).json() for number in numbers]
            assert [[found["id"] for found in page["items"]] for page in pages] == [[each] for each in wanted]
            assert [page["total"] for page in pages] == [len(wanted)] * len(wanted)
            assert [page.get("nextPage") for page in pages] == [*numbers[1:], None]
        hidden, unknown = (default.get(f"{ALL}/{name}") for name in (made[1][1], "ses_nobody"))
        assert_problem(unknown, "session_not_found")
        assert hidden.text.replace(made[1][1], "ses_nobody") == unknown.text


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "kind"),
        ({"kind": "report", "input": {"userPrompt": "x"}}, "kind"),
        ({"kind": "agent"}, "input"),
        ({"kind": "agent", "input": {"userPrompt": " "}}, "input"),
        ({"kind": "agent", "input": {"userPrompt": 5}}, "input"),
        ({"kind": "agent", "input": {"userPrompt": "x", "colour": "red"}}, "input"),
        ({"kind": "agent", "input": {"userPrompt": "x", "config": {"permissionMode": "yolo"}}}, "input"),
    ],
    ids=str,
)
def test_a_bad_execution_is_refused_and_not_created(acme: httpx.Client, body: Any, field: str) -> None:
    before = acme.get(ALL).json()["total"]
    assert_problem(acme.post(ALL, json=body), "invalid_request", field=field)
    assert acme.get(ALL).json()["total"] == before


def test_what_the_agent_does_not_obey_is_refused_by_name(acme: httpx.Client, api: httpx.Client) -> None:
    before = acme.get(ALL).json()["total"]
    config = {"maxTurns": 25, "maxTokens": 16384, "temperature": 0.7, "thinking": "medium"}
    task = {"userPrompt": "mock: say Hi", "tools": ["read", "nonsense"], "config": config}
    problem = assert_problem(acme.post(ALL, json={"kind": "agent", "input": task}), "unprocessable")
    assert set(problem["errors"]) == {"input.tools", *(f"input.config.{name}" for name in config)}
    assert all("agent 'mock'" in reason for reasons in problem["errors"].values() for reason in reasons)
    assert "nonsense" in problem["detail"]
    assert acme.get(ALL).json()["total"] == before
    assert not {"limits", "tools"} & set(api.get("/agents/mock").json())


def test_the_provider_of_a_model_that_is_not_named_by_it_is_told_in_a_notice(
    acme: httpx.Client, api: httpx.Client
) -> None:
    task = {"userPrompt": "mock: say Hi", "model": {"provider": "acme", "modelId": "mock-small"}}
    answer = acme.post(ALL, json={"kind": "agent", "input": task})
    assert answer.status_code == 201, answer.text
    events = api.get(f"/sessions/{answer.json()['id']}/events", params={"types": "notice"}).json()["events"]
    (notice,) = [event["data"] for event in events if event["data"]["code"] == "settings_without_effect"]
    assert notice["message"].startswith("Without effect: input.model.provider 'acme'.")


def test_limits_that_cannot_be_are_refused_all_at_once(acme: httpx.Client) -> None:
    before = acme.get(ALL).json()["total"]
    config = {"maxTurns": -5, "maxTokens": 0, "temperature": 7}
    answer = acme.post(ALL, json={"kind": "agent", "input": {"userPrompt": "mock: say Hi", "config": config}})
    assert set(assert_problem(answer, "invalid_request")["errors"]) == {f"input.config.{name}" for name in config}
    assert acme.get(ALL).json()["total"] == before


@pytest.mark.parametrize(
    ("signal", "field"),
    [
        ({}, "name"),
        ({"name": "dance"}, "name"),
        ({"name": "userMessage"}, "payload"),
        ({"name": "userMessage", "payload": {"text": ""}}, "payload"),
        ({"name": "permissionReply", "payload": {"reply": "once"}}, "payload"),
    ],
    ids=str,
)
def test_a_bad_signal_is_refused(acme: httpx.Client, signal: Any, field: str) -> None:
    execution = create(acme, "mock: say Hi")
    assert_problem(acme.post(f"{ALL}/{execution}/signal", json=signal), "invalid_request", field=field)


def test_unknown_state_executions_and_organisations_are_named(acme: httpx.Client, server: RunningServer) -> None:
    execution = create(acme, "mock: say Hi")
    assert_problem(acme.get(f"{ALL}/{execution}/state", params={"key": "colour"}), "not_found")
    assert_problem(acme.get(f"{ALL}/{execution}/state"), "invalid_request", field="key")
    assert_problem(acme.get(f"{ALL}/nobody/stream/consolidated"), "session_not_found")
    assert_problem(httpx.get(f"{server.url}/api/orgs/a%20b/workflow-executions"), "invalid_request", field="org")
