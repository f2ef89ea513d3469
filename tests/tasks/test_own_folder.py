"""A session in a git checkout of a person's own: compared with its head, and nothing of it is touched."""

import os
import shutil
from pathlib import Path

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.ordering import Json, say, settled
from tests.support.patience import wait_until
from tests.support.places import git, make_repository
from tests.support.serving import running_server

_WORK = pytest.mark.lane("work")


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


def own_folder_session(api: httpx.Client, folder: Path) -> str:
    """One in a folder that need not be a checkout."""
    return str(api.post("/sessions", json={"agent": "mock", "cwd": str(folder)}).json()["id"])


def changed(api: httpx.Client, session: str, **asked: object) -> dict[str, str]:
    found = api.get(f"/sessions/{session}/diff", params=asked)  # type: ignore[arg-type]  # numbers and words
    assert found.is_success, found.text
    return {each["path"]: each["status"] for each in found.json()["files"]}


def standing(project: Path) -> tuple[str, ...]:
    """What git itself knows of a checkout: its head, branches, stash, staged files and configuration."""
    asked = (["rev-parse", "HEAD"], ["for-each-ref"], ["stash", "list"], ["ls-files", "--stage"], ["config", "--list"])
    return tuple(git(project, *words) for words in asked)


@_WORK
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


