"""Whatever is wrong with a request, the answer is one problem document that says what and where."""

import base64
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from ostler import __version__
from tests.support.http_helpers import Operation, assert_problem, operations, wait_idle
from tests.support.serving import RunningServer, running_server

ALL = operations()
WITH_BODY = [operation for operation in ALL if operation.body_type and "properties" in operation.body_schema]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SLOW_CLIENT_SECONDS = 60.0
UNKNOWN = {
    "ticket": "not_found",
    "agent": "unsupported_agent",
    "session": "session_not_found",
    "name": "not_found",
    "permission_id": "ask_not_found",
    "question_id": "ask_not_found",
    "prompt_id": "queue_entry_not_found",
    "prompt": "prompt_not_found",
    "process": "process_not_found",
    "snapshot": "snapshot_not_found",
    "comment": "comment_not_found",
    "runner_id": "runner_not_found",
    "template": "template_not_found",
    "revision": "template_not_found",
    "schedule": "schedule_not_found",
    "trigger": "trigger_not_found",
    "delivery": "trigger_not_found",
    "webhook": "webhook_not_found",
    "call": "webhook_not_found",
    "key_id": "not_found",
    "tenant": "not_found",
    "project_name": "not_found",
    "way": "not_found",
}
ANY = {"host", "stream"}
"""Names that need not be known before: a follower may be on its way."""


def _fields(operation: Operation) -> list[str]:
    """Without those that take any value."""
    return [name for name, about in operation.body_schema["properties"].items() if set(about) - {"default"}]


def _required(operation: Operation) -> list[str]:
    """Without `type`, by which a body of several kinds is told: it is missed for the body as a whole."""
    return [name for name in operation.body_schema.get("required", ()) if name != "type"]


def _wrong_methods() -> list[tuple[str, str, set[str]]]:
    known: dict[str, set[str]] = {}
    for operation in ALL:
        known.setdefault(operation.path, set()).add(operation.method)
    return [(method, path, known[path]) for path in known for method in METHODS if method not in known[path]]


def _bad_queries() -> list[tuple[Operation, str, str]]:
    return [
        (operation, name, value)
        for operation in ALL
        for name, schema in operation.query().items()
        for value in _bad_values(name, schema)
    ]


def _bad_values(name: str, schema: dict[str, Any]) -> list[str]:
    if schema["type"] == "integer":
        return ["", "many", "1.5", str(schema["minimum"] - 1), str(schema["maximum"] + 1), "9" * 400]
    if schema["type"] == "boolean":
        return ["", "perhaps", "2"]
    return ["nonsense"] if name in {"status", "label"} else []


@pytest.fixture(scope="module")
def api(server: RunningServer) -> Iterator[httpx.Client]:
    """One client for all tests here: making one takes longer than most of them."""
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def session(api: httpx.Client) -> str:
    """A session that tests of bad input may aim at, as it takes none of it."""
    return str(api.post("/sessions", json={"agent": "mock"}).json()["id"])


