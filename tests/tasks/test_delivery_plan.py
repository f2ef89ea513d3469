"""What a delivery would be is shown before it is done, and a local checkout gets the result without losing anything."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.forge import TOKEN, State, running_forge
from tests.support.http_helpers import assert_problem
from tests.support.ordering import events, new_session, say, task_server
from tests.support.patience import wait_until
from tests.support.places import git, make_forged
from tests.support.serving import RunningServer

_WORK = "mock: write new.txt hello\\n"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, RunningServer, str, State, Path]]:
    """A forge with a repository, and a server that may use both it and folders below one."""
    place = tmp_path_factory.mktemp("shop")
    bare = make_forged(place)
    flags = ("--repository-protocol", "http", "--repository-host", "127.0.0.1", "--pull-request-look-seconds", "0")
    with running_forge(bare.parents[1]) as (url, state), task_server(place / "state", place, *flags) as (server, api):
        yield api, server, url, state, bare
        assert state.faults == []


@pytest.fixture
def checkout(shop: tuple[httpx.Client, RunningServer, str, State, Path], request: pytest.FixtureRequest) -> Path:
    """A checkout of the repository as a person has it."""
    bare = shop[-1]
    place = bare.parents[2] / "checkouts" / str(request.node.name)
    place.parent.mkdir(exist_ok=True)
    git(bare, "clone", "-q", str(bare), str(place))
    return place


def _plan(api: httpx.Client, session: str) -> dict[str, Any]:
    answer = api.get(f"/sessions/{session}/delivery")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _ways(plan: dict[str, Any]) -> dict[str, str | None]:
    return {way["mode"]: way.get("whyNot") for way in plan["ways"]}


def _deliver(api: httpx.Client, session: str, **wanted: Any) -> dict[str, Any]:
    answer = api.post(f"/sessions/{session}/deliver", json=wanted)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_plan_shows_what_a_pull_request_would_be_and_it_becomes_that(
    shop: tuple[httpx.Client, RunningServer, str, State, Path],
) -> None:
    api, _, url, state, bare = shop
    repo = {"url": f"{url}/team/project.git", "credential": {"token": TOKEN}}
    session = new_session(api, bare, repo=repo, title="Add a discount to the cart, please, for everybody")
    assert (_plan(api, session)["hasNews"], _plan(api, session)["filesChanged"]) == (False, 0)
    say(api, session, _WORK, "mock: say I added a discount.")
    plan = _plan(api, session)
    assert (plan["branch"], plan["target"], plan["branches"]) == ("ostler/add-a-discount-to-the", "main", ["main"])
    assert plan["title"] == "Add a discount to the cart, please, for everybody"
    assert plan["body"] == f"I added a discount.\n\nMade by mock in session {session}."
    assert (plan["filesChanged"], plan["added"], plan["hasNews"], plan["mode"]) == (1, 1, True, "branch")
    assert "Name github, gitlab or gitea" in str(_ways(plan)["pr"])
    assert "not made from a folder" in str(_ways(plan)["local"])
    assert (_ways(plan)["branch"], _ways(plan)["patch"]) == (None, None)

    done = _deliver(api, session, mode="pr", forge="github", apiUrl=f"{url}/github", draft=True)
    assert (done["branch"], done["target"], done["number"]) == (plan["branch"], "main", len(state.pulls))
    assert state.pulls[-1]["body"] == plan["body"]
    after = _plan(api, session)
    assert (after["mode"], after["branch"], after["hasNews"], _ways(after)["pr"]) == ("pr", plan["branch"], False, None)
    assert api.get(f"/sessions/{session}").json()["delivery"].get("outdated", False) is False

    say(api, session, "mock: write more.txt more")
    api.patch(f"/sessions/{session}", json={"title": "Another name"})
    assert _plan(api, session)["hasNews"] is True
    assert api.get(f"/sessions/{session}").json()["delivery"]["outdated"] is True
    again = _deliver(api, session)  # the forge and its address are remembered, and the branch is the same
    assert (again["mode"], again["number"], again["branch"]) == ("pr", done["number"], done["branch"])
    assert again["created"] is False
    assert git(bare, "show", f"{done['branch']}:more.txt") == "more"
    assert TOKEN not in api.get(f"/sessions/{session}/delivery").text


def test_a_token_that_was_given_once_is_remembered_and_never_shown(
    shop: tuple[httpx.Client, RunningServer, str, State, Path], checkout: Path
) -> None:
    api, server, url, _, bare = shop
    session = new_session(api, checkout)
    say(api, session, _WORK)
    plan = _plan(api, session)
    assert (plan["folder"], plan["mode"]) == (str(checkout), "local")
    assert "needs a token for the forge. Give one" in str(_ways(plan)["pr"])
    wanted = {"mode": "pr", "credential": {"token": "tok-wrong-1"}, "forge": "github"}
    refused = api.post(f"/sessions/{session}/deliver", json=wanted)
    assert refused.status_code == 422, refused.text
    assert "needs a token" in str(_ways(_plan(api, session))["pr"])  # what did not work is not remembered
    assert "tok-wrong" not in server.stderr.read_text()
    assert bare.exists()
    assert url


def test_a_name_that_the_remote_has_gets_a_number(
    shop: tuple[httpx.Client, RunningServer, str, State, Path],
) -> None:
    api, _, url, _, bare = shop
    repo = {"url": f"{url}/team/project.git", "credential": {"token": TOKEN}}
    git(bare, "branch", "ostler/mend-it", "main")
    session = new_session(api, bare, repo=repo, title="Mend it.")
    say(api, session, _WORK)
    assert _plan(api, session)["branch"] == "ostler/mend-it-2"
    assert _deliver(api, session, mode="branch")["branch"] == "ostler/mend-it-2"
    before = git(bare, "rev-parse", "main")
    git(bare, "branch", "-f", "main", "ostler/mend-it-2")
    again = _plan(api, session)
    git(bare, "branch", "-f", "main", before)
    assert (again["branch"], again["behind"]) == ("ostler/mend-it-2", True)


def test_a_checkout_gets_the_result_and_then_what_is_new(
    shop: tuple[httpx.Client, RunningServer, str, State, Path], checkout: Path
) -> None:
    api = shop[0]
    (checkout / "mine.txt").write_text("mine\n")
    (checkout / ".git" / "hooks" / "post-applypatch").write_text("#!/bin/sh\ntouch ../hook-was-run\n")
    session = new_session(api, checkout)
    say(api, session, _WORK, "mock: write README.md Hello\\n\\nThis is another project.\\n")
    done = _deliver(api, session)
    assert (done["mode"], done["url"]) == ("local", str(checkout))
    assert git(checkout, "status", "--porcelain").split("\n") == ["M README.md", "?? mine.txt", "?? new.txt"]
    assert _deliver(api, session)["size"] == 0
    say(api, session, "mock: write new.txt changed")
    assert _plan(api, session)["hasNews"] is True
    assert _deliver(api, session)["size"] > 0
    assert (checkout / "new.txt").read_text() == "changed"
    assert (checkout / "mine.txt").read_text() == "mine\n"
    git(checkout, "checkout", "-q", "README.md")
    (checkout / "new.txt").unlink()
    _deliver(api, session)  # taken back there, so all of it is brought again
    assert (checkout / "new.txt").read_text() == "changed"
    assert "another project" in (checkout / "README.md").read_text()
    assert [each["data"]["mode"] for each in events(api, session, "delivery.completed")] == ["local"] * 4


def test_changes_of_people_in_a_checkout_are_never_overwritten(
    shop: tuple[httpx.Client, RunningServer, str, State, Path], checkout: Path
) -> None:
    api = shop[0]
    session = new_session(api, checkout)
    say(api, session, _WORK, "mock: write README.md all new", "mock: write src/main.py print(3)")
    (checkout / "README.md").write_text("My own words\n")
    (checkout / "new.txt").write_text("my own file\n")
    before = subprocess.run(["git", "-C", str(checkout), "status", "--porcelain"], capture_output=True, check=True)
    refused = api.post(f"/sessions/{session}/deliver", json={"mode": "local"})
    problem = assert_problem(refused, "delivery_conflict")
    assert "README.md" in problem["detail"]
    assert "new.txt" in problem["detail"]
    assert "main.py" not in problem["detail"]
    after = subprocess.run(["git", "-C", str(checkout), "status", "--porcelain"], capture_output=True, check=True)
    assert (after.stdout, (checkout / "new.txt").read_text()) == (before.stdout, "my own file\n")
    assert "delivery" not in api.get(f"/sessions/{session}").json()


def test_a_folder_without_git_gets_the_result_too(
    shop: tuple[httpx.Client, RunningServer, str, State, Path],
) -> None:
    api, *_, bare = shop
    folder = bare.parents[2] / "plain"
    folder.mkdir()
    (folder / "notes.md").write_text("one\ntwo\n")
    session = new_session(api, folder, repo={"mode": "folder", "path": str(folder)})
    say(api, session, "mock: write notes.md one\\nthree\\n")
    plan = _plan(api, session)
    assert plan["mode"] == "local"
    assert "git repository" in str(_ways(plan)["pr"])
    _deliver(api, session)
    assert (folder / "notes.md").read_text() == "one\nthree\n"


def test_what_is_not_a_checkout_gets_nothing(shop: tuple[httpx.Client, RunningServer, str, State, Path]) -> None:
    api, *_, bare = shop
    session = new_session(api, bare)
    say(api, session, _WORK)
    assert "only branches" in str(_ways(_plan(api, session))["local"])
    refused = api.post(f"/sessions/{session}/deliver", json={"mode": "local"})
    problem = assert_problem(refused, "unprocessable", field="mode")
    assert "only branches" in problem["errors"]["mode"][0]


def test_a_patch_is_left_when_the_repository_is_gone(
    shop: tuple[httpx.Client, RunningServer, str, State, Path], checkout: Path
) -> None:
    api = shop[0]
    session = new_session(api, checkout)
    say(api, session, _WORK)
    checkout.rename(checkout.with_name("moved-away"))
    plan = _plan(api, session)
    assert (plan["mode"], _ways(plan)["patch"]) == ("patch", None)
    assert "there is no such folder" in str(_ways(plan)["local"])
    assert "there is no such folder" in plan["problem"]
    refused = api.post(f"/sessions/{session}/deliver", json={"mode": "branch"})
    assert "there is no such folder" in assert_problem(refused, "repository_refused")["detail"]
    assert _deliver(api, session)["mode"] == "patch"


@pytest.mark.parametrize(
    ("wanted", "code", "field", "value"),
    [
        ({"mode": "branch", "branch": "HEAD"}, "invalid_request", "branch", "HEAD"),
        (
            {"mode": "pr", "forge": "gitea", "credential": {"token": "x"}, "apiUrl": "file:///etc/hosts"},
            "invalid_request",
            "apiUrl",
            "file://",
        ),
        ({"mode": "branch", "apiUrl": "gopher"}, "invalid_request", "apiUrl", "gopher"),
        ({"mode": "branch", "target": "--upload-pack=x"}, "invalid_request", "target", "--upload-pack=x"),
        ({"mode": "patch", "branch": "x" * 500}, "invalid_request", "branch", "x" * 80),
    ],
)
def test_a_value_that_cannot_be_is_named_as_the_client_wrote_it(
    shop: tuple[httpx.Client, RunningServer, str, State, Path],
    wanted: dict[str, Any],
    code: str,
    field: str,
    value: str,
) -> None:
    api, *_, bare = shop
    session = new_session(api, bare)
    say(api, session, _WORK)
    problem = assert_problem(api.post(f"/sessions/{session}/deliver", json=wanted), code)
    assert (list(problem["errors"]), f"'{value}'" in problem["detail"]) == ([field], True), problem


def test_whoever_asks_while_a_push_hangs_is_not_left_waiting(
    shop: tuple[httpx.Client, RunningServer, str, State, Path],
) -> None:
    api, *_, bare = shop
    session = new_session(api, bare)
    say(api, session, _WORK)
    hook, hangs = bare / "hooks" / "pre-receive", bare / "hangs"
    hook.write_text(f"#!/bin/sh\ntouch {hangs}\nwhile [ -e {hangs} ]; do sleep 0.2; done\n")
    hook.chmod(0o755)
    with ThreadPoolExecutor() as pool:
        pushed = pool.submit(api.post, f"/sessions/{session}/deliver", json={"mode": "branch"}, timeout=120)
        try:
            wait_until(hangs.exists, what="the push hangs")
            planned = pool.submit(api.get, f"/sessions/{session}/delivery")
            changed = api.patch(f"/sessions/{session}", json={"model": "mock-small"})
            for answer in (changed, planned.result()):
                assert "Try again later" in assert_problem(answer, "invalid_transition")["detail"]
        finally:
            hook.unlink()
            hangs.unlink()
        assert pushed.result().status_code == 200
    assert api.patch(f"/sessions/{session}", json={"model": "mock-small"}).status_code == 200


def test_lines_and_files_are_applied_one_after_the_other_and_the_rest_follows(
    shop: tuple[httpx.Client, RunningServer, str, State, Path],
) -> None:
    api, *_, bare = shop
    folder = bare.parents[2] / "piecewise"
    folder.mkdir()
    (folder / "list.txt").write_text("".join(f"line {at}\n" for at in range(1, 41)))
    (folder / "mine.txt").write_text("mine\n")
    session = new_session(api, folder, repo={"mode": "folder", "path": str(folder)})
    edits = ("mock: edit list.txt line 3\\n -> three\\n", "mock: edit list.txt line 30\\n -> thirty\\n")
    say(api, session, *edits, "mock: write a.txt a", "mock: write mine.txt theirs")

    def apply(**wanted: object) -> list[str]:
        answer = api.post(f"/sessions/{session}/apply", json=wanted)
        assert answer.is_success, answer.text
        found: list[str] = answer.json()["paths"]
        return found

    assert apply(paths=["list.txt"], lines=[28, 33]) == ["list.txt"]
    text = (folder / "list.txt").read_text()
    assert ("thirty" in text, "three" in text, (folder / "a.txt").exists()) == (True, False, False)
    assert_problem(
        api.post(f"/sessions/{session}/apply", json={"paths": ["list.txt"], "lines": [28, 33]}), "unprocessable"
    )
    assert (apply(paths=["a.txt"]), apply(paths=["a.txt"])) == (["a.txt"], [])
    (folder / "mine.txt").write_text("mine, changed\n")
    refused = api.post(f"/sessions/{session}/apply", json={"paths": ["mine.txt"]})
    assert "mine.txt" in assert_problem(refused, "delivery_conflict")["detail"]
    (folder / "mine.txt").write_text("mine\n")
    _deliver(api, session, mode="local")
    text = (folder / "list.txt").read_text()
    assert ("thirty" in text, "three\n" in text, (folder / "mine.txt").read_text()) == (True, True, "theirs")
