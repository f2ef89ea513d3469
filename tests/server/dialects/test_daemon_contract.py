"""Every call that clients of sandbox-agent 0.1 make, as it goes over the wire; that client is in no registry."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.patience import wait_until
from tests.support.serving import RunningServer

SESSION = {"sessionId", "agent", "agentMode", "permissionMode", "ended", "eventCount", "createdAt", "updatedAt"}
AGENT = {"id", "installed", "credentialsAvailable", "capabilities"}
EVENT = {"event_id", "sequence", "time", "session_id", "source", "synthetic", "type", "data"}
Call = tuple[str, str, Any, int, set[str]]
"""Method, path with {s} for the session and {d} for a folder, body, status, and keys of the answer."""
BEFORE: tuple[Call, ...] = (
    ("GET", "/v1/health", None, 200, {"status"}),
    ("GET", "/v1/agents", None, 200, {"agents"}),
    ("POST", "/v1/agents/mock/install", {}, 204, set()),
    ("POST", "/v1/agents/mock/install", {"reinstall": False}, 204, set()),
    ("GET", "/v1/agents/mock/modes", None, 200, {"modes"}),
    ("GET", "/v1/agents/mock/models", None, 200, {"models"}),
    (
        "POST",
        "/v1/sessions/{s}",
        {"agent": "mock", "agentMode": "build", "permissionMode": "default"},
        200,
        {"healthy"},
    ),
    ("POST", "/v1/sessions/{s}", {"agent": "mock"}, 409, {"type", "title", "status", "detail"}),
    ("POST", "/v1/sessions/{s}-none", {"agent": "nobody"}, 404, {"type", "title", "status", "detail"}),
    ("GET", "/v1/sessions", None, 200, {"sessions"}),
    ("POST", "/v1/sessions/{s}/messages", {"message": "mock: say hi"}, 204, set()),
    ("POST", "/v1/sessions/{s}/messages", {"message": "mock: say hi", "attachments": []}, 204, set()),
    ("GET", "/v1/sessions/{s}/events?offset=0&limit=10&includeRaw=true", None, 200, {"events", "hasMore"}),
    ("GET", "/v1/sessions/{s}/events?offset=0&limit=10&include_raw=true", None, 200, {"events", "hasMore"}),
)
AFTER: tuple[Call, ...] = (
    ("PUT", "/v1/fs/file?path={d}/a/one.txt&sessionId={s}", b"first", 200, {"path", "bytesWritten"}),
    ("GET", "/v1/fs/stat?path={d}/a/one.txt&session_id={s}", None, 200, {"path", "entryType", "size"}),
    ("POST", "/v1/fs/mkdir?path={d}/b", None, 200, {"path"}),
    ("POST", "/v1/fs/move", {"from": "{d}/a/one.txt", "to": "{d}/b/two.txt"}, 200, {"from", "to"}),
    ("DELETE", "/v1/fs/entry?path={d}/b&recursive=true", None, 200, {"path"}),
    ("POST", "/v1/sessions/{s}/terminate", None, 204, set()),
    ("POST", "/v1/sessions/{s}/messages", {"message": "too late"}, 409, {"type", "title", "status", "detail"}),
    ("GET", "/v1/sessions/{s}-none/events", None, 404, {"type", "title", "status", "detail"}),
)


@pytest.fixture
def api(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def played(api: httpx.Client, calls: tuple[Call, ...], fill: Callable[[str], str]) -> list[tuple[str, int, set[str]]]:
    """What came of each call that is not as it should be."""
    wrong = []
    for method, path, body, status, keys in calls:
        sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {}
        if isinstance(body, dict):
            sent = {"json": {name: fill(text) if isinstance(text, str) else text for name, text in body.items()}}
        answer = api.request(method, fill(path), **sent)
        found = set(answer.json()) if answer.content else set()
        if answer.status_code != status or not keys <= found or (status == 204 and answer.content):
            wrong.append((f"{method} {path}", answer.status_code, found))
    return wrong


def test_every_call_of_the_first_clients_is_answered_as_they_expect(api: httpx.Client, tmp_path: Path) -> None:
    session = f"contract-{uuid4()}"

    def fill(text: str) -> str:
        return text.replace("{s}", session).replace("{d}", str(tmp_path))

    def page() -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = api.get(f"/v1/sessions/{session}/events").json()["events"]
        return events

    assert played(api, BEFORE, fill) == []
    assert set(api.get("/v1/agents").json()["agents"][0]) >= AGENT
    listed = next(each for each in api.get("/v1/sessions").json()["sessions"] if each["sessionId"] == session)
    assert set(listed) >= SESSION
    wait_until(lambda: [e["type"] for e in page()].count("turn.ended") == 2, what="both turns are over")
    assert [set(event) for event in page() if not set(event) >= EVENT] == []
    text = "mock: permission look\nmock: question Tea? | tea | coffee\nmock: question More? | yes"
    api.post(f"/v1/sessions/{session}/messages", json={"message": text}).raise_for_status()
    for kind, name, path, body in (
        ("permission.requested", "permission_id", "permissions/{}/reply", {"reply": "once"}),
        ("question.requested", "question_id", "questions/{}/reply", {"answers": [["tea"]]}),
        ("question.requested", "question_id", "questions/{}/reject", {}),
    ):
        ask = asked(page, kind, name)
        assert api.post(f"/v1/sessions/{session}/{path.format(ask)}", json=body).status_code == 204
    wait_until(lambda: [e["type"] for e in page()].count("turn.ended") == 3, what="the turn with asks is over")
    with api.stream("POST", f"/v1/sessions/{session}/messages/stream", json={"message": "mock: say hi"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert '"turn.ended"' in answer.read().decode()
    assert played(api, AFTER, fill) == []


def asked(page: Callable[[], list[dict[str, Any]]], kind: str, name: str) -> str:
    """The ask that is open now."""
    open_asks: list[str] = []

    def is_open() -> bool:
        of_kind = [event["data"][name] for event in page() if event["type"] == kind]
        closed = {event["data"].get(name) for event in page() if event["type"] == kind.replace("requested", "resolved")}
        open_asks[:] = [each for each in of_kind if each not in closed]
        return bool(open_asks)

    wait_until(is_open, what=f"an open {kind}")
    return open_asks[0]
