"""Chat endpoints refuse what they cannot do in the words of their protocol, and nothing is left half done."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.chatting import SSE, Body, ask, assert_status, envelope, message, session_count
from tests.support.serving import RunningServer, running_server


@pytest.fixture
def root(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def key() -> str:
    return f"chat-{uuid4().hex}"


FILE: Body = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,!"}
BAD_BODIES: dict[str, tuple[Any, str]] = {
    "no messages": ({}, "data.messages"),
    "null messages": ({"data": {"messages": None}}, "messages"),
    "no message": (envelope(), "data.messages"),
    "a message without parts": (envelope({"role": "user", "content": "hi"}), "parts"),
    "a null part": (envelope({"role": "user", "parts": [None]}), "parts"),
    "a part without type": (envelope({"role": "user", "parts": [{"text": "hi"}]}), "type"),
    "an unknown role": (envelope({"role": "tool", "parts": []}), "role"),
    "nothing said": (envelope(message("  ")), "data.messages[0].parts"),
    "only unknown parts": (envelope({"role": "user", "parts": [{"type": "video"}]}), "data.messages[0].parts"),
    "a system message last": (envelope(message("hi", "system")), "data.messages[0]"),
    "an assistant message last": (envelope(message("hi", "assistant")), "data.messages[0]"),
    "an id with blanks": ({**envelope(message("hi")), "session_id": "a b"}, "session_id"),
    "an id that is too long": ({**envelope(message("hi")), "session_id": "x" * 129}, "session_id"),
    "an empty id": ({**envelope(message("hi")), "session_id": ""}, "session_id"),
    "a path as id": ({**envelope(message("hi")), "session_id": ".."}, "session_id"),
    "an id that is no text": ({**envelope(message("hi")), "session_id": 5}, "session_id"),
    "a bad image": (envelope({"role": "user", "parts": [FILE]}), "data.messages[0].parts[0].url"),
    "a file of the machine": (
        envelope({"role": "user", "parts": [{**FILE, "url": "file:///etc/passwd"}]}),
        "data.messages[0].parts[0].url",
    ),
    "a binary file": (
        envelope({"role": "user", "parts": [{"type": "file", "mediaType": "a/b", "url": "data:;base64,/w=="}]}),
        "data.messages[0].parts[0]",
    ),
    "an unknown setting": (envelope(message("hi"), parameters={"agent": {"brain": "big"}}), "brain"),
    "an unknown permission": (envelope(message("hi"), parameters={"agent": {"permissions": "all"}}), "permissions"),
    "an unknown parameter": (envelope(message("hi"), parameters={"foo": 1}), "data.parameters.foo"),
    "not an object": ([], "body"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_bad_body_is_refused_by_name_and_creates_nothing(root: httpx.Client, name: str) -> None:
    body, field = BAD_BODIES[name]
    before = session_count(root)
    answer = root.post("/messages", json=body)
    assert field in assert_status(answer, 400, "invalid_request")["message"]
    assert session_count(root) == before


def test_a_version_of_an_agent_is_refused_by_name(root: httpx.Client) -> None:
    body = {**envelope(message("hi")), "references": {"agent": {"slug": "mock", "version": "1"}}}
    assert (
        "no template 'mock'" in assert_status(root.post("/messages", json=body), 404, "template_not_found")["message"]
    )


PROVIDER = {"type": "openai", "base_url": "http://nowhere.invalid", "api_key": "k"}


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ({"sandbox": {"cwd": "/etc"}}, "sandbox.cwd"),
        ({"provider": PROVIDER}, "provider.base_url"),
        ({"tools": {"notes": {"type": "http", "url": "http://nowhere.invalid"}}}, "tools.notes.url"),
    ],
    ids=str,
)
def test_what_is_refused_of_an_agent_is_named_as_the_client_named_it(
    root: httpx.Client, key: str, choice: Body, field: str
) -> None:
    enveloped = envelope(message("hi"), session=key, parameters={"agent": choice})
    status = root.post("/messages", json=enveloped).json()["status"]
    assert (status["code"], f"data.parameters.agent.{field}: " in status["message"]) == (422, True), status
    problem = root.post("/api/chat", json={"id": key, "messages": [message("hi")], "agent": choice}).json()
    assert (problem["status"], list(problem["errors"])) == (422, [f"agent.{field}"])
    assert f"agent.{field}: " in problem["detail"]
    assert root.get(f"/api/v1/sessions/{key}").status_code == 404


@pytest.mark.parametrize(
    ("agent", "code", "error"),
    [
        ({"harness": "nobody"}, 404, "unsupported_agent"),
        ({"model": "no-such-model"}, 422, "unprocessable"),
        ({"tools": ["search"]}, 422, "unprocessable"),
        ({"sandbox": {"cwd": "/no/such/folder"}}, 422, "repository_refused"),
    ],
)
def test_an_agent_that_cannot_be_had_creates_nothing(root: httpx.Client, agent: Body, code: int, error: str) -> None:
    before = session_count(root)
    answer = root.post("/messages", json=envelope(message("hi"), parameters={"agent": agent}))
    assert_status(answer, code, error)
    assert session_count(root) == before


@pytest.mark.parametrize("path", ["/messages", "/load-session", "/invoke", "/api/v1/messages"])
def test_a_body_that_is_not_json_is_refused(root: httpx.Client, path: str) -> None:
    headers = {"content-type": "application/json"}
    assert_status(root.post(path, content=b"{", headers=headers), 400, "invalid_request")
    assert_status(root.post(path, content=b"", headers=headers), 400, "invalid_request")
    assert_status(
        root.post(path, content=b"a=b", headers={"content-type": "text/plain"}), 415, "unsupported_media_type"
    )
    assert_status(root.get(path), 405, "method_not_allowed")


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "text/event-stream;q=0", "nonsense"])
def test_an_answer_that_nobody_takes_is_not_begun(root: httpx.Client, accept: str) -> None:
    before = session_count(root)
    answer = root.post("/messages", json=envelope(message("hi")), headers={"accept": accept})
    assert_status(answer, 406, "not_acceptable")
    assert session_count(root) == before


def test_a_server_that_logs_for_developers_says_where_an_error_comes_from(state_dir: Path) -> None:
    with running_server(state_dir, "--log-level", "debug") as server:
        for body, raised in (({"session_id": "nobody"}, "SessionNotFound"), ({}, "ValidationException")):
            status = httpx.post(f"{server.url}/load-session", json=body, timeout=60).json()["status"]
            assert status["stacktrace"].startswith("Traceback"), status
            assert raised in status["stacktrace"]
        problem = httpx.get(f"{server.url}/api/v1/sessions/nobody", timeout=60).json()
    assert "stacktrace" not in str(problem)


def test_an_unknown_session_cannot_be_loaded(root: httpx.Client, key: str) -> None:
    assert_status(root.post("/load-session", json={"session_id": key}), 404, "session_not_found")
    assert_status(root.post("/load-session", json={"session_id": "a b"}), 400, "invalid_request")
    assert_status(root.post("/load-session", json={}), 400, "invalid_request")
    assert_status(root.post("/load-session", json={"session_id": key}, headers=SSE), 404, "session_not_found")


def test_a_decision_about_nothing_is_refused(root: httpx.Client, key: str) -> None:
    part = {
        "type": "tool-x",
        "toolCallId": "1",
        "state": "approval-responded",
        "approval": {"id": "per_9", "approved": True},
    }
    decided = {"id": "msg_1", "role": "assistant", "parts": [part]}
    body = {"id": key, "messages": [message("hi"), decided]}
    for _ in range(2):  # of an unknown session, then of one that never asked
        answer = root.post("/api/chat", json=body)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
        root.post("/api/v1/sessions", json={"agent": "mock", "key": key})


def test_an_unknown_version_of_the_sdk_is_refused(root: httpx.Client) -> None:
    body = {"messages": [message("hi")]}
    assert root.post("/api/chat", json=body, headers={"x-ai-sdk-version": "eleven"}).status_code == 400
    assert root.post("/api/chat?sdk=8", json=body).status_code == 400


def test_a_session_that_is_over_takes_no_message(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say hi"), session=key)
    root.post(f"/api/v1/sessions/{key}/stop")
    answer = root.post("/messages", json=envelope(message("hi"), session=key))
    assert_status(answer, 409, "session_ended")


def test_the_gate_speaks_the_same_way(state_dir: Path) -> None:
    limits = ("--token", "secret", "--max-upload-bytes", "2048")
    with running_server(state_dir, *limits) as server, httpx.Client(base_url=server.url) as client:
        assert_status(client.post("/messages", json=envelope(message("hi"))), 401, "token_invalid")
        client.headers["authorization"] = "Bearer secret"
        assert_status(client.post("/messages", json=envelope(message("x" * 4096))), 413, "too_large")
        answer = client.post("/api/chat", json={"messages": [message("x" * 4096)]})
        assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
NAMES = st.sampled_from(
    ["id", "role", "parts", "type", "text", "url", "mediaType", "approval", "approved", "agent", "harness", "messages"]
)
ANYTHING = st.recursive(
    SCALARS | st.sampled_from(["user", "assistant", "text", "file", "data:,", "data:image/png;base64,AA"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "session_id": SCALARS,
        "id": SCALARS,
        "messages": ANYTHING,
        "data": st.fixed_dictionaries({}, optional={"messages": ANYTHING, "inputs": ANYTHING, "parameters": ANYTHING}),
        "references": ANYTHING,
        "trigger": SCALARS,
        "messageId": SCALARS,
        "agent": ANYTHING,
    },
)


@pytest.mark.lane("server")
@given(body=BODIES)
@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_no_body_is_too_strange_for_an_answer(root: httpx.Client, body: Any) -> None:
    for path in ("/messages", "/load-session", "/invoke"):
        answer = root.post(path, json=body)
        assert answer.status_code < 500, (path, body, answer.text)
        assert answer.status_code < 400 or answer.json()["status"]["code"] == answer.status_code


def test_missing_messages_are_missed_under_their_whole_name(root: httpx.Client) -> None:
    status = assert_status(root.post("/messages", json={"data": {"inputs": 5}}), 400, "invalid_request")
    assert "data.messages: is required" in status["message"]
    assert "data.inputs" in status["message"]
