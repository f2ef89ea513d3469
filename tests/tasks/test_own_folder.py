"""A session in a git checkout of a person's own: compared with its head, and nothing of it is touched."""

from pathlib import Path

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.ordering import Json, say, settled
from tests.support.patience import wait_until
from tests.support.places import git, make_repository


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout with work of its person that is not committed."""
    return make_repository(tmp_path / "project")


def own_session(api: httpx.Client, folder: Path, **more: object) -> str:
    answer = api.post("/sessions", json={"agent": "mock", "cwd": str(folder), "permissionMode": "bypass", **more})
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    assert (found["status"], found["cwd"]) == ("running", str(folder))
    settled(api, str(found["id"]), turn=0)
    return str(found["id"])


def changed(api: httpx.Client, session: str, **asked: object) -> dict[str, str]:
    found = api.get(f"/sessions/{session}/diff", params=asked)  # type: ignore[arg-type]  # numbers and words
    assert found.is_success, found.text
    return {each["path"]: each["status"] for each in found.json()["files"]}


def standing(project: Path) -> tuple[str, ...]:
    """What git itself knows of a checkout: its head, branches, stash, staged files and configuration."""
    asked = (["rev-parse", "HEAD"], ["for-each-ref"], ["stash", "list"], ["ls-files", "--stage"], ["config", "--list"])
    return tuple(git(project, *words) for words in asked)


def test_a_checkout_of_ones_own_has_review_comments_and_a_diff_for_each_turn(api: httpx.Client, project: Path) -> None:
    (project / "README.md").write_text("Mine, before\n")
    (project / "staged.txt").write_text("staged\n")
    git(project, "add", "staged.txt")
    before = standing(project)
    session = own_session(api, project)
    say(api, session, "mock: write src/new.py one", "mock: run echo noise > x.log")
    (project / "beside.txt").write_text("mine, beside\n")
    say(api, session, "mock: edit src/main.py one -> 1")
    assert changed(api, session, turn=1) == {"src/new.py": "added"}
    assert changed(api, session, turn=2) == {"src/main.py": "modified"}
    assert changed(api, session) == {
        "README.md": "modified",
        "beside.txt": "added",
        "src/main.py": "modified",
        "src/new.py": "added",
        "staged.txt": "added",
    }
    comment = {"path": "src/main.py", "startLine": 1, "text": "Why?"}
    assert api.post(f"/sessions/{session}/comments", json=comment).status_code == 201
    sent = api.post(f"/sessions/{session}/comments/send")
    assert sent.is_success, sent.text
    settled(api, session, turn=3)
    assert "+print('1')" in api.get(f"/sessions/{session}/patch", params={"turn": 2}).text
    assert standing(project) == before
    assert api.delete(f"/sessions/{session}").is_success
    assert (project / "src" / "new.py").read_text() == "one"


def test_files_of_ones_own_are_never_made_what_they_were_as_a_whole(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: write a.txt a")
    first = api.get(f"/sessions/{session}/snapshots").json()["snapshots"][0]["snapshotId"]
    for verb, body in (("rewind", {"turn": 0}), (f"snapshots/{first}/restore", None), ("fork", None)):
        problem = assert_problem(api.post(f"/sessions/{session}/{verb}", json=body), "unprocessable")
        assert "Work on a copy instead" in problem["detail"]
    assert (project / "a.txt").read_text() == "a"


def test_a_folder_without_git_says_what_is_missing(api: httpx.Client, tmp_path: Path) -> None:
    session = api.post("/sessions", json={"agent": "mock", "cwd": str(tmp_path)}).json()["id"]
    problem = assert_problem(api.get(f"/sessions/{session}/diff"), "no_workspace")
    assert "Run `git init` there" in problem["detail"]
    refused = api.post("/sessions", json={"agent": "mock", "repo": {"mode": "checkout", "path": str(tmp_path)}})
    assert "it is not below a git checkout" in assert_problem(refused, "unprocessable")["detail"]


def test_a_turn_is_taken_back_and_what_a_person_changed_stays(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    (project / "README.md").write_text("Mine\n")
    work = ("mock: edit src/old.py line 3 -> three", "mock: write src/new.py one", "mock: run echo x > made.txt")
    say(api, session, *work)
    (project / "src" / "old.py").write_text((project / "src" / "old.py").read_text().replace("line 30", "mine 30"))
    undone = api.post(f"/sessions/{session}/undo", json={"turn": 1})
    assert undone.is_success, undone.text
    assert undone.json()["paths"] == ["src/new.py", "src/old.py"]
    assert undone.json()["left"] == ["made.txt"]
    assert (project / "README.md").read_text() == "Mine\n"
    assert (project / "made.txt").exists()
    assert not (project / "src" / "new.py").exists()
    assert git(project, "diff", "--stat", "src/old.py").startswith("src/old.py | 2 +-")
    again = api.post(f"/sessions/{session}/undo", json={"turn": 1, "paths": ["made.txt"]})
    assert (again.json()["paths"], (project / "made.txt").exists()) == (["made.txt"], False)


def test_lines_that_were_changed_since_are_not_taken_back(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: edit src/main.py one -> 1", "mock: write a.txt a")
    (project / "src" / "main.py").write_text("print('mine')\n")
    refused = api.post(f"/sessions/{session}/undo", json={"turn": 1})
    assert "src/main.py" in assert_problem(refused, "unprocessable", field="paths")["detail"]
    assert (project / "a.txt").exists()


def test_a_turn_is_taken_back_when_the_session_is_over(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: edit src/main.py one -> 1")
    assert api.post(f"/sessions/{session}/stop").is_success
    wait_until(lambda: api.get(f"/sessions/{session}").json()["status"] == "stopped", "it is over")
    undone = api.post(f"/sessions/{session}/undo", json={"turn": 1})
    assert undone.is_success, undone.text
    assert undone.json()["paths"] == ["src/main.py"]
    assert "one" in (project / "src" / "main.py").read_text()
    again = api.post(f"/sessions/{session}/undo", json={"turn": 1})
    assert again.json()["paths"] == [], again.text
