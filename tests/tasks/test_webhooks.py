"""Whoever a task names hears how its session ended."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from tests.serving import wait_until
from tests.tasks.ordering import Json, finished, order, task

Calls = list[tuple[str, Json]]


@contextmanager
def _listener(*answers: int) -> Iterator[tuple[str, Calls]]:
    """An address that answers with these numbers in turn, the last one for ever, and what it heard."""
    calls: Calls = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            calls.append((self.headers["ostler-event"], json.loads(body)))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is given
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", calls
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_the_end_of_a_task_is_told_until_somebody_listens(api: httpx.Client, repository: Path) -> None:
    with _listener(503, 200) as (url, calls):
        wanted = [{"event": "session.completed", "url": url}, {"event": "session.failed", "url": url}]
        session = order(api, task("mock: say hi", repository, webhooks=wanted))
        finished(api, session)
        wait_until(lambda: len(calls) == 2, what="it was tried again")
    assert [(event, body["session"]["id"], body["session"]["status"]) for event, body in calls] == [
        ("session.completed", session, "completed")
    ] * 2


def test_the_end_is_told_however_it_came(api: httpx.Client, repository: Path) -> None:
    with _listener(200) as (url, calls):
        wanted = [{"event": "session.ended", "url": url}, {"event": "session.failed", "url": url}]
        failed = order(api, task("mock: error no luck", repository, webhooks=wanted))
        finished(api, failed)
        wait_until(lambda: len(calls) == 2, what="both were told")
        stopped = order(api, task("mock: wait 60", repository, webhooks=wanted))
        api.post(f"/sessions/{stopped}/stop")
        wait_until(lambda: len(calls) == 3, what="the stop was told")
    assert {event for event, body in calls if body["session"]["id"] == failed} == {"session.ended", "session.failed"}
    assert [body["session"]["status"] for event, body in calls if body["session"]["id"] == stopped] == ["stopped"]


def test_an_address_that_is_none_is_refused(api: httpx.Client, repository: Path) -> None:
    wanted = [{"event": "session.ended", "url": "file:///etc/passwd"}]
    answer = api.post("/tasks", json=task("mock: say hi", repository, webhooks=wanted))
    assert answer.json()["errors"] == {"webhooks[0].url": ["must begin with http:// or https://"]}
