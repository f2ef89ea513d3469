"""After kill -9 nothing is mounted, nothing runs, nothing half-made is left, and nothing finished is lost."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ostler.base.errors import WorkspaceBusy
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import EmptySource, GitSource, Order
from ostler.wire.workspaces import SnapshotProvider
from tests.support.patience import wait_until
from tests.support.places import inside, make_repository, opened
from tests.support.serving import clean_env

_RUNNER = """
import asyncio, os, subprocess, sys
from pathlib import Path
from ostler.runner.workspaces.orders import EmptySource, Order
from ostler.runner.workspaces.library import WorkspaceLibrary

async def main():
    service = await WorkspaceLibrary.open(Path(sys.argv[1]), environ=os.environ)
    order = Order(source=EmptySource(files={"a.txt": "a"}), providers=(sys.argv[2],), strict=True)
    workspace = await service.create(order)
    await service.files.use(workspace.id, lambda files: files.write("b.txt", b"b"))
    entry = await service.entry(workspace.id)
    if sys.argv[3] == "agent":
        subprocess.Popen(entry.command(("sleep", "600")), cwd=entry.folder, start_new_session=True)
    print(workspace.id, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def _mounting(root: Path) -> set[int]:
    """The processes in whose namespace something is mounted below a folder."""
    found = set()
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f" {root}/workspaces/" in (process / "mountinfo").read_text():
                found.add(int(process.name))
        except OSError:
            continue
    return found


def _running(name: str) -> set[int]:
    return {pid for pid in _pids() if _name(pid) == name}


def _pids() -> list[int]:
    return [int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit()]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _runner(root: Path, kind: str, what: str) -> tuple[subprocess.Popen[bytes], str]:
    """A runner in a process of its own that has made a workspace."""
    command = [sys.executable, "-c", _RUNNER, str(root), kind, what]
    process = subprocess.Popen(command, env=clean_env(root.parent / "home"), stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, process.stdout.readline().decode().strip()


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("kind", ["overlay", pytest.param("overlay-root", marks=pytest.mark.root)])
async def test_after_a_killed_runner_nothing_stays_mounted_and_nothing_is_lost(
    kind: SnapshotProvider, tmp_path: Path
) -> None:
    root = tmp_path / "state"
    process, workspace = _runner(root, kind, "alone")
    assert _mounting(root)
    assert f" {root}/workspaces/" not in Path("/proc/self/mountinfo").read_text()
    _kill(process)
    wait_until(lambda: not _mounting(root), what="the holder to leave")
    async with opened(root) as service:
        assert await inside(service, workspace, "cat a.txt b.txt") == "ab"


async def test_an_agent_that_outlives_its_runner_keeps_its_workspace(tmp_path: Path) -> None:
    root = tmp_path / "state"
    process, workspace = _runner(root, "overlay", "agent")
    wait_until(lambda: bool(_mounting(root) & _running("sleep")), what="the agent to be inside")
    agents = _mounting(root) & _running("sleep")
    _kill(process)
    async with opened(root) as service:
        assert await inside(service, workspace, "cat b.txt") == "b"
        assert _mounting(root) & _running("sleep") == agents
        snapshot = await service.snapshot(workspace)
        with pytest.raises(WorkspaceBusy, match="in use by 1 processes"):
            await service.restore(workspace, snapshot.id)
        _end(agents)
        await service.restore(workspace, snapshot.id)
        assert await inside(service, workspace, "cat b.txt") == "b"
    wait_until(lambda: not _mounting(root), what="everything to be gone")


def _end(agents: set[int]) -> None:
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not agents & set(_pids()) or all(_name(pid) == "" for pid in agents), what="the agent to end")


async def test_a_killed_holder_is_replaced(tmp_path: Path) -> None:
    root = tmp_path / "state"
    async with opened(root) as service:
        order = Order(source=EmptySource(files={"a.txt": "a"}), providers=("overlay",), strict=True)
        workspace = await service.create(order)
        await inside(service, workspace, "echo b > b.txt")
        for holder in _mounting(root) & _running("ostler-holder"):
            os.kill(holder, signal.SIGKILL)
        wait_until(lambda: not _mounting(root), what="the holder to end")
        assert await inside(service, workspace, "cat a.txt b.txt") == "ab\n"
        assert await service.files.use(workspace.id, lambda files: files.read("b.txt").data) == b"b\n"


async def test_a_killed_fork_server_is_replaced(tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        order = Order(source=EmptySource(files={"a.txt": "a"}), providers=("overlay",), strict=True)
        first = await service.create(order)
        for child in _children():
            os.kill(child, signal.SIGKILL)
        second = await service.create(order)
        assert await inside(service, first, "cat a.txt") + await inside(service, second, "cat a.txt") == "aa"


def _children() -> list[int]:
    return [pid for pid in _pids() if _is_fork_server(pid)]


def _is_fork_server(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return f"PPid:\t{os.getpid()}\n" in status and b"workspace/holder.py" in command


async def test_a_fork_server_that_is_killed_while_asked_is_replaced(tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        order = Order(source=EmptySource(files={"a.txt": "a"}), providers=("overlay",), strict=True)
        await service.create(order)
        (server,) = _children()
        os.kill(server, signal.SIGSTOP)  # so that the request lies with it unread when it dies
        making = asyncio.create_task(service.create(order))
        uppers = tmp_path / "state" / "workspaces"
        await asyncio.to_thread(wait_until, lambda: len([*uppers.glob("*/upper")]) == 2, what="the request to be near")
        os.kill(server, signal.SIGKILL)
        assert await inside(service, await making, "cat a.txt") == "a"


async def test_half_made_things_are_removed_at_the_next_start(tmp_path: Path) -> None:
    root = tmp_path / "state"
    order = Order(source=EmptySource(files={"a.txt": "a"}), providers=("copy",), strict=True)
    async with opened(root) as service:
        await service.create(order)
    for place in (
        "workspaces/wsp_half/tree",
        "snapshots/snp_half/content",
        "bases/half-folder/tree",
        "incoming/x",
        "records/x",
    ):
        (root / place).mkdir(parents=True)
    (root / "uploads" / "new_x.part").write_bytes(b"x")
    async with opened(root) as service:
        assert service.all() == []
        places = [root / name for name in ("workspaces", "snapshots", "incoming", "records", "uploads", "trash")]
        wait_until(lambda: not any(any(place.iterdir()) for place in places), what="the litter to go")
        assert not (root / "bases" / "half-folder").exists()


async def test_a_mirror_whose_making_was_killed_is_completed(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    order = Order(source=GitSource(url=str(project), branch="main"))
    async with opened(tmp_path / "state", tmp_path) as service:
        await service.create(order)
    (mirror,) = (tmp_path / "state" / "mirrors").iterdir()
    shutil.rmtree(mirror / "objects")  # what git makes last
    shutil.rmtree(mirror / "refs")
    async with opened(tmp_path / "state", tmp_path) as service:
        assert (await service.create(order)).branch == "main"


async def test_a_restore_that_was_killed_in_the_middle_is_undone(tmp_path: Path) -> None:
    root = tmp_path / "state"
    order = Order(source=EmptySource(files={"a.txt": "a"}), providers=("overlay",), strict=True)
    service = await WorkspaceLibrary.open(root, environ=os.environ)
    workspace = await service.create(order)
    await inside(service, workspace, "echo b > b.txt")
    await service.close()
    wait_until(lambda: not _mounting(root), what="the holder to leave")
    place = root / "workspaces" / workspace.id
    (place / "before").mkdir()
    for name in ("upper", "work", "tree"):
        (place / name).rename(place / "before" / name)
    (place / "upper").mkdir()
    async with opened(root) as again:
        assert await inside(again, workspace, "cat b.txt") == "b\n"


async def test_an_agent_can_neither_mount_nor_unmount_in_its_workspace_but_have_namespaces_of_its_own(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path / "state") as service:
        order = Order(source=EmptySource(files={"a.txt": "a", "d/b.txt": "b"}), providers=("overlay",), strict=True)
        workspace = await service.create(order)
        await inside(service, workspace, "! mount -t tmpfs none d 2>/dev/null; ! umount . 2>/dev/null")
        script = "unshare -Urm sh -c 'mount -t tmpfs none d && ls -A d && id -u'; cat a.txt d/b.txt"
        assert await inside(service, workspace, script) == "0\nab"
        assert await service.files.use(workspace.id, lambda files: files.read("d/b.txt").data) == b"b"


async def test_an_order_for_a_tree_that_everybody_sees_gets_one(tmp_path: Path) -> None:
    async with opened(tmp_path / "state") as service:
        wish = Order(source=EmptySource(files={"a.txt": "a"}), providers=("overlay",), visible=True)
        workspace = await service.create(wish)
        assert (workspace.visible, (Path(workspace.path) / "a.txt").read_text()) == (True, "a")
        assert workspace.refused[0].why_not == "other processes would not see its tree"


async def test_a_workspace_that_was_written_down_in_snake_case_is_still_known(tmp_path: Path) -> None:
    service = await WorkspaceLibrary.open(tmp_path / "state", environ=os.environ)
    workspace = await service.create(Order(source=EmptySource(files={"a.txt": "a"}), providers=("zfs", "copy")))
    await service.close()
    record = tmp_path / "state" / "workspaces" / workspace.id / "workspace.json"
    text = record.read_text()
    assert '"createdAt"' in text
    record.write_text(re.sub(r'"(created|why)([A-Z])(\w+)":', _snake, text))
    async with opened(tmp_path / "state") as again:
        assert again.get(workspace.id) == workspace


def _snake(found: "re.Match[str]") -> str:
    return f'"{found[1]}_{found[2].lower()}{found[3]}":'