@_WORK
def test_files_of_ones_own_are_never_made_what_they_were_as_a_whole(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: write a.txt a")
    first = api.get(f"/sessions/{session}/snapshots").json()["snapshots"][0]["snapshotId"]
    for verb, body in (("rewind", {"turn": 0}), (f"snapshots/{first}/restore", None), ("fork", None)):
        problem = assert_problem(api.post(f"/sessions/{session}/{verb}", json=body), "unprocessable")
        assert "Work on a copy instead" in problem["detail"]
    assert (project / "a.txt").read_text() == "a"


@_WORK
def test_a_folder_without_git_says_what_is_missing(api: httpx.Client, tmp_path: Path) -> None:
    session = api.post("/sessions", json={"agent": "mock", "cwd": str(tmp_path)}).json()["id"]
    problem = assert_problem(api.get(f"/sessions/{session}/diff"), "no_workspace")
    assert "Run `git init` there" in problem["detail"]
    refused = api.post("/sessions", json={"agent": "mock", "repo": {"mode": "checkout", "path": str(tmp_path)}})
    assert "it is not below a git checkout" in assert_problem(refused, "unprocessable")["detail"]


@_WORK
def test_a_folder_without_git_becomes_a_repository_and_the_next_session_has_a_diff(
    api: httpx.Client, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "big.log").write_text("log\n")
    session = api.post("/sessions", json={"agent": "mock", "cwd": str(folder)}).json()["id"]
    made = api.post(f"/sessions/{session}/git")
    assert made.status_code == 201, made.text
    assert {**made.json(), "commit": ""} == {"path": str(folder), "branch": "main", "commit": "", "files": 2}
    assert git(folder, "status", "--porcelain") == ""
    again = assert_problem(api.post(f"/sessions/{session}/git"), "unprocessable")
    assert "is in the git checkout" in again["detail"]
    (folder / ".git" / "refs" / "heads" / "main").unlink()  # as if it had been killed before the commit
    assert api.post(f"/sessions/{session}/git").json()["files"] == 2
    other = own_session(api, folder)
    say(api, other, "mock: write b.txt b")
    assert [file["path"] for file in api.get(f"/sessions/{other}/diff").json()["files"]] == ["b.txt"]
    alone = api.post("/sessions", json={"agent": "mock"}).json()["id"]
    assert "a folder that Ostler made" in assert_problem(api.post(f"/sessions/{alone}/git"), "unprocessable")["detail"]


@_WORK
def test_a_repository_that_somebody_began_runs_no_programs_and_brings_no_other_files(
    api: httpx.Client, tmp_path: Path
) -> None:
    above, folder = tmp_path / "home", tmp_path / "home" / "notes"
    folder.mkdir(parents=True)
    (above / "private.txt").write_text("private\n")
    (folder / "a.txt").write_text("a\n")
    session = own_folder_session(api, folder)

    def refused() -> str:
        detail = assert_problem(api.post(f"/sessions/{session}/git"), "unprocessable")["detail"]
        assert not (tmp_path / "was-run").exists()
        return str(detail)

    git(above, "init", "-q")
    assert f"there is a git repository without a commit already, {above}" in refused()
    assert git(above, "ls-files") == ""
    shutil.rmtree(above / ".git")
    git(folder, "init", "-q")
    (folder / ".gitattributes").write_text("* filter=odd\n")
    git(folder, "config", "filter.odd.clean", f"touch {tmp_path}/was-run; cat")
    assert "has settings of its own (filter.odd.clean)" in refused()
    git(folder, "config", "--remove-section", "filter.odd")
    git(folder, "config", "core.worktree", str(above))
    assert "cannot be used" in refused() or "core.worktree" in refused()
    git(folder, "config", "--unset", "core.worktree")
    assert api.post(f"/sessions/{session}/git").json()["files"] == 2


_MEDDLING = """#!/bin/sh
# as an agent at work could, at every moment that git is called
if [ -f {folder}/.git/HEAD ]; then
    {git} config --file {folder}/.git/config filter.odd.clean 'touch {mark}; cat'
    {git} config --file {folder}/.git/config core.fsmonitor 'touch {mark}'
    {git} config --file {folder}/.git/config core.hooksPath {hooks}
fi
exec {git} "$@"
"""


@_WORK
def test_nothing_runs_that_an_agent_configures_while_a_repository_is_made(tmp_path: Path) -> None:
    folder, hooks, mark = tmp_path / "notes", tmp_path / "hooks", tmp_path / "was-run"
    for each in (folder, hooks, tmp_path / "bin"):
        each.mkdir()
    (folder / "a.txt").write_text("a\n")
    (folder / ".gitattributes").write_text("* filter=odd\n")
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    program, real = tmp_path / "bin" / "git", shutil.which("git")
    text = _MEDDLING.format(folder=folder, hooks=hooks, mark=mark, git=real)
    path = os.pathsep.join([str(program.parent), os.environ["PATH"]])
    with (
        running_server(tmp_path / "state", "--repository-folder", str(tmp_path), env={"PATH": path}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        session = own_folder_session(api, folder)
        program.write_text(text)
        program.chmod(0o755)
        answer = api.post(f"/sessions/{session}/git")
    assert (answer.status_code, mark.exists()) == (201, False), answer.text
    assert "odd" in (folder / ".git" / "config").read_text()


@_WORK
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


@_WORK
def test_lines_that_were_changed_since_are_not_taken_back(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: edit src/main.py one -> 1", "mock: write a.txt a")
    (project / "src" / "main.py").write_text("print('mine')\n")
    refused = api.post(f"/sessions/{session}/undo", json={"turn": 1})
    assert "src/main.py" in assert_problem(refused, "unprocessable", field="paths")["detail"]
    assert (project / "a.txt").exists()


@_WORK
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


def committed(project: Path) -> tuple[str, str]:
    """What the last commit says, and which files it changed."""
    message = git(project, "log", "-1", "--format=%s")
    return message.strip(), git(project, "show", "--name-only", "--format=", "HEAD").strip()


def test_an_edit_is_reviewed_commented_undone_and_committed_and_what_the_person_did_stays_theirs(
    api: httpx.Client, project: Path
) -> None:
    (project / "README.md").write_text("Mine, not staged\n")
    (project / "staged.txt").write_text("mine, staged\n")
    git(project, "add", "staged.txt")
    session = own_session(api, project)
    during = "mock: run echo mine > during.txt"  # as a person would while the turn is under way
    say(api, session, "mock: edit src/main.py one -> 1", during, "mock: edit src/old.py line 3 -> three")
    comment = {"path": "src/main.py", "startLine": 1, "text": "Keep this one"}
    assert api.post(f"/sessions/{session}/comments", json=comment).status_code == 201
    assert api.post(f"/sessions/{session}/comments/send").is_success
    settled(api, session, turn=2)
    say(api, session, "mock: write src/wrong.py no")
    assert api.post(f"/sessions/{session}/undo", json={"turn": 3}).json()["paths"] == ["src/wrong.py"]
    (project / "src" / "old.py").write_text((project / "src" / "old.py").read_text().replace("line 30", "mine 30"))
    plan = api.get(f"/sessions/{session}/delivery").json()
    assert (plan["mode"], plan["paths"], plan["left"]) == (
        "commit",
        ["src/main.py", "src/old.py"],
        ["during.txt"],
    )
    done = api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "message": "Mend the numbers"})
    assert done.is_success, done.text
    assert done.json()["commit"] == git(project, "rev-parse", "HEAD").strip()
    assert committed(project) == ("Mend the numbers", "src/main.py\nsrc/old.py")
    status = git(project, "status", "--porcelain").splitlines()
    assert sorted(status) == [" M src/old.py", "?? during.txt", "A  staged.txt", "M README.md"]
    assert "mine 30" in git(project, "diff", "src/old.py")
    assert "three" not in git(project, "diff", "src/old.py")
    again = api.post(f"/sessions/{session}/deliver", json={"mode": "commit"})
    assert_problem(again, "nothing_to_deliver")


@_WORK
def test_later_turns_are_committed_on_what_was_committed_meanwhile(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    for number, edit in enumerate(("one -> 1", "1 -> 11"), start=1):
        say(api, session, f"mock: edit src/main.py {edit}")
        done = api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "title": f"Part {number}"})
        assert done.is_success, done.text
        assert committed(project) == (f"Part {number}", "src/main.py")
    (project / "mine.txt").write_text("mine\n")
    git(project, "add", "mine.txt")
    git(project, "commit", "-qm", "mine")
    say(api, session, "mock: write src/new.py new")
    assert api.post(f"/sessions/{session}/deliver", json={"mode": "commit"}).is_success
    assert committed(project)[1] == "src/new.py"
    assert git(project, "status", "--porcelain") == ""


@_WORK
def test_files_that_were_chosen_are_committed_and_others_are_named(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: write a.txt a", "mock: run echo b > b.txt")
    odd = api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "paths": ["b.txt", "README.md"]})
    assert "no turn of the agent changed README.md" in assert_problem(odd, "invalid_request", field="paths")["detail"]
    assert api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "paths": ["b.txt"]}).is_success
    assert committed(project)[1] == "b.txt"
    assert git(project, "status", "--porcelain").strip() == "?? a.txt"


