"""What becomes of a pull request on its forge is seen, and it is merged when the forge allows it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.forge import TOKEN, State, running_forge
from tests.support.http_helpers import assert_problem
from tests.support.ordering import done, events, new_session, say, task, task_server
from tests.support.patience import wait_until
from tests.support.places import make_forged


class Shop:
    """A forge with a repository, and a server that may use it."""

    def __init__(self, api: httpx.Client, url: str, state: State, bare: Path) -> None:
        self.api, self.url, self.state, self.bare = api, url, state, bare

    def delivered(self, forge: str, **more: Any) -> str:
        """A session whose work is a pull request."""
        repo = {"url": f"{self.url}/team/project.git", "credential": {"token": TOKEN}}
        session = new_session(self.api, self.bare, repo=repo, title=f"For {forge}")
        say(self.api, session, "mock: write new.txt hello\\n")
        wanted = {"mode": "pr", "forge": forge, "apiUrl": f"{self.url}/{forge}", **more}
        answer = self.api.post(f"/sessions/{session}/deliver", json=wanted)
        assert answer.status_code == 200, answer.text
        return session

    def ordered(self, forge: str) -> str:
        """A task whose result is a pull request, and that is over."""
        repo = {"mode": "git", "url": f"{self.url}/team/project.git", "credential": {"token": TOKEN}}
        wanted = {"mode": "pr", "forge": forge, "apiUrl": f"{self.url}/{forge}"}
        body = task("mock: write task.txt hello\\n", self.bare, repo=repo, delivery=wanted)
        return str(done(self.api, body)["id"])

    def shown(self, session: str) -> dict[str, Any]:
        """The pull request as lists show it, without a look at the forge."""
        found: dict[str, Any] = self.api.get(f"/sessions/{session}").json()["delivery"]["pullRequest"]
        return found

    def seen(self, session: str) -> dict[str, Any]:
        """The pull request as it is shown after a look at the forge."""
        answer = self.api.get(f"/sessions/{session}/delivery")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["delivery"]["pullRequest"]
        assert self.api.get(f"/sessions/{session}").json()["delivery"]["pullRequest"] == found
        return found


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    place = tmp_path_factory.mktemp("shop")
    bare = make_forged(place)
    flags = ("--repository-protocol", "http", "--repository-host", "127.0.0.1", "--pull-request-look-seconds", "0")
    with running_forge(bare.parents[1]) as (url, state), task_server(place / "state", place, *flags) as (_, api):
        yield Shop(api, url, state, bare)
        assert state.faults == []


_CHECKED: list[tuple[str, dict[str, Any], str | None]] = [
    ("github", {"checks": {"runs": ["success", "skipped"], "status": "success"}}, "passing"),
    ("github", {"checks": {"runs": ["success", None]}}, "pending"),
    ("github", {"checks": {"runs": ["success"], "status": "failure"}}, "failing"),
    ("github", {}, None),
    ("gitlab", {"pipeline": "failed"}, "failing"),
    ("gitlab", {"pipeline": "running"}, "pending"),
    ("gitlab", {}, None),
    ("gitea", {"checks": {"status": "success"}}, "passing"),
    ("gitea", {}, None),
]


@pytest.mark.parametrize("forge", ["github", "gitlab", "gitea"])
def test_what_became_of_a_pull_request_is_seen_and_written_down_once(shop: Shop, forge: str) -> None:
    session = shop.delivered(forge)
    shown = shop.api.get(f"/sessions/{session}").json()["delivery"]["pullRequest"]
    assert (shown["state"], shown["target"], shown["branch"]) == ("open", "main", shop.state.pulls[-1]["source"])
    for _, told, checks in [each for each in _CHECKED if each[0] == forge]:
        for name in ("checks", "pipeline"):
            shop.state.pulls[-1].pop(name, None)
        shop.state.pulls[-1].update(told)
        assert (shop.seen(session).get("checks"), shop.seen(session)["state"]) == (checks, "open")
    before = len(events(shop.api, session, "delivery.updated"))
    shop.seen(session)
    assert len(events(shop.api, session, "delivery.updated")) == before  # nothing is new
    shop.state.pulls[-1]["state"] = "closed"
    assert shop.seen(session)["state"] == "closed"
    assert "actor" not in events(shop.api, session, "delivery.updated")[-1]  # nobody here did it


@pytest.mark.parametrize("forge", ["github", "gitlab", "gitea"])
def test_a_pull_request_is_merged_when_the_forge_allows_it(shop: Shop, forge: str) -> None:
    session = shop.delivered(forge)
    pull = shop.state.pulls[-1]
    pull["blocked"] = "At least 1 approving review is required"
    assert shop.seen(session)["mergeable"] is False
    problem = assert_problem(shop.api.post(f"/sessions/{session}/merge"), "merge_refused")
    assert "approving review" in problem["detail"]
    pull["blocked"] = ""
    say(shop.api, session, "mock: write more.txt more")
    outdated = shop.api.post(f"/sessions/{session}/merge")
    assert (outdated.status_code, "newest changes" in outdated.text) == (422, True), outdated.text
    assert shop.api.post(f"/sessions/{session}/deliver").json()["number"] == pull["number"]
    merged = shop.api.post(f"/sessions/{session}/merge")
    assert (merged.status_code, merged.json()["delivery"]["pullRequest"]["state"]) == (200, "merged"), merged.text
    assert pull["state"] == "merged"
    again = shop.api.post(f"/sessions/{session}/merge")
    assert again.json()["delivery"]["pullRequest"]["state"] == "merged"


@pytest.mark.parametrize(("forge", "mark"), [("github", ""), ("gitlab", "Draft: "), ("gitea", "WIP: ")])
def test_an_open_pull_request_keeps_its_words_unless_somebody_gives_new_ones(shop: Shop, forge: str, mark: str) -> None:
    session = shop.delivered(forge)
    pull = shop.state.pulls[-1]
    pull.update(draft=True, title=f"{mark}Edited there", body="By a person")
    say(shop.api, session, "mock: write more.txt more")
    assert shop.api.post(f"/sessions/{session}/deliver").json()["created"] is False
    assert (pull["title"], pull["body"]) == (f"{mark}Edited there", "By a person")
    assert shop.api.post(f"/sessions/{session}/deliver", json={"title": "Better words"}).status_code == 200
    assert (pull["title"], pull["body"]) == (f"{mark}Better words", "By a person")
    assert shop.api.post(f"/sessions/{session}/deliver", json={"body": "What it does."}).status_code == 200
    assert (pull["title"], pull["body"]) == (f"{mark}Better words", "What it does.")


def test_a_draft_is_one_and_a_forge_that_is_away_changes_nothing(shop: Shop) -> None:
    session = shop.delivered("github", draft=True)
    assert shop.seen(session)["state"] == "draft"
    shop.state.failures += ["api 401"]
    away = shop.seen(session)
    assert (away["state"], "401" in away["unseenBecause"]) == ("draft", True)
    shop.state.failures += ["api 401"]
    assert shop.seen(session) == away  # it is written down once, with the first time
    shop.state.failures.clear()
    assert "unseenSince" not in shop.seen(session)
    assert TOKEN not in "".join(str(each) for each in events(shop.api, session))


def test_what_becomes_of_a_pull_request_is_seen_while_nobody_asks(tmp_path: Path) -> None:
    bare = make_forged(tmp_path)
    flags = ("--repository-protocol", "http", "--repository-host", "127.0.0.1", "--pull-request-look-seconds", "0.2")
    with running_forge(bare.parents[1]) as (url, state):
        with task_server(tmp_path / "state", tmp_path, *flags) as (_, api):
            shop = Shop(api, url, state, bare)
            session, archived = shop.delivered("github"), shop.delivered("gitea")
            pull, hidden = state.pulls[-2:]
            pull["checks"] = {"runs": ["failure"]}
            wait_until(lambda: shop.shown(session).get("checks") == "failing", what="the checks")
            state.away.append("/github/")
            wait_until(lambda: "unseenSince" in shop.shown(session), what="that the forge is away")
            assert shop.shown(session)["checks"] == "failing"
            state.away.clear()
            wait_until(lambda: "unseenSince" not in shop.shown(session), what="that the forge is back")
            assert api.patch(f"/sessions/{archived}", json={"archived": True}).status_code == 200
        pull["state"] = hidden["state"] = "merged"
        with task_server(tmp_path / "state", tmp_path, *flags) as (_, api):
            shop = Shop(api, url, state, bare)
            wait_until(lambda: shop.shown(session)["state"] == "merged", what="that it is merged")
            assert shop.shown(archived)["state"] == "open"  # out of the way, so nobody looks
            done = Shop(api, url, state, bare).ordered("github")
            state.pulls[-1]["state"] = "closed"
            wait_until(lambda: shop.shown(done)["state"] == "closed", what="that it is closed")


def test_only_a_pull_request_can_be_merged(shop: Shop) -> None:
    session = new_session(shop.api, shop.bare)
    refused = shop.api.post(f"/sessions/{session}/merge")
    assert (refused.status_code, "Deliver one first" in refused.text) == (422, True), refused.text
