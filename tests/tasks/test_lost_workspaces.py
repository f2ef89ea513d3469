"""A workspace whose folder somebody removed from outside: the session says what is missing, and can be deleted."""

import shutil
from pathlib import Path

import httpx
import pytest

from tests.support.ordering import events, new_session, say, task_server
from tests.support.patience import wait_until
from tests.support.places import make_repository


def _place(state: Path, api: httpx.Client, session: str) -> Path:
    workspace = api.get(f"/sessions/{session}/workspace").json()["workspace"]["id"]
    return state / "workspaces" / "workspaces" / str(workspace)


def _answers(api: httpx.Client, session: str) -> dict[str, httpx.Response]:
    return {
        "diff": api.get(f"/sessions/{session}/diff"),
        "patch": api.get(f"/sessions/{session}/patch"),
        "deliver": api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}),
        "files": api.get(f"/sessions/{session}/files"),
        "write": api.put(f"/sessions/{session}/files/content", params={"path": "x"}, content=b"x"),
        "open": api.post(f"/sessions/{session}/open/ide", json={"ide": "vscode"}),
        "rewind": api.post(f"/sessions/{session}/rewind", json={"turn": 0}),
    }


@pytest.mark.parametrize("provider", ["overlay", "copy"])
def test_everybody_hears_what_is_missing_and_the_session_can_be_deleted(
    api: httpx.Client, tasks_state: Path, repository: Path, provider: str
) -> None:
    session = new_session(api, repository, workspace={"snapshot_preference": [provider]})
    say(api, session, "mock: write a.txt one")
    place = _place(tasks_state, api, session)
    shutil.rmtree(place)
    for door, answer in _answers(api, session).items():
        assert (answer.status_code, answer.json()["code"]) == (410, "workspace_lost"), (door, answer.text)
        assert str(place) in answer.json()["detail"]
    assert api.get(f"/sessions/{session}/messages").is_success
    assert api.delete(f"/sessions/{session}").status_code == 204
    assert api.get(f"/sessions/{session}").status_code == 404


def test_what_was_kept_before_can_still_be_compared_and_forked(
    api: httpx.Client, tasks_state: Path, repository: Path
) -> None:
    session = new_session(api, repository)
    say(api, session, "mock: write a.txt one")
    shutil.rmtree(_place(tasks_state, api, session))
    diff = api.get(f"/sessions/{session}/diff", params={"turn": 1}).json()
    assert [file["path"] for file in diff["files"]] == ["a.txt"]
    fork = api.post(f"/sessions/{session}/fork").json()["id"]
    assert api.get(f"/sessions/{fork}/files/content", params={"path": "a.txt"}).text == "one"


def test_a_session_says_so_after_a_restart_too(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (_, api):
        session = new_session(api, project)
        say(api, session, "mock: write a.txt one")
        place = _place(state_dir, api, session)
    shutil.rmtree(place)
    with task_server(state_dir, tmp_path) as (_, api):
        for door, answer in _answers(api, session).items():
            assert (answer.status_code, answer.json()["code"]) == (410, "workspace_lost"), (door, answer.text)
        assert api.delete(f"/sessions/{session}").status_code == 204


def test_a_turn_without_its_folder_ends_and_says_what_was_not_kept(
    api: httpx.Client, tasks_state: Path, repository: Path
) -> None:
    session = new_session(api, repository, workspace={"snapshot_preference": ["copy"]})
    place = _place(tasks_state, api, session)
    say_without_files = {"message": f"mock: run rm -rf {place}"}
    assert api.post(f"/sessions/{session}/messages", json=say_without_files).status_code == 202
    wait_until(lambda: bool(events(api, session, "notice")), what="a notice")
    (notice,) = events(api, session, "notice")
    assert notice["data"]["code"] == "snapshot_failed"
    assert str(place) in notice["data"]["message"]
    assert api.delete(f"/sessions/{session}").status_code == 204


def test_a_prompt_runs_though_the_files_of_the_last_turn_were_not_kept(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path, "--idle-timeout-seconds", "0.1") as (_, api):
        session = new_session(api, project, workspace={"snapshot_preference": ["copy"]})
        place = _place(state_dir, api, session)
        api.post(f"/sessions/{session}/messages", json={"message": f"mock: run mv {place} {place}.away"})
        wait_until(lambda: bool(events(api, session, "notice")), what="a notice")
        wait_until(lambda: "process" not in api.get(f"/sessions/{session}").json(), what="a sleeping agent")
        place.with_name(f"{place.name}.away").rename(place)
        assert say(api, session, "mock: write a.txt one") == 2