@pytest.fixture(scope="module")
def strict_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that takes little and waits a second for it."""
    limits = ("--max-body-bytes", "2048", "--max-upload-bytes", "4096", "--request-timeout-seconds", "1")
    with running_server(tmp_path_factory.mktemp("strict") / "state", *limits) as running:
        yield running


def _is_strict(operation: Operation) -> bool:
    """Providers say more than one needs to know when they send people back."""
    return not str(operation).startswith("sign-in.finish")


def _names(operation: Operation) -> list[tuple[Operation, str]]:
    return [(operation, name) for name in operation.path_names if name not in ANY]


@pytest.mark.parametrize(("operation", "name"), [pair for operation in ALL for pair in _names(operation)], ids=str)
def test_a_name_that_nothing_has_is_not_found(api: httpx.Client, session: str, operation: Operation, name: str) -> None:
    known = {"session": session, "agent": "mock", "stream": "stdout"}
    url = operation.url(**{given: value for given, value in known.items() if given != name})
    answer = api.request(operation.method, url, json=operation.body, params=operation.needed_query())
    assert_problem(answer, UNKNOWN[name])


@pytest.mark.parametrize(
    ("method", "path", "allowed"), _wrong_methods(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_method_that_a_path_does_not_have_is_refused_with_those_it_has(
    api: httpx.Client, method: str, path: str, allowed: set[str]
) -> None:
    answer = api.request(method, path.removeprefix("/api/v1"))
    assert_problem(answer, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {*allowed, "OPTIONS"}


@pytest.mark.parametrize("path", ["/version", "/sessions", "/openapi.json"])
def test_json_says_that_it_is_utf_8(api: httpx.Client, path: str) -> None:
    assert api.get(path).headers["content-type"] == "application/json; charset=utf-8"


def test_a_repeated_answer_says_it_too(api: httpx.Client) -> None:
    key = {"idempotency-key": "utf-8"}
    first, again = (api.post("/sessions", json={"agent": "mock"}, headers=key) for _ in range(2))
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["content-type"] == first.headers["content-type"] == "application/json; charset=utf-8"
    api.delete(f"/sessions/{first.json()['id']}")


@pytest.mark.parametrize("path", ["/nowhere", "/sessions/a/b/c", "/schemas", "/%2e%2e/%2e%2e/etc/passwd", "/%00"])
def test_a_path_that_does_not_exist_is_not_found(api: httpx.Client, path: str) -> None:
    assert_problem(api.get(path), "not_found")


@pytest.mark.parametrize("operation", WITH_BODY, ids=str)
@pytest.mark.parametrize(
    "content", [b"{", b"agent", b'{"agent": "\xff"}', b"[" * 100_000, b'{"a": "\\ud800"}', b"{}{}"], ids=range(6)
)
def test_a_body_that_is_not_json_is_refused(
    api: httpx.Client, session: str, operation: Operation, content: bytes
) -> None:
    url = operation.url(session=session, agent="mock")
    answer = api.request(operation.method, url, content=content, headers={"content-type": "application/json"})
    assert_problem(answer, "invalid_request", field="body")


@pytest.mark.parametrize("operation", WITH_BODY, ids=str)
@pytest.mark.parametrize("content", [b"[]", b'"text"', b"17"])
def test_a_body_that_is_no_object_is_refused(
    api: httpx.Client, session: str, operation: Operation, content: bytes
) -> None:
    url = operation.url(session=session, agent="mock")
    answer = api.request(operation.method, url, content=content, headers={"content-type": "application/json"})
    assert_problem(answer, "invalid_request", field="body")


@pytest.mark.parametrize("operation", [found for found in WITH_BODY if found.about["requestBody"]["required"]], ids=str)
def test_a_body_that_is_needed_and_missing_is_named(api: httpx.Client, session: str, operation: Operation) -> None:
    answer = api.request(operation.method, operation.url(session=session))
    assert_problem(answer, "invalid_request", field="body")


@pytest.mark.parametrize(
    ("operation", "field"), [(found, field) for found in WITH_BODY for field in _fields(found)], ids=str
)
def test_a_field_of_the_wrong_type_is_named(api: httpx.Client, session: str, operation: Operation, field: str) -> None:
    schema = str(operation.body_schema["properties"][field])
    wrong = "soon" if "'integer'" in schema or "'number'" in schema else 17
    url = operation.url(session=session, agent="mock")
    answer = api.request(operation.method, url, json={**operation.body, field: wrong})
    assert_problem(answer, "invalid_request", field=field)


@pytest.mark.parametrize(
    ("operation", "field"), [(found, field) for found in WITH_BODY for field in _required(found)], ids=str
)
def test_a_missing_field_is_named(api: httpx.Client, session: str, operation: Operation, field: str) -> None:
    body = {name: value for name, value in operation.body.items() if name != field}
    answer = api.request(operation.method, operation.url(session=session), json=body)
    assert_problem(answer, "invalid_request", field=field)


@pytest.mark.parametrize("operation", WITH_BODY, ids=str)
def test_an_unknown_field_is_named(api: httpx.Client, session: str, operation: Operation) -> None:
    url = operation.url(session=session, agent="mock")
    answer = api.request(operation.method, url, json={**operation.body, "surprise": 1})
    assert_problem(answer, "invalid_request", field="surprise")


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        ([{"type": "text", "text": 17}], "parts[0].text"),
        ([{"type": "text"}], "parts[0].text"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b", "bold": True}], "parts[1].bold"),
        ([{"type": "hologram"}], "parts[0].type"),
        ([{"type": "image", "data": "not base64"}], "parts[0].data"),
    ],
    ids=["type", "missing", "unknown", "tag", "base64"],
)
def test_a_mistake_deep_in_a_body_is_named_with_its_place(
    api: httpx.Client, session: str, parts: list[dict[str, Any]], where: str
) -> None:
    answer = api.post(f"/sessions/{session}/messages", json={"parts": parts})
    assert list(assert_problem(answer, "invalid_request")["errors"]) == [where]


@pytest.mark.parametrize("operation", WITH_BODY, ids=str)
@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml"])
def test_a_body_that_claims_to_be_something_else_is_refused(
    api: httpx.Client, session: str, operation: Operation, media_type: str
) -> None:
    url = operation.url(session=session, agent="mock")
    answer = api.request(operation.method, url, content=b"{}", headers={"content-type": media_type})
    assert media_type in assert_problem(answer, "unsupported_media_type")["detail"]


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "application/vnd.tea+json", None])
def test_a_body_in_any_flavour_of_json_is_read(api: httpx.Client, media_type: str | None) -> None:
    headers = {} if media_type is None else {"content-type": media_type}
    assert api.post("/sessions", content=b'{"agent": "mock"}', headers=headers).status_code == 201


@pytest.mark.parametrize(("operation", "name", "value"), _bad_queries(), ids=lambda value: str(value)[:20])
def test_a_query_value_that_cannot_be_is_named(
    api: httpx.Client, session: str, operation: Operation, name: str, value: str
) -> None:
    query = {**operation.needed_query(), name: value}
    answer = api.request(operation.method, operation.url(session=session), params=query)
    assert_problem(answer, "invalid_request", field=name)


@pytest.mark.parametrize("number", ["first", "-1", "1.5", "9" * 30, "٣"])
def test_a_last_event_id_that_is_no_number_is_named(api: httpx.Client, session: str, number: str) -> None:
    headers = {b"last-event-id": number.encode(), b"accept": b"text/event-stream"}
    answer = api.get(f"/sessions/{session}/events", headers=headers)
    assert_problem(answer, "invalid_request", field="Last-Event-ID")


@pytest.mark.parametrize(
    ("path", "size", "setting"),
    [("/sessions", 2049, "max_body_bytes"), ("/sessions/nobody/messages", 4097, "max_upload_bytes")],
)
@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize("key", [{}, {"idempotency-key": "one"}], ids=["plain", "with key"])
def test_a_body_above_the_limit_is_refused_with_the_name_of_the_setting(
    strict_server: RunningServer, path: str, size: int, setting: str, chunked: bool, key: dict[str, str]
) -> None:
    content = iter([b" " * size]) if chunked else b" " * size
    answer = httpx.post(f"{strict_server.url}/api/v1{path}", content=content, headers=key)
    problem = assert_problem(answer, "too_large")
    assert setting in problem["detail"]
    assert answer.headers["connection"] == "close"


def test_a_body_just_at_the_limit_is_taken(strict_server: RunningServer) -> None:
    content = b'{"agent": "mock"}'.ljust(2048)
    assert httpx.post(f"{strict_server.url}/api/v1/sessions", content=content).status_code == 201


@pytest.mark.parametrize("key", ["", "idempotency-key: two\r\n"], ids=["plain", "with key"])
@pytest.mark.parametrize("drips", [False, True], ids=["stalled", "dripping"])
def test_a_body_that_does_not_arrive_in_time_is_refused(strict_server: RunningServer, key: str, drips: bool) -> None:
    head = f"POST /api/v1/sessions HTTP/1.1\r\nhost: localhost\r\n{key}content-length: 2000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", strict_server.port), SLOW_CLIENT_SECONDS) as connection:
        connection.sendall(head.encode())
        connection.settimeout(0.05)
        received = _read_slowly(connection, drips=drips)
    assert received.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in received
    assert b"\r\nconnection: close\r\n" in received


def _read_slowly(connection: socket.socket, *, drips: bool) -> bytes:
    """The server's whole answer, while a byte of the body goes out now and then until it comes."""
    received = b""
    for _ in range(int(SLOW_CLIENT_SECONDS / 0.05)):
        try:
            received += connection.recv(65536)
        except TimeoutError:
            connection.sendall(b" " if drips else b"")
        if received.endswith(b"}"):
            break
    return received


