"""A helper that never ends, such as git on a broken disk, holds nobody up and does not outlive the server."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.ordering import events, new_session, order, settled, task, task_server
from tests.support.patience import wait_until
from tests.support.places import make_repository
from tests.support.serving import RunningServer

_STUCK_GIT = """#!/bin/sh
for word; do
  if test "$word" = update-index && test -e {folder}/stuck; then
    echo $$ >> {folder}/pids
    trap '' INT TERM HUP
    sleep 1000 & echo $! >> {folder}/pids
    wait; sleep 1000
  fi
done
PATH=$(echo "$PATH" | sed 's|^[^:]*:||') exec git "$@"
"""
_STUCK_ENGINE = """#!/bin/sh
test "$1" = info && exit 0
test "$1" = image && exit 1
echo $$ >> {folder}/pids
exec sleep 1000
"""


def _program(folder: Path, name: str, text: str) -> dict[str, str]:
    """The variables of a server that finds our program first."""
    place = folder / "programs" / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(text.format(folder=folder))
    place.chmod(0o755)
    return {"PATH": f"{place.parent}:{os.environ['PATH']}"}


def _pids(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def _all_gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}/cmdline").exists() and _is_alive(pid) for pid in pids)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def _stuck_in_a_snapshot(folder: Path, state: Path) -> Iterator[tuple[RunningServer, httpx.Client, str]]:
    """A server whose git hangs in the snapshot of a session."""
    project = make_repository(folder / "project")
    with task_server(state, folder, env=_program(folder, "git", _STUCK_GIT)) as (server, api):
        session = new_session(api, project)
        (folder / "stuck").touch()
        api.post(f"/sessions/{session}/messages", json={"message": "mock: write a.txt one"})
        wait_until(lambda: len(_pids(folder)) == 2, what="git hangs")
        yield server, api, session


def test_a_session_whose_snapshot_hangs_can_be_deleted(tmp_path: Path, state_dir: Path) -> None:
    with _stuck_in_a_snapshot(tmp_path, state_dir) as (_, api, session):
        assert api.delete(f"/sessions/{session}").status_code == 204
        wait_until(lambda: _all_gone(_pids(tmp_path)), what="git is gone")


def test_whoever_waits_for_a_workspace_that_is_deleted_hears_so(tmp_path: Path, state_dir: Path) -> None:
    with _stuck_in_a_snapshot(tmp_path, state_dir) as (_, api, session), ThreadPoolExecutor() as threads:
        waiting = threads.submit(api.get, f"/sessions/{session}/diff")
        api.delete(f"/sessions/{session}")
        assert waiting.result().status_code == 404


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_whose_helper_hangs_ends_when_it_is_told_to(
    number: signal.Signals, tmp_path: Path, state_dir: Path
) -> None:
    with _stuck_in_a_snapshot(tmp_path, state_dir) as (server, _, session):
        server.process.send_signal(number)
        server.process.wait(30)
    wait_until(lambda: _all_gone(_pids(tmp_path)), what="git is gone")
    (tmp_path / "stuck").unlink()
    with task_server(state_dir, tmp_path) as (_, api):
        settled(api, session, turn=1)
        assert [event["data"]["code"] for event in events(api, session, "notice")] == []


def test_helpers_end_with_a_server_that_is_killed(tmp_path: Path, state_dir: Path) -> None:
    with _stuck_in_a_snapshot(tmp_path, state_dir) as (server, _, _):
        server.process.kill()
        server.process.wait()
        wait_until(lambda: _all_gone(_pids(tmp_path)), what="git is gone")
    with task_server(state_dir, tmp_path):  # whose end is also the end of the agent
        pass


def test_a_setup_ends_with_a_server_that_is_killed(tmp_path: Path, state_dir: Path) -> None:
    setup = f"echo $$ >> {tmp_path}/pids; setsid sleep 1000 & echo $! >> {tmp_path}/pids; trap '' TERM INT; wait"
    with task_server(state_dir, tmp_path) as (server, api):
        order(api, task("mock: say hi", make_repository(tmp_path / "project"), workspace={"setup": setup}))
        wait_until(lambda: len(_pids(tmp_path)) == 2, what="the setup runs")
        server.process.kill()
        server.process.wait()
        wait_until(lambda: _all_gone(_pids(tmp_path)), what="the setup is gone")


def test_a_call_of_a_container_engine_ends_with_a_server_that_is_killed(tmp_path: Path, state_dir: Path) -> None:
    project = make_repository(tmp_path / "project")
    (project / ".devcontainer.json").write_text('{"image": "some/image"}')
    repo = {"mode": "folder", "path": str(project)}
    env = _program(tmp_path, "docker", _STUCK_ENGINE)
    with task_server(state_dir, tmp_path, env=env) as (server, api):
        order(api, {**task("mock: say hi", project, runtime={"type": "devcontainer"}), "repo": repo})
        wait_until(lambda: len(_pids(tmp_path)) == 1, what="the image is pulled")
        server.process.kill()
        server.process.wait()
        wait_until(lambda: _all_gone(_pids(tmp_path)), what="the engine's program is gone")


def test_helpers_leave_the_processor_to_agents(tmp_path: Path, state_dir: Path) -> None:
    with _stuck_in_a_snapshot(tmp_path, state_dir) as (_, _, _):
        git = _pids(tmp_path)[0]
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, git) >= 5, what="git is nice")
        limited = "Max cpu time              600"
        wait_until(lambda: limited in Path(f"/proc/{git}/limits").read_text(), what="git is limited")