@_WORK
def test_lines_of_a_person_that_are_not_committed_are_never_committed(api: httpx.Client, project: Path) -> None:
    (project / "src" / "main.py").write_text("print('mine')\n")
    session = own_session(api, project)
    say(api, session, "mock: edit src/main.py mine -> both", "mock: write a.txt a")
    before = standing(project)
    refused = api.post(f"/sessions/{session}/deliver", json={"mode": "commit"})
    assert "src/main.py" in assert_problem(refused, "unprocessable", field="paths")["detail"]
    assert standing(project) == before
    (project / ".git" / "index.lock").touch()
    locked = api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "paths": ["a.txt"]})
    assert "Try again when it is gone" in assert_problem(locked, "unprocessable")["detail"]
    (project / ".git" / "index.lock").unlink()
    assert api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "paths": ["a.txt"]}).is_success


@_WORK
def test_a_branch_of_the_agents_files_is_pushed_to_the_remote_of_the_checkout(
    api: httpx.Client, project: Path, tmp_path: Path
) -> None:
    remote = tmp_path / "remote.git"
    git(project, "clone", "-q", "--bare", ".", str(remote))
    git(project, "remote", "add", "origin", str(remote))
    (project / "README.md").write_text("Mine\n")
    before = standing(project)
    session = own_session(api, project)
    say(api, session, "mock: edit src/main.py one -> 1")
    done = api.post(f"/sessions/{session}/deliver", json={"mode": "branch", "branch": "agent/one"})
    assert done.is_success, done.text
    assert done.json()["url"] == str(remote)
    assert git(remote, "diff", "--name-only", "main", "agent/one").strip() == "src/main.py"
    assert standing(project) == before
    plan = api.get(f"/sessions/{session}/delivery").json()
    assert {way["mode"]: way.get("whyNot") for way in plan["ways"]}["commit"] is None
    assert "needs a token" in {way["mode"]: str(way.get("whyNot")) for way in plan["ways"]}["pr"]


