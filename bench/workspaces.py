"""What workspaces cost: create, snapshot, diff, fork, restore and destroy, for every provider that works here.

As root, btrfs and reflink are measured on file systems in a file, the others where the work folder is.
"""

import asyncio
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from bench.scale import Scale
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.options import Options
from ostler.runner.workspaces.orders import GitSource, Order
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.wire.workspaces import SnapshotProvider

WORK = Path(__file__).resolve().parent / ".work" / "workspaces"
KINDS: tuple[SnapshotProvider, ...] = ("overlay", "overlay-root", "btrfs", "reflink", "git", "copy")
DISKS = {"btrfs": "btrfs", "reflink": "xfs"}
STEPS = ("first", "create", "snapshot", "diff", "fork", "restore", "destroy")
CHANGED = 100
COPYING = ("reflink", "git", "copy")
"""Providers that make every file anew; many files are laid out once only, it takes minutes."""
MANY = 10_000
HEAD = """Milliseconds, median of {rounds}; {changed} files are changed before the snapshot. `first` also clones and
lays out the base, which later workspaces share. btrfs and reflink (xfs) lie on a loop file.
Providers that copy many files were measured once.
"""
_DISK_BYTES = 8 * 2**30
_Result = TypeVar("_Result")


def make_repository(folder: Path, files: int) -> Path:
    """A repository with that many files of 1 to 4 kB."""
    if (folder / "HEAD").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _run("git", "init", "-q", "--bare", "-b", "main", str(folder))
    stream = bytearray()
    for number in range(64):
        text = (f"line {number}\n" * (90 + 5 * number)).encode()
        stream += b"blob\nmark :%d\ndata %d\n%s\n" % (number + 1, len(text), text)
    stream += b"commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 3\none\n"
    for number in range(files):
        stream += b"M 100644 :%d d%d/e%d/f%d.txt\n" % (number % 64 + 1, number % 97, number % 11, number)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=bytes(stream), check=True)
    return folder


@contextmanager
def disk(kind: str) -> Iterator[Path]:
    """A file system of that kind, mounted for the length of the block."""
    image, mount = WORK / f"{kind}.img", WORK / kind
    with image.open("wb") as file:
        file.truncate(_DISK_BYTES)
    _run(f"mkfs.{kind}", "-q", str(image))
    mount.mkdir(exist_ok=True)
    _run("mount", "-o", "loop", str(image), str(mount))
    try:
        yield mount
    finally:
        _run("umount", "-l", str(mount))
        image.unlink()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


async def measure(root: Path, project: Path, kind: SnapshotProvider, rounds: int) -> dict[str, float]:
    """The median of each step in milliseconds; `first` also lays out the base."""
    options = Options(policy=Policy(folders=(str(WORK),)))
    service = await WorkspaceLibrary.open(root, environ=os.environ, options=options)
    times: dict[str, list[float]] = {step: [] for step in STEPS}
    try:
        order = Order(source=GitSource(url=str(project), branch="main"), providers=(kind,), strict=True)
        first = await _timed(times["first"], service.create(order))
        source = GitSource(url=str(project), branch="main", commit=first.commit)
        order = Order(source=source, providers=(kind,), strict=True)
        for _ in range(rounds):
            await _round(service, order, times)
    finally:
        await service.close()
    return {step: statistics.median(values) for step, values in times.items()}


async def _round(service: WorkspaceLibrary, order: Order, times: dict[str, list[float]]) -> None:
    made = await _timed(times["create"], service.create(order))
    await service.files.use(made.id, _change)
    snapshot = await _timed(times["snapshot"], service.snapshot(made.id))
    await _timed(times["diff"], service.files.diff(made.id))
    fork = await _timed(times["fork"], service.fork(snapshot.id))
    await _timed(times["restore"], service.restore(made.id, snapshot.id))
    await _timed(times["destroy"], service.destroy(fork.id))
    await service.destroy(made.id)


def _change(files: Files) -> None:
    for number in range(CHANGED):
        files.write(f"d{number % 97}/new{number}", b"new\n")


async def _timed(times: list[float], work: Awaitable[_Result]) -> _Result:
    began = time.perf_counter()
    result = await work
    times.append((time.perf_counter() - began) * 1000)
    return result


def section(scale: Scale) -> str:
    """The table of all providers and sizes."""
    WORK.mkdir(parents=True, exist_ok=True)
    lines = [HEAD.format(rounds=scale.rounds, changed=CHANGED)]
    lines += [f"| files | provider | {' | '.join(STEPS)} |", f"|--:|---|{'--:|' * len(STEPS)}"]
    for files in scale.files:
        project = make_repository(WORK / f"repository-{files}", files)
        for kind in KINDS:
            cell = _measured(project, kind, 1 if files > MANY and kind in COPYING else scale.rounds)
            lines.append(f"| {files:,} | {kind} | {' | '.join(map(cell, STEPS))} |")
            print(f"workspaces   {lines[-1]}", flush=True)
    return "\n".join(lines)


def _measured(project: Path, kind: SnapshotProvider, rounds: int) -> Callable[[str], str]:
    needs = DISKS.get(kind)
    if (needs or kind == "overlay-root") and (os.geteuid() != 0 or (needs and not shutil.which(f"mkfs.{needs}"))):
        return lambda _: "-"
    with ExitStack() as stack:
        root = stack.enter_context(disk(needs)) / "state" if needs else WORK / "state"
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        times = asyncio.run(measure(root, project, kind, rounds))
    return lambda step: f"{times[step]:.1f}"
