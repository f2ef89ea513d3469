"""Webhooks tell others what happens: signed, in order for each session, and also when a server is killed."""

import asyncio
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from ostler.base.addresses import AddressRules
from ostler.server.store.sqlite.store import SqliteStore
from ostler.server.store.webhooks import CallRow, WebhookRow
from ostler.server.webhooks.calling import PAUSES, Outcome, StoredWebhook, settled
from ostler.server.webhooks.telling import Telling, new_call
from ostler.wire.webhooks import ReportedEvent, WebhookMessage
from tests.support.http_helpers import assert_problem
from tests.support.log_writing import NOW
from tests.support.patience import stretched, wait_until
from tests.support.receiving import SECRET, Receiver, receiving
from tests.support.serving import running_server
from tests.support.triggering import new_session, push, said

Made = dict[str, Any]


def create(api: httpx.Client, receiver: Receiver, *events: str, **more: Any) -> str:
    answered = api.post("/webhooks", json={"url": receiver.url, "events": events, "secret": SECRET, **more})
    assert answered.status_code == 201, answered.text
    return str(answered.json()["id"])


def calls(api: httpx.Client, webhook: str) -> list[Made]:
    found: list[Made] = api.get(f"/webhooks/{webhook}/deliveries").json()["items"]
    return found


def test_what_happens_is_told_signed_and_thin_to_who_wants_to_hear_it(api: httpx.Client) -> None:
    with receiving() as receiver:
        webhook = create(api, receiver, "turn.*")
        session = new_session(api)
        said(api, session, "Tea.")
        wait_until(lambda: len(receiver.heard) == 2, "the turn began and ended")
        wait_until(lambda: {each["state"] for each in calls(api, webhook)} == {"delivered"}, "it is in the list")
    assert receiver.forged == 0
    assert [body["type"] for _, body in receiver.heard] == ["turn.started", "turn.ended"]
    name, told = receiver.heard[1]
    ended = api.get(f"/sessions/{session}/events", params={"types": "turn.ended"}).json()["events"][0]
    assert told["timestamp"] == ended["time"]
    assert told["data"] == {
        "project": "default",
        "session": session,
        "sequence": ended["sequence"],
        "eventId": ended["event_id"],
        "path": f"/api/v1/sessions/{session}",
    }
    assert [each["id"] for each in calls(api, webhook)] == [name, receiver.heard[0][0]]
    assert api.get(f"/webhooks/{webhook}/deliveries/{name}").json()["content"] == told
    api.delete(f"/webhooks/{webhook}")
    assert_problem(api.get(f"/webhooks/{webhook}"), "webhook_not_found")


def test_only_what_was_asked_for_is_told_with_its_content_if_that_was_asked_for(api: httpx.Client) -> None:
    push(api)
    with receiving() as of_session, receiving() as of_template:
        mine, other = new_session(api), new_session(api)
        one = create(api, of_session, "turn.ended", session=mine, content=True)
        two = create(api, of_template, "turn.ended", template="triage")
        said(api, other, "No.")
        said(api, mine, "Yes.")
        begun = new_session(api, template="triage", inputs={"number": 1, "title": "Tea"})
        said(api, begun, "Also.")
        wait_until(lambda: bool(of_session.heard and of_template.heard), "both were told")
        assert [body["data"]["session"] for _, body in of_session.heard] == [mine]
        assert of_session.heard[0][1]["data"]["event"]["type"] == "turn.ended"
        assert [body["data"]["session"] for _, body in of_template.heard] == [begun]
        for webhook in (one, two):
            api.delete(f"/webhooks/{webhook}")


def test_a_failing_call_holds_back_its_session_and_no_other_one(api: httpx.Client) -> None:
    with receiving(503, 200) as receiver:
        webhook = create(api, receiver, "turn.ended")
        first, other = new_session(api), new_session(api)
        said(api, first, "One.")
        wait_until(lambda: [each.get("tries") for each in calls(api, webhook)] == [1], "it was tried")
        wait_until(lambda: calls(api, webhook)[0].get("reason") == "it answered 503", "it failed")
        said(api, first, "Two.")
        said(api, other, "Three.")
        wait_until(lambda: bool(receiver.texts(other)), "the other session is told")
        assert len(receiver.texts(first)) == 1, "the first call of the session comes first"
        wait_until(lambda: "failingSince" not in api.get(f"/webhooks/{webhook}").json(), "another call was taken since")
        held = next(each for each in calls(api, webhook) if each["state"] == "waiting" and each.get("tries"))
        assert held["nextTryAt"] > held["createdAt"]
        again = api.post(f"/webhooks/{webhook}/deliveries/{held['id']}/replay")
        assert again.status_code == 202
        wait_until(lambda: len(receiver.texts(first)) == 3, "both are told after that")
        assert receiver.heard[0][0] == held["id"]
        assert [name for name, body in receiver.heard if body == receiver.heard[0][1]] == [held["id"]] * 2
        assert receiver.texts(first) == sorted(receiver.texts(first))
        api.delete(f"/webhooks/{webhook}")


