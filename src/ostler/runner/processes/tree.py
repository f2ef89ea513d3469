"""Everything below a process: found, frozen and killed, so that nothing escapes. Standard library only."""

import os
import signal
import time
from collections.abc import Callable, Iterator

FREEZE_SECONDS = 2.0
SWEEP_PAUSE = 0.02
SLOWEST_SWEEP_PAUSE = 1.0
CHASE_SECONDS = 0.25  # then the dead are collected, which makes the next chase quicker
# stopped, traced, dead; and waiting in the kernel, as a parent in vfork does while its child is stopped
_STILL = frozenset({b"T", b"t", b"Z", b"X", b"D"})
_CHILDREN = "/proc/thread-self/children"


def descendants(root: int, spare: "set[int] | None" = None) -> "Iterator[int]":
    """Every process below `root`, dead ones that nobody collected included; not the spared ones and what is below.

    The newest come first, and each before its own children are looked for: so a signal sent at once hits even the
    newest member of a fork loop, and what is stopped has no children we do not see.
    """
    fast = os.path.exists(_CHILDREN)  # noqa: PTH110 - pathlib costs start-up time
    known = {} if fast else _by_parent()
    seen = {root, *(spare or ())}
    queue = [root]
    while queue:
        parent = queue.pop()
        for pid in reversed(_children(parent) if fast else known.get(parent, [])):
            if pid not in seen:
                seen.add(pid)
                queue.append(pid)
                yield pid


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - pathlib costs start-up time
    except OSError:
        return found
    for thread in threads:
        found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _by_parent() -> "dict[int, list[int]]":
    """The slow way for kernels without children files: read every process of the machine."""
    known: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs start-up time
        if name.isdigit() and (fields := _stat(int(name))):
            known.setdefault(int(fields[1]), []).append(int(name))
    return known


def _stat(pid: int) -> "list[bytes]":
    """The fields after the program's name: state, parent, ...; empty if the process is gone."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            return file.read()
    except OSError:
        return b""


def send_signal(pid: int, number: int) -> None:
    """Signal a process that may be gone, or belong to somebody else, by now."""
    try:
        os.kill(pid, number)
    except OSError:
        return


def freeze(
    root: int,
    spare: "set[int] | None" = None,
    seconds: float = FREEZE_SECONDS,
    bury: "Callable[[], object]" = lambda: None,
) -> None:
    """Stop everything below `root` until nothing can fork any more.

    What is found is signalled at once, or a fork loop would be a generation ahead of us. Two scans in a row must see
    the same processes at rest: what the first missed was born before its parent came to rest, and the second sees it.
    The dead that `bury` collects need not be looked at again: a fork loop leaves thousands, and we must be quicker.
    """
    resting: set[int] = set()
    signalled: set[int] = set()
    before: set[int] = set()
    calm = False
    deadline = time.monotonic() + seconds
    while not calm and time.monotonic() < deadline:
        seen, running = set(), False
        bury()
        for pid in descendants(root, spare):
            seen.add(pid)
            if pid not in signalled:
                send_signal(pid, signal.SIGSTOP)
                signalled.add(pid)
                running = True
            elif pid not in resting:
                state = state_of(pid)
                running |= state not in _STILL
                if state in _STILL - {b"D"}:
                    resting.add(pid)
        calm = not running and seen == before
        before = seen


def state_of(pid: int) -> bytes:
    """The state letter of a process."""
    return (_stat(pid) or [b"gone"])[0]


def sweep(root: int, bury: "Callable[[], object]", spare: "set[int] | None" = None) -> None:
    """Kill everything below `root` once; a fork loop cannot outrun it, because nothing runs when the killing starts."""
    freeze(root, spare, CHASE_SECONDS, bury)
    for pid in descendants(root, spare):
        send_signal(pid, signal.SIGKILL)


def birth_of(pid: int) -> int:
    """When a process began, in ticks since boot; with its number it names one process for ever. 0 if it is gone."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in {b"Z", b"X"} else 0


def kill_below(pid: int) -> None:
    """Kill a process and everything below it, found before the first of them dies."""
    for found in (pid, *descendants(pid)):
        send_signal(found, signal.SIGKILL)


def collect(died: "Callable[[int, int], None]") -> bool:
    """Take in our own children that are dead, each with its status; False when there is no child left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        died(pid, status)


class Tree:
    """All that is below this process, which must be its subreaper: frozen and thawed as one, and ended for good."""

    def __init__(self, died: "Callable[[int, int], None]") -> None:
        """`died` is called with the number and the status of each that was collected."""
        self._died = died
        self._frozen: set[int] = set()
        self._signals: list[signal.Signals] = []
        self._grace = 0.0
        self._pause = SWEEP_PAUSE
        self.due: float | None = None
        """When the next signal is to be sent."""
        self.ordered: str | None = None
        """Why it ends, if somebody wanted it to."""

    @property
    def is_ending(self) -> bool:
        """Whether signals are being sent."""
        return bool(self._signals)

    def collect(self) -> bool:
        """Take in the dead; False when the whole tree is gone."""
        return collect(self._died)

    def freeze(self) -> None:
        """Stop everything where it stands."""
        stopped_before = {pid for pid in descendants(os.getpid()) if state_of(pid) == b"T"}
        freeze(os.getpid())
        self._frozen.update(set(descendants(os.getpid())) - stopped_before)

    def thaw(self) -> None:
        """Let go on what `freeze` stopped, and nothing else."""
        for pid in self._frozen.intersection(descendants(os.getpid())):
            send_signal(pid, signal.SIGCONT)
        self._frozen.clear()

    def order_end(self, why: str, signals: "list[signal.Signals]", grace: float) -> None:
        """End it because somebody wants it; the first reason stays."""
        self.ordered = self.ordered or why
        self.end(signals, grace)

    def end(self, signals: "list[signal.Signals]", grace: float) -> None:
        """Send these signals, with a grace after each."""
        self._signals = signals
        self._grace = grace
        self.send_next()

    def send_next(self) -> None:
        """Send the next signal to the whole tree; the last one is sent until nothing is left."""
        number = self._signals[0]
        if number == signal.SIGKILL:
            sweep(os.getpid(), self.collect)
            self.due = time.monotonic() + self._pause
            self._pause = min(self._pause * 2, SLOWEST_SWEEP_PAUSE)
            return
        self._signals = self._signals[1:]
        self.due = time.monotonic() + self._grace
        for pid in descendants(os.getpid()):
            send_signal(pid, number)
            send_signal(pid, signal.SIGCONT)  # a stopped process hears nothing else
        self._frozen.clear()
