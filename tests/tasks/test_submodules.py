"""A task of a repository with submodules: what is missing and what is left out is said where people look."""

from pathlib import Path

import httpx
import pytest

from tests.support.ordering import done, events, task
from tests.support.places import git, make_repository


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository with one submodule that can be had and one that cannot."""
    root = tmp_path_factory.mktemp("submodules")
    library = make_repository(root / "library")
    project = make_repository(root / "project")
    for path in ("lib", "lost"):
        git(project, "submodule", "add", "-q", "../library", path)
    git(project, "config", "-f", ".gitmodules", "submodule.lost.url", "../nowhere")
    git(project, "commit", "-qam", "submodules")
    git(root, "clone", "-q", "--bare", str(project), "bare.git")
    assert library.exists()
    return root / "bare.git"


def _notices(api: httpx.Client, session: str) -> dict[str, str]:
    return {event["data"]["code"]: event["data"]["message"] for event in events(api, session, "notice")}


def test_what_is_missing_and_what_a_branch_leaves_out_is_told(api: httpx.Client, project: Path) -> None:
    prompt = "mock: edit lib/README.md Hello -> Hallo\nmock: write new.txt new"
    body = task(prompt, project, delivery={"mode": "branch", "branch": "work"})
    session = done(api, body)["id"]
    notices = _notices(api, session)
    assert set(notices) == {"submodule_missing", "submodule_left_out"}
    assert notices["submodule_missing"].startswith("The submodule lost is missing")
    assert "nowhere" in notices["submodule_missing"]
    assert notices["submodule_left_out"].startswith("The changes in lib are not delivered.")
    (delivered,) = events(api, session, "delivery.completed")
    assert delivered["data"]["left_out"] == ["lib"]
    assert git(project, "diff-tree", "-r", "--name-status", "main", "work") == "A\tnew.txt"
    found = {each["path"]: each["status"] for each in api.get(f"/sessions/{session}/diff").json()["files"]}
    assert found == {"lib/README.md": "modified", "new.txt": "added"}
    shown = api.get(f"/sessions/{session}/workspace").json()["workspace"]["submodules"]
    assert [(each["path"], "whyNot" in each) for each in shown] == [("lib", False), ("lost", True)]
    api.delete(f"/sessions/{session}")


def test_a_task_without_submodules_hears_nothing_of_them(api: httpx.Client, project: Path) -> None:
    body = task("mock: say hi", project)
    body["repo"]["submodules"] = False
    session = done(api, body)["id"]
    assert _notices(api, session) == {}
    assert api.get(f"/sessions/{session}/files", params={"path": "lib"}).json()["entries"] == []
    api.delete(f"/sessions/{session}")
