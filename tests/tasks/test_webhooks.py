"""Whoever a task names hears how its session ended."""

import json
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.support.ordering import Json, events, finished, new_session, order, say, task, task_server
from tests.support.patience import wait_until
from tests.support.temporal_server import running_temporal

Calls = list[tuple[str, Json]]


@contextmanager
def _listener(*answers: int) -> Iterator[tuple[str, Calls]]:
    """An address that answers with these numbers in turn, the last one for ever, and what it heard."""
    with _deaf(*answers) as (url, calls, listen):
        listen()
        yield url, calls


@contextmanager
def _deaf(*answers: int) -> Iterator[tuple[str, Calls, Callable[[], None]]]:
    """The same, but nobody answers there until it is told to listen."""
    calls: Calls = []
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            calls.append((self.headers["ostler-event"], json.loads(body)))
            assert self.headers["ostler-delivery"] == calls[-1][1]["id"]
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is given
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.server_bind()
    thread = threading.Thread(target=server.serve_forever, daemon=True)

    def listen() -> None:
        server.server_activate()
        thread.start()

    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", calls, listen
    finally:
        if thread.is_alive():
            server.shutdown()
        server.server_close()
        thread.join(60)


def test_a_limit_on_the_way_is_told_with_its_end(api: httpx.Client, repository: Path) -> None:
    with _listener(200) as (url, calls):
        wanted = [{"event": "session.limit", "url": url}, {"event": "session.ended", "url": url}]
        session = order(api, task("mock: write a.txt one\nmock: limit 2\nmock: say Done.", repository, webhooks=wanted))
        finished(api, session)
        wait_until(lambda: len(calls) == 2, what="the limit and the end")
    told = {event: body["session"] for event, body in calls}
    assert sorted(told) == ["session.ended", "session.limit"]
    limited = told["session.limit"]
    assert (limited["waitsForLimit"], limited["status"]) == (True, "running")
    assert limited["limitedUntil"] == events(api, session, "session.limit")[0]["data"]["until"]


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


def test_the_end_of_a_session_that_is_deleted_is_told(api: httpx.Client, repository: Path) -> None:
    with _listener(200) as (url, calls):
        wanted = [{"event": "session.ended", "url": url}, {"event": "session.failed", "url": url}]
        session = order(api, task("mock: wait 600", repository, webhooks=wanted))
        wait_until(lambda: bool(events(api, session, "turn.started")), what="the agent works")
        assert api.delete(f"/sessions/{session}").status_code == 204
        wait_until(lambda: len(calls) == 1, what="its end was told")
    assert [(event, body["session"]["id"], body["session"]["status"]) for event, body in calls] == [
        ("session.ended", session, "cancelled")
    ]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_stopped_server_did_not_tell_is_told_by_the_next(
    how: signal.Signals, repository: Path, state_dir: Path
) -> None:
    with _deaf(200) as (url, calls, listen):
        wanted = [{"event": event, "url": url} for event in ("session.failed", "session.completed", "session.ended")]
        with task_server(state_dir, repository.parent) as (server, api):
            session = order(api, task("mock: say hi", repository, webhooks=wanted))
            finished(api, session)
            os.kill(server.process.pid, how)
            server.process.wait()
        listen()
        with task_server(state_dir, repository.parent) as (_, api):
            wait_until(lambda: len(calls) == 2, what="both were told")
            wait_until(lambda: _waiting(state_dir) == 0, what="both are done with")
        with task_server(state_dir, repository.parent):
            pass
    assert sorted((event, body["id"], body["session"]["status"]) for event, body in calls) == [
        ("session.completed", f"{session}-1", "completed"),
        ("session.ended", f"{session}-2", "completed"),
    ]