def test_without_an_order_a_failing_call_holds_back_none(api: httpx.Client) -> None:
    with receiving(503, 200) as receiver:
        webhook = create(api, receiver, "turn.ended", ordered=False)
        session = new_session(api)
        said(api, session, "One.")
        wait_until(lambda: [each.get("reason") for each in calls(api, webhook)] == ["it answered 503"], "it failed")
        said(api, session, "Two.")
        wait_until(lambda: len(receiver.texts(session)) == 2, "the second is told while the first waits")
        wait_until(lambda: [each["state"] for each in calls(api, webhook)] == ["delivered", "waiting"], "it is noted")
        api.delete(f"/webhooks/{webhook}")


@pytest.mark.parametrize(
    ("tries", "pause"), [(1, 5), (2, 60), (3, 300), (4, 1800), (5, 7200), (6, 18000), (7, 28800), (8, 28800), (9, None)]
)
def test_a_call_is_tried_for_a_day_with_longer_and_longer_pauses(tries: int, pause: int | None) -> None:
    call = CallRow(
        id="msg_1", webhook_id="whk_1", number=1, chain=None, session=None, type="a.b", at=0.0, body=b"{}", tries=tries
    )
    for spread, share in (([0.0], 1.0), ([0.999], 1.0999)):
        after = settled(call, Outcome(status=503, reason="it answered 503"), 1000.0, spread.pop)
        due = after.due - 1000.0 if after.state == "waiting" else None
        assert due == (None if pause is None else pytest.approx(pause * share))
    for wish, longest in ((90_000.0, 90_000.0), (1.0, pause)):
        after = settled(call, Outcome(status=429, reason="it answered 429", retry_after=wish), 0.0, lambda: 0.0)
        assert after.state == ("failed" if pause is None else "waiting")
        assert pause is None or after.due == longest
    for outcome in (Outcome(status=410, reason="it answered 410"), Outcome(reason="gone", is_void=True)):
        assert settled(call, outcome, 0.0, lambda: 0.0).state == "failed"
    assert settled(call, Outcome(status=200), 0.0, lambda: 0.0).state == "delivered"
    assert 23 <= sum(PAUSES) / 3600 <= 26


def test_an_address_that_is_gone_is_left_alone_until_somebody_lets_it_go_on(api: httpx.Client) -> None:
    with receiving(302, 410, 200) as receiver:
        webhook = create(api, receiver, "turn.ended")
        tested = api.post(f"/webhooks/{webhook}/test").json()
        wait_until(lambda: calls(api, webhook)[0].get("status") == 302, "it was sent elsewhere")
        assert calls(api, webhook)[0]["reason"] == "it answered 302, and redirects are not followed"
        assert api.get(f"/webhooks/{webhook}").json()["failingSince"]
        api.post(f"/webhooks/{webhook}/deliveries/{tested['id']}/replay")
        wait_until(lambda: "410" in api.get(f"/webhooks/{webhook}").json().get("disabled", ""), "it is disabled")
        assert calls(api, webhook)[0]["state"] == "failed"
        assert_problem(api.post(f"/webhooks/{webhook}/test"), "invalid_request")
        session = new_session(api)
        said(api, session, "Not told.")
        wait_until(lambda: api.get(f"/sessions/{session}").json()["turnCount"] == 1, "the turn is over")
        on = api.patch(f"/webhooks/{webhook}", json={"paused": False}).json()
        assert "disabled" not in on
        said(api, session, "Told.")
        wait_until(lambda: len(receiver.heard) == 3, "it goes on")
        assert [body["type"] for _, body in receiver.heard] == ["webhook.test", "webhook.test", "turn.ended"]
        api.delete(f"/webhooks/{webhook}")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"events": ["turn.over"]}, "invalid_request", "events"),
        ({"events": []}, "invalid_request", "events"),
        ({"secret": "tea"}, "invalid_request", "secret"),
        ({"url": "ftp://example.com"}, "address_refused", "url"),
        ({"url": "ssh://127.0.0.1/hook"}, "address_refused", "url"),
        ({"url": "http://169.254.169.254/latest"}, "address_refused", "url"),
        ({"session": "nobody"}, "session_not_found", None),
    ],
)
def test_a_webhook_that_makes_no_sense_is_refused_by_name(
    api: httpx.Client, body: Made, code: str, field: str | None
) -> None:
    before = api.get("/webhooks").json()
    answered = api.post("/webhooks", json={"url": "https://127.0.0.1:1/hook", "events": ["*"], **body})
    assert_problem(answered, code, field=field)
    assert api.get("/webhooks").json() == before


def test_a_secret_that_the_server_made_is_shown_once(api: httpx.Client) -> None:
    made = api.post("/webhooks", json={"url": "http://127.0.0.1:1/hook", "events": ["turn.ended"]}).json()
    assert made["secret"].startswith("whsec_")
    assert "secret" not in api.get(f"/webhooks/{made['id']}").json()
    api.delete(f"/webhooks/{made['id']}")


