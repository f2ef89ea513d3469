"""The log of a session as chunks of the UI Message Stream: pages and streams, from anywhere on."""

import json
from collections.abc import Iterator
from uuid import uuid4

import httpx
import pytest

from tests.support.chatting import SSE, Body, chunks, message
from tests.support.serving import RunningServer


@pytest.fixture
def root(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def key() -> str:
    return f"chat-{uuid4().hex}"


def test_the_log_can_be_read_as_chunks_in_pages_and_as_a_stream(root: httpx.Client, key: str) -> None:
    told = chunks(root.post("/api/chat", json={"id": key, "messages": [message("mock: say one two three")]}))
    path = f"/api/v1/sessions/{key}/events"
    page = root.get(path, params={"format": "ui"}).json()
    assert page["events"] == told
    parts: list[Body] = []
    offset, has_more = 0, True
    while has_more:
        part = root.get(path, params={"format": "ui", "offset": offset, "limit": 3}).json()
        parts += part["events"]
        offset, has_more = part["nextOffset"], part["hasMore"]
    assert parts == told
    assert _streamed(root, f"{path}/sse", 0, len(told)) == told


def test_a_stream_of_chunks_goes_on_after_the_last_event_seen(root: httpx.Client, key: str) -> None:
    told = chunks(root.post("/api/chat", json={"id": key, "messages": [message("mock: say one two three")]}))
    path = f"/api/v1/sessions/{key}/events"
    seen: list[Body] = []
    with root.stream("GET", path, params={"format": "ui"}, headers=SSE) as answer:
        lines = answer.iter_lines()
        last = 0
        while not any("two" in json.dumps(chunk) for chunk in seen):
            line = next(lines)
            last = int(line[4:]) if line.startswith("id: ") else last
            seen += [json.loads(line[6:])] if line.startswith("data: ") else []
    assert seen + _streamed(root, path, last, len(told) - len(seen)) == told


def _streamed(root: httpx.Client, path: str, offset: int, count: int) -> list[Body]:
    headers = {**SSE, "last-event-id": str(offset)}
    with root.stream("GET", path, params={"format": "ui"}, headers=headers) as answer:
        data = (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: "))
        return [next(data) for _ in range(count)]


@pytest.mark.parametrize("query", ["format=nonsense", "format=ui&types=item.delta", "format=ui&include_raw=true"])
def test_a_form_that_does_not_exist_or_cannot_be_combined_is_refused(root: httpx.Client, key: str, query: str) -> None:
    root.post("/api/v1/sessions", json={"agent": "mock", "key": key})
    answer = root.get(f"/api/v1/sessions/{key}/events?{query}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["format"])
    assert root.get(f"/api/v1/sessions/{key}/events?format=universal").status_code == 200
