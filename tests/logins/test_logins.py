"""Agents are logged in through the API: with a key, with what is on the machine, or by their own login."""

import json
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.guest import Door, guest_server, is_gone, pids_in
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import RunningServer
from tests.support.talk import Talk

NAMES = ["machine", "subscription", "key", "session"]


class Place:
    """A server, and what it has on disk."""

    def __init__(self, server: RunningServer, api: httpx.Client, folder: Path) -> None:
        self.server, self.api, self.folder = server, api, folder
        self.door = Door(api)

    def says(self) -> str:
        """What the agent of a new session says of its login."""
        talk = Talk(self.api, agent="guest")
        talk.turn("hello")
        said = [event["data"]["item"]["content"] for event in talk.events if event["type"] == "item.completed"]
        return str([part.get("text") for content in said for part in content][-1])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("logins")
    with guest_server(folder) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        yield Place(server, api, folder)


@pytest.fixture(autouse=True)
def logged_out(place: Place) -> Iterator[None]:
    yield
    place.door.leave()


def test_nothing_is_known_and_nothing_is_guessed(place: Place) -> None:
    found = place.door.look()
    assert (found["state"], found.get("method")) == ("needs_login", None)
    assert [offer["method"] for offer in found["offers"]] == NAMES
    assert {offer["method"]: offer["available"] for offer in found["offers"]} == {
        "machine": False,
        "subscription": True,
        "key": True,
        "session": True,
    }
    assert Door(place.api, "bare").look()["state"] == "unknown"
    assert Door(place.api, "mock").look()["state"] == "ready"
    codex = Door(place.api, "codex").look()
    assert codex["state"] == "needs_login"
    assert "ostler agents install codex" in str(codex["offers"])


def test_a_key_is_stored_closed_and_used_by_the_next_session(place: Place) -> None:
    answer = place.door.post(method="key", key="k3y-private")
    assert answer.status_code == 200
    assert (answer.json()["state"], answer.json()["method"]) == ("unknown", "key")
    assert place.says() == "key k3y-private login None"
    assert place.door.look()["state"] == "ready"  # a turn was let in
    stored = place.folder / "state" / "logins" / "guest" / "login.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(stored.parent.stat().st_mode) == 0o700
    assert "k3y-private" not in str(place.door.look())
    place.door.leave()
    assert not stored.exists()
    assert place.door.look()["state"] == "needs_login"


def test_a_key_that_a_turn_shows_to_be_wrong_is_no_login(place: Place) -> None:
    assert place.door.post(method="key", key="wrong").status_code == 200
    talk = Talk(place.api, agent="guest")
    *_, ended = talk.turn("hello")
    assert ended["data"]["outcome"] == "failed"
    assert "ostler agents login guest" in json.dumps(talk.events)
    assert place.door.look()["state"] == "needs_login"
    assert "error" in talk.get()
    place.door.post(method="key", key="right")
    *_, ended = talk.turn("again")  # another process, with the new key
    assert ended["data"]["outcome"] == "completed"
    assert "error" not in talk.get()


def test_what_a_session_brings_goes_first(place: Place) -> None:
    place.door.post(method="key", key="stored")
    talk = Talk(place.api, agent="guest", env={"GUEST_KEY": "own"})
    talk.turn("hello")
    assert "key own login None" in json.dumps(talk.events)


def test_the_agents_own_login_is_shared_by_its_sessions(place: Place) -> None:
    running = place.door.started()
    assert running["url"].startswith("https://login.example/start?token=s3cr3t&pid=")
    assert running["code"] == "GUEST-7777"
    assert place.door.post(method="subscription").status_code == 422  # one at a time
    assert place.door.post("/answer", code="1234").status_code == 200
    assert place.door.ended()["step"] == "succeeded"
    found = place.door.look()
    assert (found["state"], found["method"]) == ("ready", "subscription")
    assert "url" not in found["running"]
    assert place.says() == "key None login guest"
    links = list((place.folder / "state" / "sessions").glob("*/home/.guest/auth.json"))
    assert [link.is_symlink() for link in links] == [True]
    place.door.leave()
    assert place.door.look()["state"] == "needs_login"


def test_a_wrong_code_fails_and_leaves_what_was_there(place: Place) -> None:
    place.door.post(method="key", key="before")
    running = place.door.started()
    place.door.post("/answer", code="4321")
    ended = place.door.ended()
    assert ended["step"] == "failed"
    assert ended["message"] == "Login failed: wrong code?token=[hidden]"
    assert place.door.look()["method"] == "key"
    assert not (place.folder / "state" / "logins" / "guest" / "new").exists()
    wait_until(lambda: all(map(is_gone, pids_in(running))), what="the processes of the login end")


def test_a_login_that_is_cancelled_leaves_no_process(place: Place) -> None:
    running = place.door.started()
    assert place.door.post("/cancel").json()["running"]["step"] == "cancelled"
    wait_until(lambda: all(map(is_gone, pids_in(running))), what="the processes of the login end")
    assert_problem(place.door.post("/answer", code="1234"), "unprocessable")


def test_nothing_of_a_login_is_in_a_log_or_in_the_store(place: Place) -> None:
    headers = {"Idempotency-Key": "once"}
    answer = place.api.post("/agents/guest/login", json={"method": "subscription"}, headers=headers)
    again = place.api.post("/agents/guest/login", json={"method": "subscription"}, headers=headers)
    assert answer.status_code == 200
    assert again.headers["idempotency-replayed"] == "true"
    assert "s3cr3t" not in again.text
    place.door.post("/cancel")
    logged = place.server.stderr.read_text() + place.server.stdout.read_text()
    files = [path for path in (place.folder / "state").glob("ostler.db*") if path.is_file()]
    assert "s3cr3t" not in logged
    assert all(b"s3cr3t" not in path.read_bytes() for path in files)


