"""Tasks and workspaces by the Python SDK and on the command line."""

import subprocess
from pathlib import Path

import httpx
import pytest

from ostler.client import AsyncClient, Client, OstlerApiError
from ostler.wire.events import SnapshotCreated
from ostler.wire.tasks import CreateTask, TaskAgent, TaskDelivery
from ostler.wire.workspaces import Repo
from tests.support.ordering import finished, say, settled
from tests.support.serving import OSTLER, RunningServer, clean_env

_WORK = "mock: write new.txt hello"


def test_the_sdk_orders_a_task_and_reads_its_result(
    tasks_server: RunningServer, api: httpx.Client, repository: Path
) -> None:
    order = CreateTask(
        prompt=_WORK,
        agent=TaskAgent(type="mock"),
        repo=Repo(url=str(repository), branch="main"),
        delivery=TaskDelivery(mode="patch"),
    )
    with Client(tasks_server.url) as client:
        made = client.tasks.create(order)
        assert finished(api, made.id)["status"] == "completed"
        assert client.tasks.get(made.id).vcs.delivery == "patch"
        assert client.files.read(made.id, "new.txt") == b"hello"
        assert b"+hello" in client.sessions.patch(made.id)
        assert [each.path for each in client.files.artifacts(made.id).artifacts] == ["new.txt"]
        assert client.files.archive(made.id, "zip").startswith(b"PK")
        assert client.catalogue.refs(str(repository)).default_branch == "main"


async def test_a_handle_goes_back_and_another_way(tasks_server: RunningServer, repository: Path) -> None:
    async with AsyncClient(tasks_server.url) as client:
        session = await client.sessions.create("mock", repo=Repo(url=str(repository)))
        async for event in session.events():
            if isinstance(event, SnapshotCreated) and event.data.turn == 0:
                break
        await session.write_file("a.txt", b"mine")
        assert await session.read_file("a.txt") == b"mine"
        await session.send(_WORK)
        async for event in session.events():
            if isinstance(event, SnapshotCreated) and event.data.turn == 1:
                break
        fork = await session.fork(turn=1)
        assert (fork.info.forked_from, session.id != fork.id) == (session.id, True)
        kept = (await session.snapshots()).snapshots
        await session.restore(kept[0].snapshot_id)
        assert (await session.diff()).files_changed == 0
        await session.restore(kept[-1].snapshot_id)
        assert (await session.diff()).files_changed == 2
        await session.rewind(0)
        assert (await session.diff()).files_changed == 0
        assert (await fork.diff()).files_changed == 2
        with pytest.raises(OstlerApiError) as caught:
            await session.deliver("patch")
        assert caught.value.code == "nothing_to_deliver"
        assert (await fork.deliver("patch")).size
        await session.delete()
        await fork.delete()


class Shell:
    """Runs `ostler` against one server."""

    def __init__(self, server: RunningServer, home: Path) -> None:
        self._env = clean_env(home, {"OSTLER_ENDPOINT": server.url, "COLUMNS": "120"})

    def __call__(self, *words: str) -> str:
        done = subprocess.run([*OSTLER, *words], env=self._env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()


def test_the_command_line_has_a_verb_for_everything(
    tasks_server: RunningServer, api: httpx.Client, repository: Path, tmp_path: Path
) -> None:
    ostler = Shell(tasks_server, tmp_path / "home")
    session = ostler("sessions", "create", "mock", "--repo", str(repository), "--branch", "main")
    settled(api, session, turn=0)
    say(api, session, _WORK)
    assert "after turn 1" in ostler("session", "snapshots", session)
    assert "added" in ostler("session", "diff", session, "--summary")
    assert "+hello" in ostler("session", "diff", session, "--turn", "1")
    assert "new.txt" in ostler("session", "files", session)
    assert ostler("files", "read", session, "new.txt") == "hello"
    assert ostler("files", "search", session, "hello").startswith("new.txt:1:")
    fork = ostler("session", "fork", session, "--turn", "1")
    kept = api.get(f"/sessions/{session}/snapshots").json()["snapshots"][0]["snapshotId"]
    assert ostler("session", "restore", session, kept) == f"The files of {session} are those of {kept}."
    assert ostler("session", "diff", session) == "Nothing changed."
    assert ostler("session", "rewind", session, "0") == f"{session} is as it was after turn 0."
    assert ostler("session", "diff", session) == "Nothing changed."
    assert ostler("session", "deliver", fork, "patch").startswith("Patch of ")
    assert "code --folder-uri" in ostler("session", "run", fork, "vscode")
    assert "provider" in ostler("session", "workspace", fork)
    assert "mock" in ostler("remote", "agents")
    assert "local" in ostler("remote", "runtimes")
    assert "local" in ostler("remote", "runners")
    assert "session is running" in ostler("session", "logs", fork)
    task = ostler("task", _WORK, "--agent", "mock", "--repo", str(repository), "--project", "cli", "--deliver", "patch")
    assert finished(api, task)["status"] == "completed"
    assert task in ostler("tasks", "list", "--project", "cli")
    assert ostler("sessions", "patch", task).startswith("diff --git a/new.txt")


def test_a_task_that_fails_has_an_exit_code(tasks_server: RunningServer, repository: Path, tmp_path: Path) -> None:
    env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": tasks_server.url})
    words = ("task", "mock: error no luck", "--agent", "mock", "--repo", str(repository), "--wait")
    done = subprocess.run([*OSTLER, *words], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "no luck" in done.stderr) == (1, True)
