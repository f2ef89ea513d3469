"""A setup command is run once for a repository, a commit and a command; the next ones get what it made."""

from pathlib import Path

import httpx
import pytest

from tests.support.ordering import done, events, finished, new_session, order, say, task
from tests.support.places import git, make_repository


def _task(project: Path, setup: str) -> dict[str, object]:
    return task("mock: run cat build/made.txt", project, workspace={"setup": setup})


def _made(api: httpx.Client, session: str) -> str:
    return str(api.get(f"/sessions/{session}/files/content", params={"path": "build/made.txt"}).text)


def _how(api: httpx.Client, session: str) -> str:
    return str(events(api, session, "workspace.created")[0]["data"]["setup"])


def test_the_result_of_a_setup_is_used_again(api: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("setup")
    project = make_repository(folder / "project")
    setup = f"mkdir -p build; echo x >> {folder}/count; wc -l < {folder}/count | tr -d ' ' > build/made.txt; echo done"
    first = done(api, _task(project, setup))["id"]
    second = done(api, _task(project, setup))["id"]
    assert (_how(api, first), _how(api, second)) == ("run", "cached")
    assert (_made(api, first), _made(api, second)) == ("1\n", "1\n")
    assert any(line["message"] == "Setup: done" for line in api.get(f"/sessions/{first}/logs").json()["logs"])
    assert api.get(f"/sessions/{second}/diff").json()["files"] == []
    other = done(api, _task(project, f"{setup}; true"))["id"]
    assert (_how(api, other), _made(api, other)) == ("run", "2\n")
    git(project, "commit", "-q", "--allow-empty", "-m", "two")
    newer = done(api, _task(project, setup))["id"]
    assert (_how(api, newer), _made(api, newer)) == ("run", "3\n")
    api.delete(f"/sessions/{newer}")
    again = done(api, _task(project, setup))["id"]
    assert (_how(api, again), _made(api, again)) == ("cached", "3\n")


def test_several_tasks_at_once_share_one_setup(api: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("setup")
    project = make_repository(folder / "project")
    setup = f"mkdir -p build; echo x >> {folder}/count; wc -l < {folder}/count | tr -d ' ' > build/made.txt"
    sessions = [order(api, _task(project, setup)) for _ in range(3)]
    assert [finished(api, session)["status"] for session in sessions] == ["completed"] * 3
    assert sorted(_how(api, session) for session in sessions) == ["cached", "cached", "run"]
    assert (folder / "count").read_text() == "x\n"


def test_a_setup_that_fails_fails_the_task_and_says_why(api: httpx.Client, repository: Path) -> None:
    found = finished(api, order(api, task("mock: say hi", repository, workspace={"setup": "echo no luck >&2; exit 3"})))
    assert found["status"] == "failed"
    assert found["error"] == "The setup command failed with code 3. Its last words: no luck"
    assert events(api, found["id"], "turn.started") == []


def test_a_setup_sees_no_variable_of_the_server(api: httpx.Client, repository: Path) -> None:
    setup = "mkdir -p build; env | cut -d= -f1 | sort | tr '\\n' ' ' > build/made.txt"
    session = done(api, task("mock: say hi", repository, workspace={"setup": setup}))["id"]
    own = {name for name in _made(api, session).split() if not name.startswith("XDG_")}  # they lead into its home
    assert own <= {
        "HOME",
        "PATH",
        "TMPDIR",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
        "LANG",
        "LC_CTYPE",
        "TZ",
        "TERM",
    }


_SETUP = "echo made > made.txt; echo made > both.txt; echo changed >> README.md; echo changed >> src/main.py; rm run.sh"
_WORK = ("mock: write new.txt new", "mock: run echo agent >> both.txt; echo agent >> src/main.py; rm made.txt")


@pytest.mark.parametrize("provider", ["overlay", "copy"])
def test_what_the_setup_made_is_not_delivered_as_the_agents_work(
    api: httpx.Client, tmp_path_factory: pytest.TempPathFactory, provider: str
) -> None:
    folder = tmp_path_factory.mktemp("setup")
    project = make_repository(folder / "project")
    bare = folder / "bare.git"
    git(project, "clone", "-q", "--bare", ".", str(bare))
    wish = {"snapshot_preference": [provider]}
    first, cached = (new_session(api, bare, setup=_SETUP, workspace=wish) for _ in range(2))
    assert (_how(api, first), _how(api, cached)) == ("run", "cached")
    for session in (first, cached):
        assert api.get(f"/sessions/{session}/diff").json()["files"] == []
        say(api, session, *_WORK)
        _check_delivered(api, session, bare, project, folder / session)
    fork = api.post(f"/sessions/{first}/fork").json()["id"]
    _check_delivered(api, fork, bare, project, folder / fork)
    api.post(f"/sessions/{first}/rewind", json={"turn": 0})
    assert api.get(f"/sessions/{first}/diff").json()["files"] == []
    refused = api.post(f"/sessions/{first}/deliver", json={"mode": "branch", "branch": "none"})
    assert refused.json()["code"] == "nothing_to_deliver"


def _check_delivered(api: httpx.Client, session: str, bare: Path, project: Path, clone: Path) -> None:
    diff = {file["path"]: file["status"] for file in api.get(f"/sessions/{session}/diff").json()["files"]}
    expected = {"both.txt": "modified", "made.txt": "deleted", "new.txt": "added", "src/main.py": "modified"}
    assert diff == expected
    delivered = api.post(f"/sessions/{session}/deliver", json={"mode": "branch", "branch": f"work/{session}"})
    assert delivered.is_success, delivered.text
    changed = git(bare, "diff", "--name-only", "main", f"work/{session}").split()
    assert changed == ["both.txt", "new.txt", "src/main.py"]
    git(project, "clone", "-q", str(bare), str(clone))
    git(clone, "apply", given=api.get(f"/sessions/{session}/patch").content)
    assert git(clone, "status", "--porcelain").split() == ["M", "src/main.py", "??", "both.txt", "??", "new.txt"]
    assert (clone / "both.txt").read_text() == "made\nagent\n"


def test_a_fork_keeps_whose_it_is_and_what_it_is_about(api: httpx.Client, repository: Path) -> None:
    body = task("mock: write a.txt one", repository, tenantId="acme", projectId="shop", labels={"team": "red"})
    session = done(api, {**body, "delivery": {"mode": "patch"}})["id"]
    fork = api.post(f"/sessions/{session}/fork").json()["id"]
    shown = api.get(f"/tasks/{fork}").json()
    assert (shown["tenantId"], shown["projectId"]) == ("acme", "shop")
    assert shown["task"] == {"prompt": "mock: write a.txt one", "labels": {"team": "red"}}
    say(api, fork, "mock: write b.txt two")
    assert api.get(f"/tasks/{fork}").json()["status"] == "running"
    assert events(api, fork, "delivery.completed") == []
