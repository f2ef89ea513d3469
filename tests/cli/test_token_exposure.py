"""A token goes to another machine by https only, unless that was asked for."""

import asyncio
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from ostler.client import AsyncClient, Client, TokenExposed
from tests.cli.conftest import Ostler

ELSEWHERE = "http://192.0.2.1:2468"
EXPOSED = (
    f"Error: The token was not sent to {ELSEWHERE}: without TLS everybody on the way could read it. Use an address "
    "that begins with https://, or accept the risk with --insecure or OSTLER_INSECURE=1 (in Python: insecure=True).\n"
)


class _Answering(BaseHTTPRequestHandler):
    """Stands between here and another machine, reads along, and answers for it."""

    def do_GET(self) -> None:
        body = b'{"status": "ok"}'
        self.server.read.append(self.headers["authorization"])  # type: ignore[attr-defined] # put there by the fixture
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def on_the_way() -> Iterator[tuple[str, list[str]]]:
    """A proxy, and what it has read."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        read: list[str] = []
        server.read = read  # type: ignore[attr-defined] # for the handler
        answering = Thread(target=server.serve_forever)
        answering.start()
        yield f"http://127.0.0.1:{server.server_port}", read
        server.shutdown()
        answering.join()


@pytest.mark.parametrize("address", [ELSEWHERE, "http://ostler.example", "http://[2001:db8::1]:2468"])
def test_the_sdk_does_not_send_a_token_to_another_machine_in_clear(address: str) -> None:
    with pytest.raises(TokenExposed, match="insecure=True"):
        Client(address, "t")
    with pytest.raises(TokenExposed, match="https://"):
        AsyncClient(address, "t")


@pytest.mark.parametrize(
    ("address", "token", "insecure"),
    [
        (ELSEWHERE, None, False),
        (ELSEWHERE, "t", True),
        ("https://ostler.example", "t", False),
        ("http://127.8.0.1:2468", "t", False),
        ("http://[::1]:2468", "t", False),
        ("http://localhost", "t", False),
        ("http://0.0.0.0:2468", "t", False),
    ],
)
def test_it_sends_what_nobody_can_read_and_what_it_is_told_to(
    address: str, token: str | None, *, insecure: bool
) -> None:
    with Client(address, token, insecure=insecure) as client:
        assert client.sessions is not None
    asyncio.run(AsyncClient(address, token, insecure=insecure).close())


@pytest.mark.parametrize("command", [("sessions", "list"), ("acp",), ("events", "stream", "ses_1")], ids=" ".join)
def test_commands_do_not_either(ostler: Ostler, command: tuple[str, ...]) -> None:
    done = ostler("--endpoint", ELSEWHERE, "--token", "t", *command)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", EXPOSED)


@pytest.mark.parametrize(
    ("first", "last", "variables"),
    [(("--insecure",), (), {}), ((), ("--insecure",), {}), ((), (), {"OSTLER_INSECURE": "1"})],
    ids=["before the command", "after it", "by a variable"],
)
def test_a_command_sends_it_when_it_is_told_to(
    ostler: Ostler,
    on_the_way: tuple[str, list[str]],
    first: tuple[str, ...],
    last: tuple[str, ...],
    variables: dict[str, str],
) -> None:
    proxy, read = on_the_way
    command = (*first, "--endpoint", ELSEWHERE, "--token", "t", "system", "health", *last)
    done = ostler(*command, **variables, HTTP_PROXY=proxy, http_proxy=proxy)
    assert (done.returncode, done.stdout, done.stderr, read) == (0, "ok\n", "", ["Bearer t"])
