"""Idempotency-Key: a POST that is sent twice happens once and is answered the same."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.http_helpers import assert_problem, event_types, wait_idle
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server

ASKS_FIRST = "mock: permission drink the tea"


def _new_key() -> dict[str, str]:
    return {"idempotency-key": f"key-{uuid4()}"}


def _new_session(api: httpx.Client) -> str:
    return str(api.post("/sessions", json={"agent": "mock"}).json()["id"])


def _open_ask(api: httpx.Client, session: str) -> str:
    """Wait for the session's open ask; gives its id."""
    wait_until(lambda: api.get(f"/sessions/{session}").json()["openAsks"] == 1, what="the agent to ask")
    (ask,) = api.get("/asks", params={"session": session}).json()["items"]
    return str(ask["askId"])


def _assert_replayed(first: httpx.Response, again: httpx.Response) -> None:
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.status_code == first.status_code
    assert again.content == first.content
    kept = ("content-type", "content-length", "location")
    assert [again.headers.get(name) for name in kept] == [first.headers.get(name) for name in kept]


def test_a_session_is_created_once(api: httpx.Client) -> None:
    key, label = _new_key(), str(uuid4())
    body = {"agent": "mock", "labels": {"batch": label}}
    first, again = (api.post("/sessions", json=body, headers=key) for _ in range(2))
    assert first.status_code == 201
    _assert_replayed(first, again)
    assert api.get("/sessions", params={"label": f"batch={label}"}).json()["total"] == 1


def test_a_prompt_is_sent_once(api: httpx.Client) -> None:
    session, key = _new_session(api), _new_key()
    first = api.post(f"/sessions/{session}/messages", json={"message": "mock: say hello"}, headers=key)
    wait_idle(api, session, turns=1)
    again = api.post(f"/sessions/{session}/messages", json={"message": "mock: say hello"}, headers=key)
    assert first.status_code == 202
    _assert_replayed(first, again)
    assert event_types(api, session).count("turn.started") == 1


@pytest.mark.parametrize("verb", ["pause", "stop", "cancel", "interrupt"])
def test_a_command_is_given_once(api: httpx.Client, verb: str) -> None:
    session, key = _new_session(api), _new_key()
    first = api.post(f"/sessions/{session}/{verb}", headers=key)
    before = event_types(api, session)
    again = api.post(f"/sessions/{session}/{verb}", headers=key)
    assert first.status_code == 200
    _assert_replayed(first, again)
    assert event_types(api, session) == before


def test_a_command_that_would_fail_the_second_time_is_answered_from_memory(api: httpx.Client) -> None:
    session, key = _new_session(api), _new_key()
    api.post(f"/sessions/{session}/pause")
    first, again = (api.post(f"/sessions/{session}/resume", headers=key) for _ in range(2))
    _assert_replayed(first, again)
    assert_problem(api.post(f"/sessions/{session}/resume"), "invalid_transition")


def test_an_ask_is_answered_once(api: httpx.Client) -> None:
    session, key = _new_session(api), _new_key()
    api.post(f"/sessions/{session}/messages", json={"message": ASKS_FIRST})
    path = f"/sessions/{session}/permissions/{_open_ask(api, session)}/reply"
    first, again = (api.post(path, json={"reply": "once"}, headers=key) for _ in range(2))
    assert first.status_code == 200
    _assert_replayed(first, again)
    assert_problem(api.post(path, json={"reply": "once"}, headers=_new_key()), "ask_resolved")


def test_a_key_that_comes_back_with_another_body_is_refused(api: httpx.Client) -> None:
    key = _new_key()
    api.post("/sessions", json={"agent": "mock", "title": "one"}, headers=key)
    answer = api.post("/sessions", json={"agent": "mock", "title": "two"}, headers=key)
    assert key["idempotency-key"] in assert_problem(answer, "idempotency_conflict")["detail"]


def test_the_same_key_on_another_path_is_another_request(api: httpx.Client) -> None:
    key = _new_key()
    answers = [api.post(f"/sessions/{_new_session(api)}/stop", headers=key) for _ in range(2)]
    assert [answer.json()["status"] for answer in answers] == ["stopped", "stopped"]
    assert answers[0].json()["id"] != answers[1].json()["id"]


def test_many_clients_with_one_key_at_the_same_moment_have_one_effect(api: httpx.Client) -> None:
    key, label = _new_key(), str(uuid4())
    body = {"agent": "mock", "labels": {"batch": label}}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.post("/sessions", json=body, headers=key), range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 7
    assert api.get("/sessions", params={"label": f"batch={label}"}).json()["total"] == 1