@_WORK
def test_a_checkout_without_a_remote_says_what_is_possible(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: write a.txt a")
    refused = api.post(f"/sessions/{session}/deliver", json={"mode": "branch"})
    assert "has no remote" in assert_problem(refused, "unprocessable")["detail"]
    ways = {each["mode"]: each.get("whyNot") for each in api.get(f"/sessions/{session}/delivery").json()["ways"]}
    assert (ways["commit"], ways["patch"]) == (None, None)
    assert "the checkout has none" in str(ways["branch"])
    assert "all of it is there" in str(ways["local"])


@_WORK
def test_a_file_or_some_lines_of_it_are_discarded(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: edit src/old.py line 3\\n -> three\\n", "mock: edit src/old.py line 30 -> thirty")
    wanted = {"turn": 1, "paths": ["src/old.py"], "lines": [25, 40]}
    assert api.post(f"/sessions/{session}/undo", json=wanted).json()["paths"] == ["src/old.py"]
    text = (project / "src" / "old.py").read_text()
    assert ("three" in text, "thirty" in text) == (True, False)
    vague = api.post(f"/sessions/{session}/undo", json={"paths": ["src/old.py"]})
    assert "name the turn" in assert_problem(vague, "invalid_request", field="turn")["detail"]
    both = api.post(f"/sessions/{session}/undo", json={"turn": 1, "lines": [1, 2]})
    assert "of one file" in assert_problem(both, "invalid_request", field="lines")["detail"]


@_WORK
def test_a_file_of_a_copy_is_discarded_whatever_turn_changed_it(api: httpx.Client, project: Path) -> None:
    repo = {"mode": "git", "url": str(project)}
    session = str(api.post("/sessions", json={"agent": "mock", "repo": repo, "permissionMode": "bypass"}).json()["id"])
    settled(api, session, turn=0)
    say(api, session, "mock: edit src/main.py one -> 1", "mock: write a.txt a")
    say(api, session, "mock: edit src/main.py 1 -> 11")
    undone = api.post(f"/sessions/{session}/undo", json={"paths": ["src/main.py"]})
    assert undone.is_success, undone.text
    assert changed(api, session) == {"a.txt": "added"}


def test_a_file_in_which_a_person_has_staged_something_is_not_committed(api: httpx.Client, project: Path) -> None:
    """Their next commit would take the agent's part out again."""
    old = project / "src" / "old.py"
    old.write_text(old.read_text().replace("line 30", "mine 30"))
    git(project, "add", "src/old.py")
    session = own_session(api, project)
    say(api, session, "mock: edit src/old.py line 3 -> three")
    before = standing(project)
    refused = api.post(f"/sessions/{session}/deliver", json={"mode": "commit"})
    assert "src/old.py: you have staged" in assert_problem(refused, "unprocessable", field="paths")["detail"]
    assert standing(project) == before


def test_what_a_person_has_thrown_away_is_not_committed(api: httpx.Client, project: Path) -> None:
    session = own_session(api, project)
    say(api, session, "mock: edit src/main.py one -> 1", "mock: write bad.txt bad")
    git(project, "checkout", "-q", "src/main.py")
    (project / "bad.txt").unlink()
    say(api, session, "mock: write good.txt good")
    done = api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "message": "Good"})
    assert done.is_success, done.text
    assert committed(project) == ("Good", "good.txt")
    assert git(project, "status", "--porcelain") == ""


@_WORK
def test_a_file_that_a_filter_rewrites_is_not_committed(api: httpx.Client, project: Path) -> None:
    (project / ".git" / "info" / "attributes").write_text("*.key filter=secret\n")
    session = own_session(api, project)
    say(api, session, "mock: write a.key open", "mock: write a.txt a")
    refused = api.post(f"/sessions/{session}/deliver", json={"mode": "commit"})
    assert "a.key: a filter of git rewrites it" in assert_problem(refused, "unprocessable", field="paths")["detail"]
    assert api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "paths": ["a.txt"]}).is_success
    assert committed(project)[1] == "a.txt"