def test_who_logs_an_agent_in_and_what_becomes_of_it_are_lines_of_the_audit_log(place: Place) -> None:
    def lines() -> list[dict[str, str]]:
        found = [each for each in place.api.get("/audit").json()["items"] if each["number"] > before]
        return [{name: each[name] for name in ("action", "actor", "target", "outcome")} for each in reversed(found)]

    def ended(number: int) -> bool:
        return [each["action"] for each in lines()].count("agents.login-ended") == number

    before = max((each["number"] for each in place.api.get("/audit").json()["items"]), default=0)
    place.door.post(method="key", key="k3y-private")
    place.door.started()
    place.door.post("/answer", code="1234")
    wait_until(lambda: ended(1), what="the line of its end")
    place.door.started()
    place.door.post("/cancel")
    wait_until(lambda: ended(2), what="the line of the second")
    assert lines() == [
        {"action": action, "actor": "local", "target": target, "outcome": outcome}
        for action, target, outcome in (
            ("agents.login", "guest", "done"),
            ("agents.login", "guest", "done"),
            ("agents.login-answer", "guest", "done"),
            ("agents.login-ended", "guest succeeded", "done"),
            ("agents.login", "guest", "done"),
            ("agents.login-cancel", "guest", "done"),
            ("agents.login-ended", "guest cancelled", "failed"),
        )
    ]
    exported = place.api.get("/audit/export").text
    assert all(secret not in exported for secret in ("k3y-private", "1234", "s3cr3t"))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"method": "key"}, 422),
        ({"method": "machine", "key": "x"}, 422),
        ({"method": "key", "key": "a\nb"}, 422),
        ({"method": "key", "key": "x", "variable": "PATH"}, 422),
        ({"method": "machine"}, 422),
        ({"method": "magic"}, 400),
    ],
)
def test_what_cannot_be_is_refused_and_stores_nothing(place: Place, body: dict[str, str], status: int) -> None:
    answer = place.door.post(**body)
    assert answer.status_code == status, answer.text
    assert place.door.look()["state"] == "needs_login"


def test_what_is_on_the_machine_is_shared_only_when_asked(place: Place) -> None:
    own = place.folder / "state-home" / ".guest" / "auth.json"
    own.parent.mkdir(exist_ok=True)
    own.write_text('{"name": "owner"}')
    offer = place.door.look()["offers"][0]
    assert (offer["available"], "~/.guest/auth.json" in offer["about"]) == (True, True)
    assert place.door.look()["state"] == "needs_login"
    assert place.door.post(method="machine").json()["state"] == "ready"
    assert place.says() == "key None login owner"
    own.unlink()
    assert place.door.look()["state"] == "needs_login"


@pytest.mark.parametrize(("token", "healthy"), [("good", True), ("wrong", False), (None, False)])
def test_the_daemon_api_checks_a_token_when_asked(place: Place, token: str | None, healthy: bool) -> None:
    body = {"agent": "guest", "validateToken": True, **({"token": token} if token else {})}
    with httpx.Client(base_url=place.server.url, timeout=60) as daemon:
        answer = daemon.post(f"/v1/sessions/checked-{token}", json=body).json()
        unchecked = daemon.post(f"/v1/sessions/unchecked-{token}", json={**body, "validateToken": False}).json()
    assert answer["healthy"] is healthy
    assert answer.get("error", {}).get("type") == (None if healthy else "tokenError")
    assert unchecked == {"healthy": True, "nativeSessionId": "echo"}


def test_the_daemon_api_calls_nothing_healthy_that_it_could_not_check(place: Place) -> None:
    with httpx.Client(base_url=place.server.url, timeout=60) as daemon:
        answer = daemon.post("/v1/sessions/unknown", json={"agent": "bare", "validateToken": True}).json()
        assert (answer["healthy"], answer["error"]["type"]) == (False, "tokenError")
        assert "could not be checked" in answer["error"]["message"]
        assert daemon.get("/v1/sessions/unknown/events").status_code == 404


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_server_ends_a_login(tmp_path: Path, how: signal.Signals) -> None:
    with guest_server(tmp_path) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        running = Door(api).started()
        os.kill(server.process.pid, how)
        server.process.wait(60)
        wait_until(lambda: all(map(is_gone, pids_in(running))), what="the processes of the login end")


def test_what_a_killed_server_left_of_a_login_is_gone_with_the_next_start(tmp_path: Path) -> None:
    with guest_server(tmp_path) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        Door(api).started()
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(60)
    with guest_server(tmp_path) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        door = Door(api)
        assert (door.look()["state"], door.running()) == ("needs_login", {})
        assert list((tmp_path / "state" / "logins").glob("*")) == []
        door.started()


def test_an_admin_of_a_team_sees_no_address_or_code_of_the_servers_login(tmp_path: Path) -> None:
    holder = {"authorization": "Bearer s3rver"}
    with (
        guest_server(tmp_path, "--token", "s3rver") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60, headers=holder) as api,
    ):
        assert api.post("/tenants", json={"name": "acme"}).status_code == 201
        wanted = {"name": "boss", "role": "admin"}
        key = api.post("/api-keys", json=wanted, headers={"ostler-project": "acme/default"}).json()["key"]
        assert Door(api).started()["code"] == "GUEST-7777"
        seen = api.get("/agents/guest/login", headers={"authorization": f"ApiKey {key}"})
        assert (seen.status_code, seen.json()["running"]["step"]) == (200, "waiting")
        assert not seen.json()["running"].keys() & {"url", "code", "message"}