def test_what_ends_while_temporal_is_away_is_told_when_it_is_back_and_nobody_notices_before(
    repository: Path, state_dir: Path, tmp_path: Path
) -> None:
    with running_temporal(tmp_path) as temporal, _listener(503, 200) as (url, calls):
        temporal.kill()
        flags = (state_dir, repository.parent, "--engine", temporal.url)
        with task_server(*flags) as (server, api):
            wanted = [{"event": "session.ended", "url": url}]
            session = order(api, task("mock: say hi", repository, webhooks=wanted))
            assert finished(api, session)["status"] == "completed"
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
        with task_server(*flags) as (server, api):
            other = new_session(api, repository)
            say(api, other, "mock: say still here")
            assert calls == []
            temporal.start()
            wait_until(lambda: len(calls) == 2, what="it was told, at the second try")
            written = server.stderr.read_text()
    assert [(event, body["session"]["id"]) for event, body in calls] == [("session.ended", session)] * 2
    assert written.count("engine.unreachable") == 1, "said once"
    assert "Traceback" not in written


def test_what_an_earlier_version_owed_is_told(repository: Path, state_dir: Path) -> None:
    with _deaf(200) as (url, calls, listen):
        wanted = [{"event": event, "url": url} for event in ("session.failed", "session.ended")]
        with task_server(state_dir, repository.parent) as (_, api):
            session = order(api, task("mock: say hi", repository, webhooks=wanted))
            finished(api, session)
        with closing(sqlite3.connect(state_dir / "ostler.db")) as connection:  # as the seventh version left it
            connection.executescript(
                "DROP TABLE jobs;"
                "CREATE TABLE webhooks (session TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (session, number));"
                f"INSERT INTO webhooks VALUES ('{session}', 0), ('{session}', 1);"
                "DROP TABLE runner_tokens; DROP TABLE runner_keys; DROP TABLE managed_runners; DROP TABLE prompts;"
                "DROP TABLE template_revisions; DROP TABLE template_tags; DROP TABLE schedules; DROP TABLE fires;"
                "DROP TABLE triggers; DROP TABLE deliveries; DROP TABLE project_webhooks; DROP TABLE webhook_calls;"
                "DROP TABLE limits; DROP TABLE turn_uses; DROP TABLE audit; DROP TABLE audit_heads; DROP TABLE people;"
                "DROP TABLE tenants; DROP TABLE projects; DROP TABLE api_keys; DROP TABLE upload_uses;"
                "DROP TABLE audit_removed; DROP TABLE reads; DROP TABLE sign_ins;"
                "DROP INDEX sessions_by_runner; ALTER TABLE sessions DROP COLUMN runner;"
                "PRAGMA user_version = 7"
            )
        listen()
        with task_server(state_dir, repository.parent) as (_, api):
            wait_until(lambda: _waiting(state_dir) == 0, what="it was told")
    assert [(event, body["id"], body["session"]["status"]) for event, body in calls] == [
        ("session.ended", f"{session}-1", "completed")
    ]


def _waiting(state_dir: Path) -> int:
    with closing(sqlite3.connect(state_dir / "ostler.db")) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM jobs").fetchone()[0])


def test_an_address_that_is_none_is_refused(api: httpx.Client, repository: Path) -> None:
    wanted = [{"event": "session.ended", "url": "file:///etc/passwd"}]
    answer = api.post("/tasks", json=task("mock: say hi", repository, webhooks=wanted))
    assert answer.json()["errors"] == {"webhooks[0].url": ["must begin with http:// or https://"]}


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_address_of_a_webhook_is_in_no_log(form: str, repository: Path, state_dir: Path) -> None:
    flags = ("--log-level", "debug", "--log-format", form)
    with _listener(500, 200) as (url, calls), task_server(state_dir, repository.parent, *flags) as (server, api):
        told = f"{url}/sekret-path-7Rk1?t=sekret-hook-2Wq3"
        session = order(api, task("mock: say hi", repository, webhooks=[{"event": "session.ended", "url": told}]))
        finished(api, session)
        wait_until(lambda: len(calls) == 2, what="it was told")
        written = server.stderr.read_text() + server.stdout.read_text()
    assert "job.failed" in written
    assert "sekret" not in written
