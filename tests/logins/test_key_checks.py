"""A key is checked by the service that it is for."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ostler.agents.adapter import KeyCheck
from ostler.runner.logins.probes import key_verdict

ANSWERS = {"good": 200, "wrong": 401, "forbidden": 403, "busy": 529}


class _Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(ANSWERS[self.headers["x-key"].removeprefix("Key ")])
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/models"
        server.shutdown()


@pytest.mark.parametrize(("key", "good"), [("good", True), ("wrong", False), ("forbidden", False), ("busy", None)])
async def test_a_service_tells_whether_a_key_is_good(service: str, key: str, good: bool | None) -> None:
    found, _ = await key_verdict(KeyCheck(url=service, header="x-key", prefix="Key "), key)
    assert found is good


@pytest.mark.parametrize("check", [None, KeyCheck(url="http://127.0.0.1:1/models")])
async def test_without_an_answer_nothing_is_guessed(check: KeyCheck | None) -> None:
    found, why = await key_verdict(check, "any")
    assert (found, bool(why)) == (None, True)