def test_an_image_of_100_megabytes_arrives_whole_and_costs_memory_only_in_proportion(state_dir: Path) -> None:
    size = 100_000_000
    data = base64.b64encode(bytes(size)).decode()
    body = msgspec.json.encode({"parts": [{"type": "image", "data": data, "mime": "image/png"}]})
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        session = api.post("/sessions", json={"agent": "mock"}).json()["id"]
        answer = api.post(f"/sessions/{session}/messages", content=body)
        assert answer.status_code == 202, answer.text
        (part,) = api.get(f"/sessions/{session}/messages").json()["messages"][0]["item"]["content"]
        assert (part["type"], Path(part["path"]).stat().st_size) == ("image", size)
        print("PEAK", _peak_memory(server.process.pid))
        assert _peak_memory(server.process.pid) < 8 * size
        wait_idle(api, session, turns=1)


def _peak_memory(pid: int) -> int:
    """Bytes, from /proc; 0 where there is none."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 if found else 0


@pytest.mark.parametrize("operation", [found for found in ALL if found.method == "GET" and _is_strict(found)], ids=str)
def test_an_unknown_query_parameter_is_refused_under_its_name_with_the_known_ones(
    api: httpx.Client, session: str, operation: Operation
) -> None:
    url = operation.url(session=session, agent="mock")
    problem = assert_problem(api.get(url, params={"teaColour": "red"}), "invalid_request")
    (reason,) = problem["errors"]["teaColour"]
    assert all(name in reason for name in operation.query())


def test_an_unknown_query_parameter_hides_no_other_mistake(api: httpx.Client) -> None:
    answer = api.get("/sessions", params={"teaColour": "red", "perPage": "many"})
    assert set(assert_problem(answer, "invalid_request")["errors"]) == {"teaColour", "perPage"}


def test_workflow_executions_refuse_an_unknown_filter(server: RunningServer) -> None:
    answer = httpx.get(f"{server.url}/api/orgs/acme/workflow-executions?status=RUNNING")
    assert set(assert_problem(answer, "invalid_request")["errors"]) == {"status"}


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        (
            "/sessions?teaColour=red",
            {"agent": 5, "permissionMode": "yolo", "colour": "red", "labels": {"a": 1}},
            {"agent", "permissionMode", "colour", "labels.a"},
        ),
        ("/sessions", {"agent": 5, "permission_mode": "yolo"}, {"agent", "permission_mode"}),
        (
            "/tasks",
            {
                "prompt": 5,
                "agent": 5,
                "repo": {"mode": "mail"},
                "delivery": {"target_branch": 5},
                "runtime": {"resources": {"memoryMiB": "x"}},
            },
            {"prompt", "agent", "repo.mode", "delivery.mode", "delivery.target_branch", "runtime.resources.memoryMiB"},
        ),
    ],
    ids=["camelCase", "snake_case", "nested"],
)
def test_all_that_is_wrong_with_a_body_is_told_at_once_under_the_names_of_the_client(
    api: httpx.Client, path: str, body: dict[str, Any], fields: set[str]
) -> None:
    assert set(assert_problem(api.post(path, json=body), "invalid_request")["errors"]) == fields


def test_all_that_is_wrong_with_a_query_is_told_at_once_under_the_names_of_the_client(api: httpx.Client) -> None:
    answer = api.get("/sessions", params={"perPage": "many", "page": "0"})
    assert set(assert_problem(answer, "invalid_request")["errors"]) == {"perPage", "page"}


def test_only_what_is_wrong_with_a_camel_case_body_is_told(api: httpx.Client) -> None:
    body = {"agent": "mock", "prompt": "hi", "keepOpen": True, "project_id": "tea", "runtime": {"memoryMiB": 1}}
    problem = assert_problem(api.post("/tasks", json=body), "invalid_request")
    assert sorted(problem["errors"]) == ["agent", "runtime.memoryMiB"]


@pytest.mark.parametrize("name", ["ostler-python", "ostler-js"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/sessions?mood=good"), ("GET", "/moods"), ("PUT", "/sessions"), ("POST", "/sessions")],
)
def test_a_client_of_another_version_hears_both_versions(
    server: RunningServer, name: str, method: str, path: str
) -> None:
    def told(version: str) -> str:
        body = {"agent": "mock", "mood": "good"} if method == "POST" else None
        headers = {"user-agent": f"{name}/{version} and-more"}
        return str(httpx.request(method, f"{server.url}/api/v1{path}", json=body, headers=headers).json()["detail"])

    plain = told(__version__)
    assert "upgrade" not in plain
    sentence = " This client is of Ostler {} and the server of {}: upgrade the {}."
    assert told("0.0.3") == plain + sentence.format("0.0.3", __version__, "client")
    assert told("12.0.0") == plain + sentence.format("12.0.0", __version__, "server")


def test_nothing_is_said_of_versions_where_they_are_not_to_blame(server: RunningServer) -> None:
    assert httpx.get(f"{server.url}/api/v1/sessions").headers["ostler-version"] == __version__
    answer = httpx.get(f"{server.url}/api/v1/sessions/nobody", headers={"user-agent": "ostler-python/12.0.0"})
    assert "upgrade" not in answer.json()["detail"]
