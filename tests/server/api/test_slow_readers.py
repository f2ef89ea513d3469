"""Clients that stop reading cost little, whatever they were about to read, and lose nothing."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.http_helpers import assert_problem, metrics
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

LARGE = 1_500_000
READERS = 60
ASKERS = 20
KIB_EACH = 64
STREAMS = {
    "log": "/api/v1/sessions/{id}/events/sse",
    "log with raw frames": "/api/v1/sessions/{id}/events/sse?include_raw=true",
    "some types": "/api/v1/sessions/{id}/events/sse?types=item.completed",
    "project": "/api/v1/events?stream=1&offset=0",
    "ui": "/api/v1/sessions/{id}/events/sse?format=ui",
    "agui": "/api/v1/sessions/{id}/events/sse?format=agui",
    "acp": "/api/v1/sessions/{id}/events/sse?format=acp",
    "flat": "/api/v1/sessions/{id}/events/sse?format=flat",
    "workflow": "/api/v1/sessions/{id}/events/sse?format=workflow",
    "daemon": "/v1/sessions/{id}/events/sse",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with one session of large events."""
    with running_server(tmp_path_factory.mktemp("slow") / "state", "--heartbeat-seconds", "0.5") as running:
        yield running


@pytest.fixture(scope="module")
def talk(server: RunningServer) -> Talk:
    """A session in which a tool gave out a lot, twice."""
    talk = Talk(httpx.Client(base_url=f"{server.url}/api/v1", timeout=60))
    for letter in "xy":
        talk.turn(f"mock: tool read {{}} -> {letter * LARGE}")
    return talk


def deaf(server: RunningServer, path: str, body: bytes = b"") -> socket.socket:
    """A client that asks for a stream, and takes only the first few bytes of it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", server.port))
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAccept: text/event-stream\r\n"
    more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    client.sendall(f"{head}{more}\r\n".encode() + body)
    assert client.recv(12) == b"HTTP/1.1 200"
    return client


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def is_at_rest(server: RunningServer) -> bool:
    """Whether the server has used no processor time for a while."""
    process = Path(f"/proc/{server.process.pid}/stat")
    before = process.read_text().split()[13:15]
    for _ in range(3):
        assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
    after = process.read_text().split()[13:15]
    return sum(map(int, after)) - sum(map(int, before)) <= 2


def rest_of(client: socket.socket) -> bytes:
    """All that comes until nothing happens any more, which the server says."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    received = bytearray()
    while not received.endswith(b": still here\n\n\r\n"):
        received += client.recv(1 << 20)
    return bytes(received)


@pytest.mark.parametrize("path", STREAMS.values(), ids=STREAMS)
def test_readers_that_take_nothing_cost_little(server: RunningServer, talk: Talk, path: str) -> None:
    with ExitStack() as stack:
        before = resident_kib(server.process.pid)
        for _ in range(READERS):
            stack.enter_context(deaf(server, path.format(id=talk.id)))
        wait_until(lambda: is_at_rest(server), what="the server did not come to rest")
        grown = resident_kib(server.process.pid) - before
    # beside what each may hold there is what all share, and what few of them read at the same time
    assert grown < READERS * KIB_EACH + 6 * LARGE // 1024


@pytest.mark.parametrize("name", ["log", "log with raw frames", "some types", "project", "ui", "daemon"])
def test_readers_that_took_nothing_for_long_lose_nothing(server: RunningServer, talk: Talk, name: str) -> None:
    """So many that the first have to put away what they were given."""
    with ExitStack() as stack:
        clients = [stack.enter_context(deaf(server, STREAMS[name].format(id=talk.id))) for _ in range(5)]
        wait_until(lambda: is_at_rest(server), what="the server did not come to rest")
        texts = {without_chunks(rest_of(client)) for client in clients}
    (text,) = texts
    assert b"x" * LARGE in text
    assert b"y" * LARGE in text
    for line in text.splitlines():
        if line.startswith(b"data: "):
            json.loads(line[6:])


def chat_body(key: str, text: str) -> dict[str, Any]:
    return {"id": key, "messages": [{"id": uuid4().hex, "role": "user", "parts": [{"type": "text", "text": text}]}]}


