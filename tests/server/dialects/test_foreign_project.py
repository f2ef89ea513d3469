"""A session of another project does not exist: every protocol answers as it does for a name that nobody has."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.sync.client import connect

from tests.support.chatting import SSE, ask, content, envelope, load, message, words
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

Json = dict[str, Any]
SECRET = "nobody else may read this"


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """Two sessions that another project has; the name of the second is free to be taken."""

    server: RunningServer
    client: httpx.Client
    database: Path
    id: str
    key: str
    free: tuple[str, str]

    def rows(self) -> list[tuple[Any, ...]]:
        """What is stored about them."""
        query = "SELECT * FROM sessions WHERE project = 'other' ORDER BY id"
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    state_dir = tmp_path_factory.mktemp("foreign") / "state"
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1") as api:
        talk, other = Talk(api, key="theirs"), Talk(api, key="theirs-too")
        for each in (talk, other):
            each.turn(f"mock: say {SECRET}")
    database = state_dir / "ostler.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE sessions SET project = 'other'")
        connection.commit()
    with running_server(state_dir) as server, httpx.Client(base_url=server.url, timeout=60) as client:
        free = (other.id, "theirs-too")
        yield Foreign(server=server, client=client, database=database, id=talk.id, key="theirs", free=free)


SESSION = "/api/v1/sessions/{name}"
DAEMON = "/v1/sessions/{name}"
EXECUTION = "/api/orgs/default/workflow-executions/{name}"
RESUME = {"interruptId": "per_1", "status": "resolved", "payload": {"approved": True}}
APPROVAL = {"type": "tool-x", "state": "approval-responded", "approval": {"id": "per_1", "approved": True}}
DOORS: list[tuple[str, str, Json | None]] = [
    ("POST", "/load-session", {"session_id": "{name}"}),
    ("POST", "/api/v1/load-session", {"session_id": "{name}"}),
    ("POST", "/messages", envelope(message("x", role="assistant"), session="{name}")),
    ("POST", "/messages", {"session_id": "{name}", "data": {"messages": [{"role": "assistant", "parts": [APPROVAL]}]}}),
    ("GET", "/api/chat/{name}/stream", None),
    ("POST", "/api/chat/{name}/stop", None),
    ("POST", "/agui", {"threadId": "{name}", "runId": "run-1", "resume": [RESUME]}),
    ("GET", EXECUTION, None),
    ("GET", f"{EXECUTION}/state?key=messages", None),
    ("GET", f"{EXECUTION}/stream/consolidated", None),
    ("POST", f"{EXECUTION}/signal", {"name": "userMessage", "payload": {"text": "x"}}),
    ("POST", f"{EXECUTION}/cancel", None),
    ("GET", EXECUTION.replace("default", "acme"), None),
    ("GET", EXECUTION.replace("default", "a%20b"), None),
    ("GET", f"{DAEMON}/events", None),
    ("GET", f"{DAEMON}/events/sse", None),
    ("POST", f"{DAEMON}/messages", {"message": "x"}),
    ("POST", f"{DAEMON}/messages/stream", {"message": "x"}),
    ("POST", f"{DAEMON}/terminate", None),
    ("POST", f"{DAEMON}/permissions/per_1/reply", {"reply": "once"}),
    ("GET", SESSION, None),
    ("PATCH", SESSION, {"title": "mine"}),
    ("DELETE", SESSION, None),
    ("GET", f"{SESSION}/messages", None),
    ("POST", f"{SESSION}/messages", {"message": "x"}),
    ("POST", f"{SESSION}/cancel", None),
    *(("GET", f"{SESSION}/events?format={form}", None) for form in ("universal", "ui", "acp", "agui", "flat")),
]


def answered(client: httpx.Client, name: str, method: str, path: str, body: Json | None) -> tuple[Any, ...]:
    """What a client can tell one name from another by."""
    content = None if body is None else json.dumps(body).replace("{name}", name)
    headers = {"content-type": "application/json"} if content else {}
    answer = client.request(method, path.replace("{name}", name), content=content, headers=headers)
    return answer.status_code, answer.headers.get("content-type"), answer.text.replace(name, "{name}")


@pytest.mark.parametrize(("method", "path", "body"), DOORS, ids=[f"{door[0]} {door[1]}" for door in DOORS])
def test_every_door_answers_as_for_an_unknown_name(foreign: Foreign, method: str, path: str, body: Json | None) -> None:
    before = foreign.rows()
    unknown = answered(foreign.client, "ses_nobody", method, path, body)
    assert unknown[0] < 500
    assert [answered(foreign.client, name, method, path, body) for name in (foreign.id, foreign.key)] == [unknown] * 2
    assert foreign.rows() == before


ACP: list[tuple[str, Json]] = [
    ("session/load", {"cwd": "/", "mcpServers": []}),
    ("session/resume", {"cwd": "/", "mcpServers": []}),
    ("session/prompt", {"prompt": [{"type": "text", "text": "x"}]}),
    ("session/cancel", {}),
    ("session/set_mode", {"modeId": "build"}),
    ("session/close", {}),
    ("session/delete", {}),
]


@pytest.mark.parametrize(("method", "params"), ACP, ids=[method for method, _ in ACP])
def test_an_editor_is_answered_as_for_an_unknown_session(foreign: Foreign, method: str, params: Json) -> None:
    before = foreign.rows()
    with connect(f"{foreign.server.url.replace('http', 'ws')}/acp") as socket:

        def told(name: str) -> str:
            wanted = {"jsonrpc": "2.0", "id": 2, "method": method, "params": {"sessionId": name, **params}}
            socket.send(json.dumps(wanted))
            return str(socket.recv(timeout=60)).replace(name, "{name}")

        socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}))
        socket.recv(timeout=60)
        unknown = told("ses_nobody")
        assert "error" in json.loads(unknown)
        assert [told(foreign.id), told(foreign.key)] == [unknown] * 2
    assert foreign.rows() == before


def test_no_list_has_it(foreign: Foreign) -> None:
    client = foreign.client
    lists = ["/api/v1/sessions", "/v1/sessions", "/api/orgs/default/workflow-executions", "/api/v1/events"]
    assert [foreign.id in client.get(path).text or SECRET in client.get(path).text for path in lists] == [False] * 4


def test_a_chat_of_the_same_name_is_a_new_one(foreign: Foreign) -> None:
    before, client = foreign.rows(), foreign.client
    for name in foreign.free:
        assert content(ask(client, message("mock: recall"), session=name)).startswith("I remember 1 user turn")
        assert [text for _, text in words(load(client, name))][:1] == ["mock: recall"]
        assert client.get(f"/api/v1/sessions/{name}").json()["id"] not in foreign.free
        client.delete(f"/api/v1/sessions/{name}")
    assert foreign.rows() == before


@pytest.mark.parametrize("name", [0, 1], ids=["id", "key"])
def test_other_ways_to_begin_a_session_of_the_same_name_begin_a_new_one(foreign: Foreign, name: int) -> None:
    before, client, taken = foreign.rows(), foreign.client, foreign.free[name]
    invoked = client.post("/invoke", json={"session_id": taken, "data": {"inputs": {"input": "mock: recall"}}})
    assert SECRET not in invoked.text
    assert invoked.status_code < 500
    client.delete(f"/api/v1/sessions/{taken}")
    said = {"id": str(uuid4()), "role": "user", "content": "mock: recall"}
    run = client.post("/agui", json={"threadId": taken, "runId": "run-1", "messages": [said]}, headers=SSE)
    told = [json.loads(line[6:]) for line in run.text.splitlines() if line.startswith("data: ")]
    assert "".join(event.get("delta", "") for event in told).startswith("I remember 1 user turn")
    client.delete(f"/api/v1/sessions/{taken}")
    assert client.post(f"/v1/sessions/{taken}", json={"agent": "mock"}).json()["healthy"] is True
    client.delete(f"/api/v1/sessions/{taken}")
    assert foreign.rows() == before
