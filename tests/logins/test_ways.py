"""An agent that speaks ACP says itself how it can be logged in, and is logged in that way."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.guest import Door, is_gone, pids_in
from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

PROGRAM = str(Path(__file__).parent / "programs" / "ways.py")
COMMAND = [sys.executable, PROGRAM]
AGENTS = {
    "ways": {"command": COMMAND, "login_files": [".ways"]},
    "nowhere": {"command": COMMAND},
    "silent": {"command": [*COMMAND, "silent"]},
}
WAYS = ["prints", "asks", "opens", "lies", "dies", "terminal"]


class Place:
    """A server with such agents."""

    def __init__(self, server: RunningServer, api: httpx.Client, folder: Path) -> None:
        self.server, self.api, self.folder = server, api, folder
        self.door = Door(api, "ways")

    def begun(self, way: str) -> dict[str, Any]:
        """A login in one way that waits for its code."""
        assert self.door.post(method="subscription", way=way).status_code == 200
        wait_until(lambda: self.door.running().get("wantsCode", False), what="the login asks")
        return self.door.running()

    def says(self) -> str:
        """What the agent of a new session says of its login."""
        talk = Talk(self.api, agent="ways")
        talk.turn("hello")
        said = [event["data"]["item"]["content"] for event in talk.events if event["type"] == "item.completed"]
        return str([part.get("text") for content in said for part in content][-1])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("ways")
    with (
        running_server(folder / "state", env={"OSTLER_AGENTS": json.dumps(AGENTS)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield Place(server, api, folder)


@pytest.fixture(autouse=True)
def logged_out(place: Place) -> Iterator[None]:
    yield
    place.door.leave()


def test_the_ways_are_those_that_the_agent_tells(place: Place) -> None:
    offers = place.door.look()["offers"]
    own = [offer for offer in offers if offer["method"] == "subscription"]
    assert [offer["way"] for offer in own] == WAYS
    assert all(offer["available"] for offer in own)
    assert (own[0]["name"], own[0]["about"]) == ("Sign in with a page", "Prints an address and reads a line.")
    assert [offer["variables"] for offer in offers if offer["method"] == "key"] == [["WAYS_TOKEN"]]


@pytest.mark.parametrize(
    ("way", "code", "name"),
    [
        ("prints", "WAYS-1111", "prints"),
        ("asks", "WAYS-2222", "asks"),
        ("opens", None, "opens"),
        ("terminal", None, "tty"),
    ],
)
def test_a_login_in_one_of_its_ways_is_shared_by_its_sessions(
    place: Place, way: str, code: str | None, name: str
) -> None:
    running = place.begun(way)
    assert running["url"].startswith("https://login.example/start?token=s3cr3t&pid=")
    assert running.get("code") == code
    assert place.door.post("/answer", code="1234").status_code == 200
    assert place.door.ended()["step"] == "succeeded", place.door.running()
    assert place.door.look()["method"] == "subscription"
    assert place.says() == f"token None login {name}"
    wait_until(lambda: all(map(is_gone, pids_in(running))), what="the process of the login ends")


@pytest.mark.parametrize("way", ["prints", "asks"])
def test_a_wrong_code_fails_in_the_agents_words_without_their_secrets(place: Place, way: str) -> None:
    place.begun(way)
    place.door.post("/answer", code="4321")
    ended = place.door.ended()
    assert (ended["step"], ended["message"]) == ("failed", "wrong code?token=[hidden]")
    assert not (place.folder / "state" / "logins" / "ways").exists()


@pytest.mark.parametrize(
    ("way", "message"), [("lies", "Authentication failed: no such account"), ("dies", "It hurts.")]
)
def test_a_login_that_leaves_nothing_is_none(place: Place, way: str, message: str) -> None:
    assert place.door.post(method="subscription", way=way).status_code == 200
    ended = place.door.ended()
    assert (ended["step"], ended["message"]) == ("failed", message)
    assert place.door.look().get("method") is None


def test_a_login_that_nobody_knows_the_place_of_says_what_to_do(place: Place) -> None:
    door = Door(place.api, "nowhere")
    door.post(method="subscription", way="prints")
    wait_until(lambda: door.running().get("wantsCode", False), what="the login asks")
    door.post("/answer", code="1234")
    ended = door.ended()
    assert ended["step"] == "failed"
    assert "login_files" in ended["message"]
    assert ".ways/auth.json" in ended["message"]


def test_a_variable_that_the_agent_names_takes_a_key(place: Place) -> None:
    assert place.door.post(method="key", key="k3y").status_code == 200
    assert place.says() == "token k3y login None"
    assert_problem(place.door.post(method="key", key="k3y", variable="PATH"), "unprocessable")


def test_what_the_agent_does_not_tell_is_refused(place: Place) -> None:
    answer = place.door.post(method="subscription", way="magic")
    assert_problem(answer, "unprocessable")
    assert "prints, asks" in answer.json()["detail"]


def test_an_agent_that_gives_no_answer_has_no_such_login_and_says_why(place: Place) -> None:
    offer = next(each for each in Door(place.api, "silent").look()["offers"] if each["method"] == "subscription")
    assert not offer["available"]
    assert "I cannot start without my configuration" in offer["about"]
    assert_problem(Door(place.api, "silent").post(method="subscription"), "unprocessable")


def test_nothing_that_the_agent_shows_is_in_a_log_or_in_the_store(place: Place) -> None:
    place.begun("asks")
    assert place.door.post("/cancel").json()["running"]["step"] == "cancelled"
    logged = place.server.stderr.read_text() + place.server.stdout.read_text()
    files = [path for path in (place.folder / "state").rglob("*") if path.is_file()]
    assert "s3cr3t" not in logged
    assert all(b"s3cr3t" not in path.read_bytes() for path in files)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_server_ends_a_login_by_dialogue(tmp_path: Path, how: signal.Signals) -> None:
    agents = json.dumps({"ways": AGENTS["ways"]})
    with (
        running_server(tmp_path / "state", env={"OSTLER_AGENTS": agents}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        running = Place(server, api, tmp_path).begun("prints")
        os.kill(server.process.pid, how)
        server.process.wait(60)
        wait_until(lambda: all(map(is_gone, pids_in(running))), what="the process of the login ends")


def test_of_several_logins_started_at_once_one_begins_and_the_others_are_told(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "state", env={"OSTLER_AGENTS": json.dumps(AGENTS)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        door = Door(api, "ways")
        with ThreadPoolExecutor(4) as pool:  # nobody has asked the agent for its ways before
            answers = list(pool.map(lambda _: door.post(method="subscription", way="prints"), range(4)))
        assert sorted(answer.status_code for answer in answers) == [200, 422, 422, 422], [a.text for a in answers]
        assert all("under way" in answer.text for answer in answers if answer.status_code == 422)
        assert door.post("/cancel").json()["running"]["step"] == "cancelled"