@pytest.mark.lane("server")
def test_a_server_that_is_killed_in_the_middle_of_calls_loses_none_of_them(state_dir: Path) -> None:
    with receiving() as receiver:
        receiver.go_on.clear()
        with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
            create(api, receiver, "item.completed", "turn.ended")
            sessions = [new_session(api) for _ in range(3)]
            for session in sessions:
                said(api, session, "One.", "Two.", "Three.")
            wait_until(lambda: len(receiver.heard) == 3, "a call of each session is under way")
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
        under_way = {name for name, _ in receiver.heard}
        receiver.heard.clear()
        receiver.go_on.set()
        with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:

            def wanted(session: str) -> list[int]:
                params = {"types": "item.completed,turn.ended", "limit": "1000"}
                found = api.get(f"/sessions/{session}/events", params=params).json()["events"]
                return [each["sequence"] for each in found]

            wait_until(lambda: [wanted(each)[6:] != [] for each in sessions] == [True] * 3, "turns go on")
            wait_until(lambda: all(receiver.texts(each) == wanted(each) for each in sessions), "all is told in order")
        assert under_way <= {name for name, _ in receiver.heard}, "with the ids they had"
        assert receiver.forged == 0


@contextmanager
def dripping() -> Iterator[str]:
    """A receiver that sends a line of its answer every second, and never the last one."""
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            while not is_over.wait(1):
                self.send_header("x-more", "to come")
                self.flush_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is given
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook"
        is_over.set()
        server.shutdown()
        thread.join(60)


@pytest.mark.lane("server")
def test_a_receiver_that_never_comes_to_an_end_is_tried_later(api: httpx.Client) -> None:
    with dripping() as url:
        webhook = api.post("/webhooks", json={"url": url, "events": ["turn.ended"]}).json()["id"]
        api.post(f"/webhooks/{webhook}/test")
        wait_until(lambda: "reason" in calls(api, webhook)[0], "it was given up for now")
        assert calls(api, webhook)[0]["reason"] == "it did not answer within 15 seconds"
        assert (calls(api, webhook)[0]["state"], calls(api, webhook)[0]["tries"]) == ("waiting", 1)
        api.delete(f"/webhooks/{webhook}")


def test_a_webhook_that_cannot_be_read_does_not_stop_the_others(state_dir: Path) -> None:
    with (
        receiving() as receiver,
        running_server(state_dir) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        webhook = create(api, receiver, "turn.ended")
        with closing(sqlite3.connect(state_dir / "ostler.db")) as database, database:
            database.execute("UPDATE project_webhooks SET body = '{' WHERE id = ?", (webhook,))
        other = create(api, receiver, "turn.ended")
        said(api, new_session(api), "Tea.")
        wait_until(lambda: len(receiver.heard) == 1, "the other one is told")
        wait_until(lambda: [each["state"] for each in calls(api, other)] == ["delivered"], "it was taken")


def test_another_address_gets_what_waited_at_once_and_a_pause_says_nothing_of_failures(api: httpx.Client) -> None:
    with receiving(503) as failing, receiving() as receiver:
        webhook = create(api, failing, "turn.ended")
        call = api.post(f"/webhooks/{webhook}/test").json()["id"]
        wait_until(lambda: calls(api, webhook)[0].get("status") == 503, "it failed")
        paused = api.patch(f"/webhooks/{webhook}", json={"paused": True}).json()
        assert (paused["paused"], "failingSince" in paused) == (True, True)
        moved = api.patch(f"/webhooks/{webhook}", json={"url": receiver.url}).json()
        assert (moved["paused"], "failingSince" in moved) == (True, False)
        api.patch(f"/webhooks/{webhook}", json={"paused": False})
        wait_until(lambda: [name for name, _ in receiver.heard] == [call], "the other address is called")
        api.delete(f"/webhooks/{webhook}")


async def test_a_call_that_fails_by_a_mistake_of_the_server_is_not_made_for_ever(tmp_path: Path) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("nobody thought of that")

    async def never(_: str) -> bool:
        return False

    store = await SqliteStore.open(tmp_path / "ostler.db", sync="normal", boot="now")
    body = msgspec.json.encode(StoredWebhook(url="trigger:later", events=("session.ended",)))
    row = WebhookRow(id="whk_a", project="default", body=body, position=0, created_at=NOW)
    message = WebhookMessage(type="session.ended", timestamp=NOW, data=ReportedEvent(project="default"))
    await store.webhooks.add(row, 1)
    await store.webhooks.call(new_call(row.id, message, number=1, chain=None, at=time.time()))
    telling = Telling(store, AddressRules(), is_shared=False, begin=fail, is_over=never)
    telling.start()
    async with asyncio.timeout(stretched(60)):
        while (call := (await store.webhooks.calls(row.id, 1))[0]).reason is None:
            await asyncio.sleep(0.02)
    assert (call.state, call.tries, call.reason) == ("waiting", 1, "this server could not make it (RuntimeError)")
    assert call.due > call.at
    await telling.close()
    await store.close()
