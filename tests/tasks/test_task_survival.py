"""A server that is killed at any step goes on or cleans up: no lost task, no second delivery, no mount left."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.support.ordering import Json, done, events, finished, new_session, order, say, settled, task, task_server
from tests.support.patience import wait_until
from tests.support.places import git, make_repository, tree_hash
from tests.support.serving import RunningServer

_WORK = "mock: write new.txt hello\\n"


def _kill(server: RunningServer) -> None:
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()


def _mounted_below(folder: Path) -> list[str]:
    """Mounts below a folder in any mount namespace of this machine."""
    found: set[str] = set()
    for file in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            lines = file.read_text().splitlines()
        except OSError:
            continue  # the process has ended meanwhile
        found |= {line.split()[4] for line in lines if line.split()[4].startswith(f"{folder}/")}
    return sorted(found)


def _workspaces(state: Path) -> list[str]:
    return sorted(place.name for place in (state / "workspaces" / "workspaces").iterdir())


def _restarted_result(state: Path, folder: Path, session: str) -> Json:
    with task_server(state, folder) as (_, api):
        found = finished(api, session)
        return {**found, "events": events(api, session), "deliveries": events(api, session, "delivery.completed")}


@pytest.mark.parametrize("commit", [6, 8, 10, 13])
def test_a_task_is_done_once_wherever_the_server_is_killed(commit: int, tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    before = tree_hash(project)
    bare = tmp_path / "bare.git"
    git(project, "clone", "-q", "--bare", ".", str(bare))
    body = task(_WORK, bare, delivery={"mode": "branch", "targetBranch": "agent/work"})
    env = {"OSTLER_FAILPOINT": f"commit.after:kill:{commit}"}
    with task_server(state_dir, tmp_path, env=env) as (server, api):
        session = _ordered(api, body)
        wait_until(lambda: server.process.poll() is not None or _is_over(api, session), what="the server is killed")
    found = _restarted_result(state_dir, tmp_path, session)
    assert (found["status"], len(found["deliveries"])) == ("completed", 1), found
    assert [event["sequence"] for event in found["events"]] == list(range(1, len(found["events"]) + 1))
    assert git(bare, "show", "agent/work:new.txt") == "hello"
    assert git(bare, "rev-list", "--count", "main..agent/work") == "1"
    assert len(_workspaces(state_dir)) == 1
    assert tree_hash(project) == before


def _ordered(api: httpx.Client, body: Json) -> str:
    """Order a task from a server that may be killed before it answers; its key finds it again."""
    try:
        return order(api, body)
    except httpx.TransportError:
        return ""


def _is_over(api: httpx.Client, session: str) -> bool:
    try:
        return bool(api.get(f"/tasks/{session}").json().get("endedAt"))
    except httpx.TransportError:
        return True


def test_a_setup_that_is_cut_off_is_begun_again(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    slow = f"echo begun >> {tmp_path}/setups; test -e {tmp_path}/go || exec sleep 600"
    body = task("mock: say hello", project, workspace={"setup": slow})
    with task_server(state_dir, tmp_path) as (server, api):
        session = order(api, body)
        wait_until((tmp_path / "setups").exists, what="the setup has begun")
        _kill(server)
    (tmp_path / "go").touch()
    assert _restarted_result(state_dir, tmp_path, session)["status"] == "completed"
    assert (tmp_path / "setups").read_text().split() == ["begun", "begun"]


def test_an_agent_works_on_in_its_workspace_while_the_server_is_away(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (server, api):
        session = new_session(api, project)
        say(api, session, "mock: write a.txt one")
        pid = api.get(f"/sessions/{session}").json()["process"]["pid"]
        api.post(f"/sessions/{session}/messages", json={"message": "mock: wait 1\nmock: write b.txt two"})
        _kill(server)
    with task_server(state_dir, tmp_path) as (_, api):
        settled(api, session, turn=2)
        assert api.get(f"/sessions/{session}").json()["process"]["pid"] == pid
        assert api.get(f"/sessions/{session}/files/content", params={"path": "b.txt"}).text == "two"
        say(api, session, "mock: write c.txt three")
        assert len(api.get(f"/sessions/{session}/diff").json()["files"]) == 3


def test_a_rewind_that_is_cut_off_is_finished(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (_, api):
        session = new_session(api, project)
        say(api, session, "mock: write a.txt one")
        say(api, session, "mock: write a.txt two")
    env = {"OSTLER_FAILPOINT": "commit.after:kill:5"}
    with task_server(state_dir, tmp_path, env=env) as (server, api):
        with pytest.raises(httpx.TransportError):
            api.post(f"/sessions/{session}/rewind", json={"turn": 1})
        server.process.wait()
    with task_server(state_dir, tmp_path) as (_, api):
        say(api, session, "mock: say go on")
        assert api.get(f"/sessions/{session}/files/content", params={"path": "a.txt"}).text == "one"
        assert len(events(api, session, "workspace.restored")) == 1


def test_a_deleted_session_leaves_nothing(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (_, api):
        session = new_session(api, project)
        say(api, session, "mock: write a.txt one")
        assert api.delete(f"/sessions/{session}").status_code == 204
        assert api.delete(f"/sessions/{session}").status_code == 204
        assert _workspaces(state_dir) == []
        assert list((state_dir / "memories").iterdir()) == []
        wait_until(lambda: not _mounted_below(state_dir), what="nothing is mounted any more")
        wait_until(lambda: not list((state_dir / "workspaces" / "trash").iterdir()), what="the trash is empty")
        assert not (state_dir / "sessions" / session).exists()


def test_a_task_can_be_deleted_while_it_is_being_set_up(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    mark = tmp_path / "pid"
    with task_server(state_dir, tmp_path) as (_, api):
        session = order(api, task("mock: say hi", project, workspace={"setup": f"echo $$ > {mark}; exec sleep 600"}))
        wait_until(lambda: mark.exists() and mark.read_text().strip() != "", what="the setup has begun")
        assert api.delete(f"/sessions/{session}").status_code == 204
        wait_until(lambda: not Path(f"/proc/{mark.read_text().strip()}").exists(), what="the setup command has ended")
        assert _workspaces(state_dir) == []


def test_a_killed_server_with_ended_agents_leaves_no_mount(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path, "--orphan-timeout-seconds", "0") as (server, api):
        session = new_session(api, project)
        say(api, session, "mock: write a.txt one")
        _kill(server)
        wait_until(lambda: not _mounted_below(state_dir), what="nothing is mounted any more")
    with task_server(state_dir, tmp_path) as (_, api):
        assert api.get(f"/sessions/{session}/files/content", params={"path": "a.txt"}).text == "one"
        done(api, task(_WORK, project))
