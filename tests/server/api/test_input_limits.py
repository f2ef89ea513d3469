"""What clients mark sessions with, deliver with and look for has limits, and the answer names the field."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk
from tests.support.triggering import store

LABELS = [
    ({f"name{number}": "" for number in range(65)}, "labels"),
    ({"": "value"}, "labels"),
    ({"n" * 201: "value"}, "labels"),
    ({"two\nlines": "value"}, "labels"),
    ({"name": "v" * 1001}, "labels.name"),
    ({"name": "a\0b"}, "labels.name"),
    ({"name": "ends with a line end\n"}, "labels.name"),
]


def assert_refused(answer: httpx.Response, field: str) -> None:
    assert list(assert_problem(answer, "invalid_request")["errors"]) == [field], answer.text


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        running_server(tmp_path_factory.mktemp("limits") / "state") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield api


@pytest.mark.parametrize(("labels", "field"), LABELS)
def test_labels_that_no_list_could_show_are_refused_wherever_they_are_given(
    api: httpx.Client, labels: dict[str, str], field: str
) -> None:
    before = api.get("/sessions").json()["total"]
    assert_refused(api.post("/sessions", json={"agent": "mock", "labels": labels}), field)
    task = {"prompt": "hello", "agent": {"type": "mock"}, "labels": labels}
    assert_refused(api.post("/tasks", json=task), field)
    assert api.get("/sessions").json()["total"] == before
    talk = Talk(api, agent="mock", labels={"team": "blue"})
    assert_refused(api.patch(f"/sessions/{talk.id}", json={"labels": labels}), field)
    assert talk.get()["labels"] == {"team": "blue"}
    api.delete(f"/sessions/{talk.id}")


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_a_time_outside_of_the_calendar_is_refused_wherever_it_is_given(api: httpx.Client, at: str) -> None:
    key = {"name": "x", "role": "viewer", "expiresAt": at}
    assert_refused(api.post("/api-keys", json=key), "expiresAt")
    for name in ("since", "until"):
        assert_refused(api.get("/audit", params={name: at}), name)
    store(api, "plain", 'prompt = "mock: say Hi"')
    made = api.post("/schedules", json={"name": "late", "template": "plain", "at": at})
    assert "at" in assert_problem(made, "unprocessable")["errors"]
    assert api.get("/schedules").json()["items"] == []
    talk = Talk(api)
    told = api.post(f"/sessions/{talk.id}/events/ingest", json=[{"type": "note", "message": "hi", "ts": at}])
    assert "ts" in assert_problem(told, "events_refused")["errors"]
    api.delete(f"/sessions/{talk.id}")


OUTSIDE = "../../x"
ESCAPED = quote(OUTSIDE, safe="")


@pytest.mark.parametrize("path", [ESCAPED, quote(OUTSIDE), "%252e%252e%252fx", "..%5C..%5Cx"])
@pytest.mark.parametrize("noun", ["prompts", "templates", "projects", "tenants", "api-keys", "agents", "webhooks"])
def test_a_name_in_an_address_leads_nowhere_else(api: httpx.Client, noun: str, path: str) -> None:
    for method in ("GET", "DELETE"):
        answer = api.request(method, f"/{noun}/{path}")
        assert answer.status_code in {400, 404, 405}, f"{method} {noun} {answer.status_code} {answer.text}"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sessions", {"agent": "mock", "env": {OUTSIDE: "secret"}}),
        ("/sessions", {"agent": "mock", "mcpServers": [{"name": OUTSIDE, "command": "x"}]}),
        ("/sessions", {"agent": OUTSIDE}),
        ("/agents/ostler/login", {"method": "key", "key": "secret", "variable": OUTSIDE}),
        (f"/agents/{ESCAPED}/login", {"method": "key", "key": "secret"}),
        ("/projects", {"name": OUTSIDE}),
        ("/tenants", {"name": OUTSIDE}),
        ("/prompts", {"name": OUTSIDE, "text": "hi"}),
        ("/templates", {"name": OUTSIDE, "agent": {"type": "mock"}}),
        ("/api-keys", {"name": "x", "role": "viewer", "projectId": OUTSIDE}),
        ("/tasks", {"prompt": "hi", "agent": {"type": "mock"}, "repo": {"mode": "upload", "ticket": OUTSIDE}}),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_name_that_looks_like_a_path_is_refused(api: httpx.Client, path: str, body: dict[str, Any]) -> None:
    answer = api.post(path, json=body)
    assert answer.status_code in {400, 404, 422}, f"{answer.status_code} {answer.text}"
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text


def test_as_many_and_as_long_labels_as_there_may_be_are_taken(api: httpx.Client) -> None:
    labels = {f"{number:02}{'n' * 198}": "v" * 1000 for number in range(64)}
    assert Talk(api, agent="mock", labels=labels).get()["labels"] == labels


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"title": "a\0b"}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"body": "a\0b"}, "body"),
        ({"body": "\x1b[31mred"}, "body"),
        ({"message": "a\x07b"}, "message"),
        ({"credential": {"token": "secret-token\0"}}, "credential.token"),
        ({"credential": {"token": "secret-token\n"}}, "credential.token"),
        ({"credential": {"token": "secret-token", "user": "a\0"}}, "credential.user"),
    ],
)
def test_what_neither_git_nor_a_forge_can_take_is_refused(api: httpx.Client, given: dict[str, Any], field: str) -> None:
    talk = Talk(api, agent="mock", repo={"mode": "none"})
    answers: list[httpx.Response] = []

    def is_answered() -> bool:
        answers.append(api.post(f"/sessions/{talk.id}/deliver", json={"mode": "patch", **given}))
        return answers[-1].status_code != 409

    wait_until(is_answered, what="the workspace is made")
    refused = answers[-1]
    assert_refused(refused, field)
    task = {"prompt": "hello", "agent": {"type": "mock"}, "delivery": {"mode": "patch", **given}}
    assert_refused(api.post("/tasks", json=task), f"delivery.{field}")
    assert "secret-token" not in refused.text


def test_a_credential_of_a_repository_with_a_line_end_is_refused(api: httpx.Client) -> None:
    repo = {"mode": "git", "url": "https://127.0.0.1:9/x.git", "credential": {"token": "secret-token\r\nHost: a"}}
    answer = api.post("/sessions", json={"agent": "mock", "repo": repo})
    assert_refused(answer, "repo.credential.token")
    assert "secret-token" not in answer.text


@pytest.mark.parametrize(
    ("length", "status", "words"),
    [
        (1001, 400, "of length <= 1000"),
        (60_000, 400, "of length <= 1000"),
        (100_000, 431, "more than 65535 bytes in its address"),
    ],
)
def test_a_text_that_is_too_long_to_look_for_gets_an_answer(
    api: httpx.Client, length: int, status: int, words: str
) -> None:
    connection = http.client.HTTPConnection(api.base_url.host, api.base_url.port or 80, timeout=60)
    with closing(connection):
        connection.request("GET", f"/api/v1/search?q={'x' * length}")
        answer = connection.getresponse()
        problem = json.load(answer)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
        assert words in problem["detail"], problem
