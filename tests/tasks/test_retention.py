"""What is kept of workspaces after their sessions have ended: files, but no process; and not for ever."""

from pathlib import Path

import httpx

from tests.support.ordering import Json, done, events, new_session, order, say, task, task_server
from tests.support.patience import wait_until
from tests.support.places import make_repository
from tests.support.serving import RunningServer

_WORK = "mock: write a.txt one"


def _holders(server: RunningServer) -> int:
    """How many workspaces are held mounted below a server."""
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return sum(_holders_below(int(pid)) for pid in children.read_text().split())


def _holders_below(pid: int) -> int:
    try:
        own = Path(f"/proc/{pid}/comm").read_text().strip() == "ostler-holder"
        below = [
            int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()
        ]
    except OSError:
        return 0
    return own + sum(map(_holders_below, below))


def _check_everything_still_works(api: httpx.Client, session: str) -> None:
    assert api.get(f"/sessions/{session}/files/content", params={"path": "a.txt"}).text == "one"
    assert [file["path"] for file in api.get(f"/sessions/{session}/diff").json()["files"]] == ["a.txt"]
    assert "a.txt" in api.get(f"/sessions/{session}/patch").text
    assert api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}).is_success
    assert api.post(f"/sessions/{session}/open/ide", json={"ide": "vscode"}).is_success
    fork = api.post(f"/sessions/{session}/fork").json()["id"]
    assert api.get(f"/sessions/{fork}/files/content", params={"path": "a.txt"}).text == "one"
    assert api.delete(f"/sessions/{fork}").status_code == 204


def test_a_session_that_has_ended_has_no_process_but_all_its_files(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (server, api):
        sessions = [done(api, task(_WORK, project))["id"] for _ in range(3)]
        stopped = new_session(api, project)
        say(api, stopped, _WORK)
        api.post(f"/sessions/{stopped}/stop")
        wait_until(lambda: _holders(server) == 0, what="no holder is left")
        for session in (sessions[0], stopped):
            _check_everything_still_works(api, session)
    with task_server(state_dir, tmp_path) as (server, api):
        assert _holders(server) == 0
        _check_everything_still_works(api, sessions[1])


def _removed(api: httpx.Client, session: str) -> Json:
    wait_until(lambda: bool(events(api, session, "workspace.removed")), what="the workspace is removed")
    return dict(events(api, session, "workspace.removed")[0]["data"])


def _check_gone(api: httpx.Client, state: Path, session: str, why: str) -> None:
    for door in ("diff", "patch", "files", "workspace"):
        answer = api.get(f"/sessions/{session}/{door}")
        assert (answer.status_code, answer.json()["code"]) == (410, "workspace_removed"), answer.text
        assert why in answer.json()["detail"]
    assert api.post(f"/sessions/{session}/deliver", json={"mode": "patch"}).status_code == 410
    assert api.post(f"/sessions/{session}/fork").status_code == 410
    assert api.get(f"/tasks/{session}").json().get("workspace") is None
    assert api.get(f"/sessions/{session}/messages").json()["messages"]
    assert api.get(f"/sessions/{session}/artifacts").json()["artifacts"][0]["exists"] is False


def _places(state: Path) -> int:
    return sum(1 for _ in (state / "workspaces" / "workspaces").iterdir())


def test_only_so_many_workspaces_of_ended_sessions_are_kept(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path, env={"OSTLER_KEPT_WORKSPACES": "2"}) as (_, api):
        live = new_session(api, project)
        say(api, live, _WORK)
        sessions = [done(api, task(_WORK, project))["id"] for _ in range(4)]
        assert [_removed(api, session)["reason"] for session in sessions[:2]] == ["count", "count"]
        _check_gone(api, state_dir, sessions[0], "2 newer workspaces")
        wait_until(lambda: _places(state_dir) == 3, what="the folders are gone")
        for session in (live, *sessions[2:]):
            assert api.get(f"/sessions/{session}/diff").is_success
        assert api.delete(f"/sessions/{sessions[0]}").status_code == 204


def test_workspaces_are_removed_by_age_and_by_size_also_after_a_restart(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    fill = "mock: run head -c 3000000 /dev/urandom > a.log"
    with task_server(state_dir, tmp_path) as (_, api):
        old, large, fork_of = [done(api, task(f"{_WORK}\n{fill}", project))["id"] for _ in range(3)]
        fork = api.post(f"/sessions/{old}/fork").json()["id"]
    with task_server(state_dir, tmp_path, env={"OSTLER_KEPT_WORKSPACES_BYTES": "9000000"}) as (_, api):
        assert _removed(api, old)["reason"] == "disk"
        assert api.get(f"/sessions/{fork_of}/diff").is_success
        assert api.get(f"/sessions/{fork}/files/content", params={"path": "a.txt"}).text == "one"
    with task_server(state_dir, tmp_path, env={"OSTLER_KEPT_WORKSPACES_DAYS": "0.00000001"}) as (_, api):
        assert _removed(api, fork_of)["reason"] == "age"
        _check_gone(api, state_dir, fork_of, "ended more than")
        assert api.get(f"/sessions/{fork}/diff").is_success
    with task_server(state_dir, tmp_path) as (_, api):
        _check_gone(api, state_dir, large, "was removed at")


def test_a_task_that_waits_is_not_touched(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    env = {"OSTLER_KEPT_WORKSPACES": "1", "OSTLER_KEPT_WORKSPACES_DAYS": "0.00000001"}
    with task_server(state_dir, tmp_path, env=env) as (_, api):
        open_one = order(api, task(_WORK, project, keepOpen=True))
        ended = done(api, task(_WORK, project))["id"]
        assert _removed(api, ended)["reason"] == "age"
        assert api.get(f"/sessions/{open_one}/workspace").is_success