def agui_body(key: str, text: str) -> dict[str, Any]:
    message = {"id": uuid4().hex, "role": "user", "content": text}
    more: dict[str, Any] = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    return {"threadId": key, "runId": uuid4().hex, "messages": [message], **more}


POSTS: dict[str, tuple[str, Callable[[str, str], dict[str, Any]]]] = {
    "messages": ("/api/v1/sessions/{key}/messages", lambda _, text: {"message": text}),
    "chat": ("/api/chat", chat_body),
    "agui": ("/agui", agui_body),
}


@pytest.mark.parametrize("name", POSTS)
def test_those_who_ask_and_then_take_nothing_of_the_answer_cost_little(server: RunningServer, name: str) -> None:
    """Each runs one turn of a session and reads nothing of it; the turns come to their ends all the same."""
    path, body = POSTS[name]
    with ExitStack() as stack:
        talk = Talk(stack.enter_context(httpx.Client(base_url=f"{server.url}/api/v1", timeout=60)), key=uuid4().hex)
        key = talk.created["key"]
        talk.turn(f"mock: tool read {{}} -> {'w' * LARGE}")
        before = resident_kib(server.process.pid)
        for number in range(2, ASKERS + 2):
            sent = json.dumps(body(key, f"mock: tool read {{}} -> {number}{'z' * LARGE}")).encode()
            stack.enter_context(deaf(server, path.format(key=key), sent))
            wait_until(lambda: has_ended(talk, number), what="a turn did not end")  # noqa: B023  called before the next
        wait_until(lambda: is_at_rest(server), what="the server did not come to rest")
        grown = resident_kib(server.process.pid) - before
    assert grown < ASKERS * KIB_EACH + 8 * LARGE // 1024


def has_ended(talk: Talk, turns: int) -> bool:
    state = talk.get()
    return (state["turnCount"], state["activity"]) == (turns, "idle")


def without_chunks(answer: bytes) -> bytes:
    """The body of a chunked answer without the comments that keep it alive."""
    rest = answer[answer.index(b"\r\n\r\n") + 4 :]
    body = bytearray()
    at = 0
    while at < len(rest):
        end = rest.index(b"\r\n", at)
        size = int(rest[at:end], 16)
        body += rest[end + 2 : end + 2 + size]
        at = end + 2 + size + 2
    return bytes(body).replace(b": still here\n\n", b"")


def test_a_client_has_only_so_many_streams(state_dir: Path) -> None:
    with (
        running_server(state_dir, "--max-streams-per-client", "3") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        talk = Talk(api)
        path = f"/api/v1/sessions/{talk.id}/events/sse"
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(deaf(server, path))
            refused = api.get(f"/sessions/{talk.id}/events/sse")
            assert "max_streams_per_client" in assert_problem(refused, "too_many_streams")["detail"]
            assert refused.headers["retry-after"] == "1"
            sent = talk.api.post(
                f"/sessions/{talk.id}/messages", json={"message": "hi"}, headers={"accept": "text/event-stream"}
            )
            assert_problem(sent, "too_many_streams")
            assert talk.get()["turnCount"] == 0
            assert talk.get("/events")["events"]
        wait_until(lambda: metrics(api)["ostler_open_streams"] == 0, what="streams were still counted")
        stack.enter_context(deaf(server, path)).close()


def test_a_socket_counts_as_a_stream(state_dir: Path) -> None:
    with (
        running_server(state_dir, "--max-streams-per-client", "2") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        address = f"ws://127.0.0.1:{server.port}/acp"
        with connect(address), connect(address):
            with pytest.raises(InvalidStatus) as refused, connect(address):
                pass
            assert refused.value.response.status_code == 429
            assert json.loads(refused.value.response.body or b"")["code"] == "too_many_streams"
            assert_problem(api.get("/events?stream=1"), "too_many_streams")
        wait_until(lambda: metrics(api)["ostler_open_streams"] == 0, what="sockets were still counted")
        with connect(address):
            assert metrics(api)["ostler_open_streams"] == 1
