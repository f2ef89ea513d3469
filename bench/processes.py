"""Process trees as /proc shows them: who belongs to a server, what memory they take, and how to end them by id."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Known:
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    born: str


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Memory of some processes together, in bytes; shared pages count once in `proportional`."""

    proportional: int
    resident: int


def _stat(pid: int) -> list[str] | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def known(pid: int) -> Known | None:
    """The process with this number, if there is one now."""
    fields = _stat(pid)
    return None if fields is None or fields[0] == "Z" else Known(pid=pid, born=fields[19])


def tree(root: int) -> list[Known]:
    """A process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - a Path per process costs more than the whole walk
        if entry.isdigit() and (fields := _stat(int(entry))) is not None:
            parents.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(parents.get(pid, []))
    return [process for pid in found if (process := known(pid)) is not None]


def named(processes: list[Known], names: tuple[str, ...]) -> list[Known]:
    """Those whose command line holds one of these names."""
    return [process for process in processes if any(name in _command(process.pid) for name in names)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def memory(processes: list[Known]) -> Memory:
    """What they take together."""
    proportional = resident = 0
    for process in processes:
        with contextlib.suppress(OSError):
            rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            proportional += _kilobytes(rollup, "Pss:") * 1024
            resident += _kilobytes(rollup, "Rss:") * 1024
    return Memory(proportional=proportional, resident=resident)


def processor_seconds(processes: list[Known]) -> float:
    """The time they have been at work together."""
    ticks = 0
    for process in processes:
        if (fields := _stat(process.pid)) is not None:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _kilobytes(rollup: str, name: str) -> int:
    return next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith(name)), 0)


def end(processes: list[Known]) -> None:
    """Kill those that are still alive, by id, and wait until they are gone."""
    for process in processes:
        if known(process.pid) == process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while any(known(process.pid) == process for process in processes) and time.monotonic() < deadline:
        time.sleep(0.005)
