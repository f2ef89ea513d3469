"""What a connection may send before it is a request, and how long it may take; no more, no longer."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.serving import RunningServer, running_server

CHUNKED = b"POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that does not wait long."""
    patience = ("--header-timeout-seconds", "1", "--request-timeout-seconds", "1", "--keep-alive-seconds", "1")
    with running_server(tmp_path_factory.mktemp("connections") / "state", *patience) as running:
        yield running


def connected(server: RunningServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def answer_to(client: socket.socket, *sent: bytes) -> tuple[bytes, bytes]:
    """Head and body of what comes until the connection ends; what cannot be sent any more does not matter."""
    try:
        for piece in sent:
            client.sendall(piece)
    except OSError:
        pass
    received = bytearray()
    while piece := client.recv(1 << 16):
        received += piece
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    return head, body


def problem_of(head: bytes, body: bytes) -> dict[str, Any]:
    assert b"content-type: application/problem+json" in head.lower()
    assert b"connection: close" in head.lower()
    found: dict[str, Any] = json.loads(body)
    assert head.startswith(f"HTTP/1.1 {found['status']} ".encode())
    return found


@pytest.mark.parametrize(
    ("sent", "setting"),
    [
        (b"X-Long: " + b"x" * 200_000 + b"\r\n", "max_header_bytes"),
        (b"X-Long: " + b"x" * 20_000_000 + b"\r\n", "max_header_bytes"),
        (b"".join(b"X-%d: %b\r\n" % (n, b"y" * 1000) for n in range(100)), "max_header_bytes"),
        (b"".join(b"X-%d: y\r\n" % n for n in range(10_000)), "max_headers"),
    ],
    ids=["one long", "one very long", "many long", "very many"],
)
def test_headers_have_a_limit(server: RunningServer, sent: bytes, setting: str) -> None:
    with connected(server) as client:
        found = problem_of(*answer_to(client, HEAD, sent, b"\r\n"))
    assert (found["code"], found["status"]) == ("headers_too_large", 431)
    assert setting in found["detail"]


def test_a_long_request_line_has_the_same_limit(server: RunningServer) -> None:
    with connected(server) as client:
        found = problem_of(*answer_to(client, b"GET /", b"a" * 1_000_000, b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
    assert found["status"] == 431


def test_trailers_have_the_same_limit(server: RunningServer) -> None:
    with connected(server) as client:
        found = problem_of(*answer_to(client, CHUNKED, b"2\r\n{}\r\n0\r\n", b"X-Long: " + b"x" * 5_000_000))
    assert found["status"] == 431


@pytest.mark.parametrize("size", [200_000, 5_000_000])
def test_extensions_of_chunks_have_the_same_limit(server: RunningServer, size: int) -> None:
    with connected(server) as client:
        found = problem_of(*answer_to(client, CHUNKED, b"2;", b"x" * size, b"\r\n{}\r\n0\r\n\r\n"))
    assert (found["code"], found["status"]) == ("headers_too_large", 431)
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_body_whose_chunks_cannot_be_read_is_refused(server: RunningServer) -> None:
    with connected(server) as client:
        found = problem_of(*answer_to(client, CHUNKED, b"2\r\n{}\r\n", b"horse\r\n"))
    assert (found["code"], found["status"]) == ("invalid_request", 400)


def test_a_body_in_very_small_chunks_is_taken(server: RunningServer) -> None:
    head = (
        b"POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    body = b'{"agent": "mock", "title": "%b"}' % (b"t" * 100)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    with connected(server) as client:
        head, _ = answer_to(client, head, chunks)
    assert head.startswith(b"HTTP/1.1 201 ")


def test_headers_that_never_end_are_given_up(server: RunningServer) -> None:
    with connected(server) as client:
        found = problem_of(*answer_to(client, HEAD))
    assert (found["code"], found["status"]) == ("request_timeout", 408)


@pytest.mark.parametrize("sent", [b"", b"\r\n", HEAD + b"\r\n", HEAD + b"Content-Length: 9\r\n\r\n12345"])
def test_a_connection_that_says_nothing_more_is_closed(server: RunningServer, sent: bytes) -> None:
    with connected(server) as client:
        answer_to(client, sent)


def test_a_body_that_never_ends_is_given_up(server: RunningServer) -> None:
    head = b"POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
    with connected(server) as client:
        found = problem_of(*answer_to(client, head, b'{"agent":'))
    assert (found["code"], found["status"]) == ("request_timeout", 408)


@pytest.mark.parametrize("target", [b"*", b"nowhere", b"healthz/", b"ftp://127.0.0.1/", b"//[", b"http://[/"])
def test_a_request_line_without_a_path_is_refused(server: RunningServer, target: bytes) -> None:
    with connected(server) as client:
        head, body = answer_to(client, b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 4")
    assert json.loads(body)["status"] < 500
    assert "Traceback" not in server.stderr.read_text()


def test_what_is_not_http_is_told_so(server: RunningServer) -> None:
    with connected(server) as client:
        found = problem_of(*answer_to(client, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"))
    assert found["code"] == "invalid_request"


def test_an_answer_before_the_body_came_leaves_the_connection_open(server: RunningServer) -> None:
    body = b'{"message": "hi"}'
    head = b"POST /api/v1/sessions/nobody/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    with connected(server) as client:
        client.sendall(head)
        client.sendall(body)
        assert client.recv(12) == b"HTTP/1.1 404"
        rest, _ = answer_to(client, HEAD + b"\r\n")
    assert b"HTTP/1.1 200" in rest + _


def test_many_connections_whose_headers_never_end_do_not_stay(server: RunningServer) -> None:
    clients = [connected(server) for _ in range(100)]
    for client in clients:
        client.sendall(HEAD)
    assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
    for client in clients:
        assert problem_of(*answer_to(client))["status"] == 408
        client.close()
