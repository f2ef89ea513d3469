"""A server starts whatever became of its small files: empty, cut short, or full of zeros."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from ostler.runner.installs.installed import InstalledVersions
from ostler.runner.runtimes.memories import Memories
from tests.support.ordering import done, new_session, say, task, task_server
from tests.support.patience import wait_until
from tests.support.places import make_repository

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "half": lambda data: data[: len(data) // 2],
    "zeros": lambda data: bytes(len(data)),
    "noise": lambda data: b"\xff" * len(data),
    "other": lambda data: data[: len(data) // 2] + b"\xff" + data[len(data) // 2 + 1 :],
}
OURS = (
    "ostler.lock",
    "keepers/*/spec",
    "keepers/*/calls",
    "keepers/*/running",
    "keepers/*/end",
    "keepers/*/output",
    "keepers/*/stderr",
    "memories/*/*.home",
    "setups/kept/*.json",
    "uploads/*",
    "agents/*/manifest.json",
    "workspaces/*/*/*.json",
)


def ours(state_dir: Path) -> Iterator[Path]:
    """The files that a server reads again."""
    for pattern in OURS:
        yield from (path for path in state_dir.glob(pattern) if path.is_file())


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_server_starts_whatever_became_of_its_small_files(
    state_dir: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    repository = make_repository(tmp_path / "project")
    with task_server(state_dir, tmp_path) as (server, api):
        done(api, task("mock: say hello", repository, workspace={"setup": "echo set up"}))
        session = new_session(api, repository)
        say(api, session, "mock: write a.txt one")
        plain = api.post("/sessions", json={"agent": "mock"}).json()["id"]
        api.post(f"/sessions/{plain}/messages", json={"message": "mock: wait 600"})
        wait_until(lambda: api.get(f"/sessions/{plain}").json().get("process") is not None, what="no agent came")
        ticket = api.post("/uploads").json()["token"]
        server.process.kill()
        server.process.wait()
    manifest = state_dir / "agents" / "pi" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"current": "1", "installed": {}}')
    running = [json.loads(path.read_text()) for path in state_dir.glob("keepers/*/running")]
    for keeper in running:
        os.kill(keeper["keeper"], signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{one['pid']}").exists() for one in running), what="an agent is left")
    for path in (found := list(ours(state_dir))):
        path.write_bytes(damage(path.read_bytes()))
    assert {path.relative_to(state_dir).parts[0] for path in found} == {pattern.split("/")[0] for pattern in OURS}
    trees = sorted(path for path in (state_dir / "workspaces" / "workspaces").iterdir())
    with task_server(state_dir, tmp_path) as (server, api):
        assert api.get("/agents").is_success
        wait_until(lambda: is_idle(api, plain), what="the lost turn did not end")
        assert api.get(f"/sessions/{session}").is_success
        assert api.post(f"/sessions/{plain}/messages", json={"message": "mock: say after"}).status_code == 202
        wait_until(lambda: is_idle(api, plain), what="the next turn did not end")
        order = {"agent": "mock", "repo": {"mode": "upload", "upload": ticket}}
        assert api.post("/sessions", json=order).status_code in {404, 422}
        assert {path.name for path in trees} <= {path.name for path in trees[0].parent.iterdir()}


def is_idle(api: httpx.Client, session: str) -> bool:
    return bool(api.get(f"/sessions/{session}").json()["activity"] == "idle")


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_memory_comes_back_as_it_was_though_nobody_knows_whose_it_was(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    (home / "notes").write_text("remember the oats")
    memories = Memories(tmp_path / "memories")
    assert memories.keep("wsp_1", "snp_1", str(home))
    (note,) = tmp_path.glob("memories/*/*.home")
    note.write_bytes(damage(note.read_bytes()))
    memories.bring_back("wsp_1", "snp_1", str(other), into="wsp_1")
    assert (other / "notes").read_text() == "remember the oats"


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_list_of_installed_versions_is_an_empty_one(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "manifest.json").write_bytes(damage(b'{"current": "1", "installed": {}}'))
    assert InstalledVersions(tmp_path).records() == []
