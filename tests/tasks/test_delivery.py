"""The result of a session is handed over: a branch, one pull request, and never a secret."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.forge import TOKEN, State, running_forge
from tests.support.http_helpers import assert_problem
from tests.support.ordering import done, events, finished, new_session, order, say, task, task_server
from tests.support.patience import wait_until
from tests.support.places import git, make_forged, tree_hash
from tests.support.serving import OSTLER, RunningServer, clean_env

_WORK = "mock: write new.txt hello\\n"


class Shop(NamedTuple):
    """A forge, the repository on it, and a server that may use both."""

    api: httpx.Client
    server: RunningServer
    url: str
    state: State
    bare: Path

    def task(self, prompt: str, **delivery: Any) -> dict[str, Any]:
        """A task on the repository of the forge."""
        body = task(prompt, self.bare, delivery=delivery)
        body["repo"] = {"url": f"{self.url}/team/project.git", "branch": "main", "credential": {"token": TOKEN}}
        return body

    def everything_said(self, session: str) -> str:
        """All that clients and operators can read about a session."""
        places = ("", "/events?include_raw=true", "/logs", "/workspace", "/snapshots")
        texts = [self.api.get(f"/sessions/{session}{place}").text for place in places]
        return "".join([*texts, self.api.get(f"/tasks/{session}").text, self.server.stderr.read_text()])


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return make_forged(tmp_path)


@pytest.fixture
def shop(bare: Path, state_dir: Path, tmp_path: Path) -> Iterator[Shop]:
    flags = ("--repository-protocol", "http", "--repository-host", "127.0.0.1", "--log-level", "debug")
    with running_forge(bare.parents[1]) as (url, state), task_server(state_dir, tmp_path, *flags) as (server, api):
        yield Shop(api, server, url, state, bare)
        assert state.faults == []


def test_a_task_pushes_a_branch_to_a_local_bare_remote(api: httpx.Client, bare: Path) -> None:
    before = git(bare, "rev-parse", "main")
    session = done(api, task(_WORK, bare, delivery={"mode": "branch", "targetBranch": "agent/work"}))["id"]
    (delivery,) = events(api, session, "delivery.completed")
    assert delivery["data"]["branch"] == "agent/work"
    lines = [line["message"] for line in api.get(f"/sessions/{session}/logs").json()["logs"]]
    assert any(line.startswith("delivered as branch agent/work") for line in lines)
    flat = api.get(f"/sessions/{session}/events?format=flat").json()["events"]
    (told,) = [line for line in flat if line["type"] == "delivery"]
    assert (told["branch"], told["commit"]) == ("agent/work", delivery["data"]["commit"])
    assert git(bare, "rev-parse", "agent/work") == delivery["data"]["commit"]
    assert git(bare, "rev-parse", "agent/work^") == before == git(bare, "rev-parse", "main")
    assert git(bare, "show", "agent/work:new.txt") == "hello"
    assert git(bare, "diff", "--name-only", "main", "agent/work") == "new.txt"


def test_a_branch_without_a_name_is_called_after_the_session(api: httpx.Client, bare: Path) -> None:
    session = done(api, task(_WORK, bare, title="Mend the Tests!", delivery={"mode": "branch"}))["id"]
    (delivery,) = events(api, session, "delivery.completed")
    assert delivery["data"]["branch"] == f"ostler/mend-the-tests-{session[-6:].lower()}"


def test_a_task_opens_a_pull_request_and_tells_no_secret(shop: Shop) -> None:
    wanted = {
        "mode": "pr",
        "targetBranch": "main",
        "forge": "github",
        "apiUrl": f"{shop.url}/github",
        "title": "Mend it",
    }
    session = done(shop.api, shop.task(_WORK, **wanted))["id"]
    (delivery,) = events(shop.api, session, "delivery.completed")
    assert delivery["data"]["url"] == "https://github.example/team/project/pull/1"
    lines = [line["message"] for line in shop.api.get(f"/sessions/{session}/logs").json()["logs"]]
    told = f"delivered as pr of branch {delivery['data']['branch']}: {delivery['data']['url']}"
    assert told in lines
    assert [(pull["title"], pull["target"]) for pull in shop.state.pulls] == [("Mend it", "main")]
    assert git(shop.bare, "show", f"{delivery['data']['branch']}:new.txt") == "hello"
    assert TOKEN not in shop.everything_said(session)


def test_a_pull_request_of_a_task_says_what_the_plan_would_propose(shop: Shop, tmp_path: Path) -> None:
    wanted = {"mode": "pr", "forge": "github", "apiUrl": f"{shop.url}/github"}
    body = shop.task(f"{_WORK}\nmock: say I added\\n\x1ba discount.", **wanted)
    session = done(shop.api, {**body, "title": "Add a discount. Then go"})["id"]
    plan = shop.api.get(f"/sessions/{session}/delivery").json()
    (pull,) = shop.state.pulls
    assert (pull["title"], pull["body"]) == (plan["title"], plan["body"])
    assert plan["title"] == "Add a discount"
    assert plan["body"] == f"I added\na discount.\n\nMade by mock in session {session}."
    (delivery,) = events(shop.api, session, "delivery.completed")
    message = git(shop.bare, "log", "-1", "--format=%B", delivery["data"]["branch"])
    assert message == f"{plan['title']}\n\n{plan['body']}"
    env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": shop.server.url, "PYTHONIOENCODING": "utf-8"})
    shown = subprocess.run([*OSTLER, "sessions", "delivery", session], env=env, capture_output=True, check=True)
    assert shown.stdout.decode().endswith(f"\n\n{plan['body']}\n")


def test_delivering_twice_gives_one_pull_request(shop: Shop) -> None:
    repo = {"url": f"{shop.url}/team/project.git", "branch": "main", "credential": {"token": TOKEN}}
    session = new_session(shop.api, shop.bare, repo=repo)
    say(shop.api, session, _WORK)
    wanted = {"mode": "pr", "forge": "github", "apiUrl": f"{shop.url}/github", "target": "main"}
    first, second = (shop.api.post(f"/sessions/{session}/deliver", json=wanted) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200), (first.text, second.text)
    assert (first.json()["url"], second.json()["created"]) == (second.json()["url"], False)
    say(shop.api, session, "mock: write more.txt more")
    third = shop.api.post(f"/sessions/{session}/deliver", json=wanted).json()
    assert third["number"] == first.json()["number"]
    assert len(shop.state.pulls) == 1
    assert git(shop.bare, "show", f"{third['branch']}:more.txt") == "more"
    assert TOKEN not in shop.everything_said(session)
    assert len(events(shop.api, session, "delivery.completed")) == 3


def test_a_wrong_credential_fails_the_task_and_stays_secret(shop: Shop) -> None:
    body = shop.task(_WORK, mode="pr", targetBranch="main", forge="github", apiUrl=f"{shop.url}/github")
    body["repo"]["credential"]["token"] = "wrong-secret-987"
    found = finished(shop.api, order(shop.api, body))
    assert found["status"] == "failed"
    assert "could not be fetched" in found["error"]
    assert "wrong-secret-987" not in shop.everything_said(found["id"])


def test_a_delivery_that_fails_can_be_made_good_later(api: httpx.Client, bare: Path) -> None:
    git(bare, "branch", "taken", "main")
    body = task(_WORK, bare, delivery={"mode": "branch", "targetBranch": "taken"})
    found = finished(api, order(api, body))
    assert found["status"] == "failed"
    assert "'taken' is on the remote already" in found["error"]
    answer = api.post(f"/sessions/{found['id']}/deliver", json={"mode": "branch", "branch": "free"})
    assert answer.status_code == 200, answer.text
    assert git(bare, "show", "free:new.txt") == "hello"
    shown = api.get(f"/tasks/{found['id']}").json()
    assert (shown["status"], shown["delivery"]["branch"]) == ("failed", "free")
    assert api.get(f"/sessions/{found['id']}").json()["delivery"]["branch"] == "free"
    assert len(events(api, found["id"], "delivery.completed")) == 1


def test_a_pull_request_goes_to_the_default_branch_of_the_remote(shop: Shop) -> None:
    repo = {"url": f"{shop.url}/team/project.git", "credential": {"token": TOKEN}}
    session = new_session(shop.api, shop.bare, repo=repo)
    say(shop.api, session, _WORK)
    wanted = {"mode": "pr", "forge": "github", "apiUrl": f"{shop.url}/github"}
    answer = shop.api.post(f"/sessions/{session}/deliver", json=wanted)
    assert (answer.status_code, answer.json().get("target")) == (200, "main"), answer.text
    assert [pull["target"] for pull in shop.state.pulls] == ["main"]


def test_a_pull_request_that_could_never_be_made_is_refused_with_the_order(shop: Shop) -> None:
    def refusal(body: dict[str, Any], field: str) -> str:
        answer = shop.api.post("/tasks", json=body)
        assert_problem(answer, "invalid_request", field="delivery")
        assert list(answer.json()["errors"]) == [field]
        return str(answer.json()["detail"])

    without_token = shop.task(_WORK, mode="pr", forge="github")
    del without_token["repo"]["credential"]
    assert "needs a token for the forge. Give one" in refusal(without_token, "delivery.credential")
    assert "Name github, gitlab or gitea" in refusal(shop.task(_WORK, mode="pr"), "delivery.forge")
    elsewhere = shop.task(_WORK, mode="pr", forge="github", apiUrl="https://8.8.8.8/api")
    assert "8.8.8.8" in refusal(elsewhere, "delivery.apiUrl")
    refusal(shop.task(_WORK, mode="branch", branch="../up"), "delivery.branch")
    assert shop.api.get("/tasks").json()["total"] == 0


def test_a_session_without_changes_has_nothing_to_deliver(api: httpx.Client, repository: Path) -> None:
    before = tree_hash(repository)
    session = new_session(api, repository)
    assert_problem(api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}), "nothing_to_deliver")
    assert_problem(api.post(f"/sessions/{session}/deliver", json={"mode": "mail"}), "invalid_request", field="mode")
    say(api, session, "mock: write new.txt hello")
    bad = api.post(f"/sessions/{session}/deliver", json={"mode": "branch", "branch": "../up"})
    assert_problem(bad, "invalid_request", field="branch")
    answer = api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}).json()
    assert len(api.get(answer["url"].removeprefix("/api/v1")).content) == answer["size"]
    assert tree_hash(repository) == before


def test_a_delivery_waits_for_no_turn(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    api.post(f"/sessions/{session}/messages", json={"message": "mock: wait 60"})
    assert_problem(api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}), "session_busy")
    api.delete(f"/sessions/{session}")


@pytest.mark.parametrize(("method", "path"), [("DELETE", ""), ("POST", "/cancel")])
def test_a_delivery_that_ends_with_its_session_says_so(shop: Shop, tmp_path: Path, method: str, path: str) -> None:
    started = tmp_path / "push-has-begun"
    hook = shop.bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch '{started}'\nwhile [ -e '{started}' ]; do sleep 0.1; done\n")
    hook.chmod(0o755)
    session = new_session(shop.api, shop.bare)
    say(shop.api, session, _WORK)
    with ThreadPoolExecutor() as threads:
        delivery = threads.submit(shop.api.post, f"/sessions/{session}/deliver", json={"mode": "branch"})
        wait_until(started.exists, what="the push has begun")
        shop.api.request(method, f"/sessions/{session}{path}").raise_for_status()
        problem = assert_problem(delivery.result(), "invalid_transition")
    started.unlink()
    assert "being ended" in problem["detail"]
    assert "Traceback" not in shop.server.stderr.read_text()