def test_a_failure_is_not_remembered(api: httpx.Client) -> None:
    session, key = _new_session(api), _new_key()
    api.post(f"/sessions/{session}/messages", json={"message": ASKS_FIRST})
    ask = _open_ask(api, session)
    body = {"message": "mock: say hello", "when_busy": "reject"}
    assert_problem(api.post(f"/sessions/{session}/messages", json=body, headers=key), "session_busy")
    api.post(f"/sessions/{session}/permissions/{ask}/reply", json={"reply": "once"})
    wait_idle(api, session, turns=1)
    answer = api.post(f"/sessions/{session}/messages", json=body, headers=key)
    assert answer.status_code == 202
    assert "idempotency-replayed" not in answer.headers


def test_half_a_request_is_not_remembered(server: RunningServer, api: httpx.Client) -> None:
    session, key = _new_session(api), _new_key()
    head = f"POST /api/v1/sessions/{session}/stop HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(f"{head}idempotency-key: {key['idempotency-key']}\r\n\r\n{{".encode())
    answer = api.post(f"/sessions/{session}/stop", headers=key)
    assert answer.status_code == 200
    assert "idempotency-replayed" not in answer.headers


@pytest.mark.parametrize("key", ["", "k" * 256], ids=["empty", "too long"])
def test_a_key_that_cannot_be_one_is_refused(api: httpx.Client, key: str) -> None:
    answer = api.post("/sessions", json={"agent": "mock"}, headers={"idempotency-key": key})
    assert_problem(answer, "invalid_request", field="Idempotency-Key")


def test_a_longest_key_is_taken(api: httpx.Client) -> None:
    key = {"idempotency-key": str(uuid4()).ljust(255, "k")}
    assert api.post("/sessions", json={"agent": "mock"}, headers=key).status_code == 201


def test_only_posts_are_remembered(api: httpx.Client) -> None:
    session, key = _new_session(api), _new_key()
    titles = [api.patch(f"/sessions/{session}", json={"title": title}, headers=key).json()["title"] for title in "ab"]
    assert titles == ["a", "b"]


def test_an_answer_is_remembered_by_the_next_server(state_dir: Path) -> None:
    key = _new_key()
    answers = [_create_with_a_new_server(state_dir, key) for _ in range(2)]
    _assert_replayed(*answers)


def _create_with_a_new_server(state_dir: Path, key: dict[str, str]) -> httpx.Response:
    with running_server(state_dir) as server:
        return httpx.post(f"{server.url}/api/v1/sessions", json={"agent": "mock"}, headers=key)


@pytest.fixture
def stream(api: httpx.Client) -> Iterator[tuple[str, dict[str, str], httpx.Response]]:
    """A session, a key, and the stream of a turn that was started with it and waits for a permission."""
    session, key = _new_session(api), _new_key()
    headers = {**key, "accept": "text/event-stream"}
    message = {"message": ASKS_FIRST}
    with api.stream("POST", f"/sessions/{session}/messages", json=message, headers=headers) as answer:
        yield session, key, answer


def test_a_repeated_streaming_prompt_gets_the_receipt_and_does_not_wait_for_the_first(
    api: httpx.Client, stream: tuple[str, dict[str, str], httpx.Response]
) -> None:
    session, key, first = stream
    receipt = json.loads(first.headers["ostler-receipt"])
    headers = {**key, "accept": "text/event-stream"}
    again = api.post(f"/sessions/{session}/messages", json={"message": ASKS_FIRST}, headers=headers)
    assert (again.status_code, again.json()) == (202, receipt)
    assert again.headers["idempotency-replayed"] == "true"
    ask = _open_ask(api, session)
    api.post(f"/sessions/{session}/permissions/{ask}/reply", json={"reply": "once"})
    assert _events(first)[-1]["type"] == "turn.ended"
    assert wait_idle(api, session, turns=1)["turnCount"] == 1


def _events(stream: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in stream.iter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


def test_what_happened_is_told_though_the_disk_did_not_take_the_answer(tmp_path: Path) -> None:
    body, key = {"agent": "mock"}, _new_key()
    env = {
        "OSTLER_FAILPOINT": "commit.before:error:5"
    }  # sessions are claimed and strays taken in, this one is written, the answer is not
    with (
        running_server(tmp_path / "state", env=env) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        first, again = (api.post("/sessions", json=body, headers=key) for _ in range(2))
        assert first.status_code == 201, first.text
        _assert_replayed(first, again)
        assert api.get("/sessions").json()["total"] == 1
