"""The nursery and its keepers: they own the agents' processes, so that nothing an agent starts outlives it.

The runner starts one **nursery** with `python -I -S keeper.py FD` and asks it over the socket FD to fork one **keeper**
per agent: forking this small preloaded process is far cheaper than starting a new interpreter. Every request carries
four descriptors: the agent's stdin, stdout and stderr, and a control socket. The keeper reads the rest from there.

Over the control socket go JSON lines. To the keeper: first `{"argv", "env", "cwd"}`, then `{"do": "stop", "grace": s}`
(INT, TERM, KILL), `{"do": "kill"}`, `{"do": "freeze"}`, `{"do": "thaw"}`. From the keeper: `started` (pid, keeper) or
`failed` (what, message), `frozen`, `thawed`, `exit` (code or signal) and `gone` when no descendant is left.

A keeper is a child subreaper and has no children but the agent, so its descendants are exactly the agent's tree:
whatever daemonises, changes its session or cleans its environment lands below the keeper again. The tree is gone when
the kernel says that the keeper has no children. A cgroup could not be more exact, needs rights we may not have, and is
left out.

What happens when something is killed with -9:
- the agent: the keeper ends what it left behind, TERM first, and reports;
- the runner: its sockets close, and each keeper kills its tree; the nursery leaves when its last keeper has;
- a keeper: the nursery, a subreaper too, inherits its tree and kills it; the runner sees the control socket close;
- the nursery: the runner starts another; running keepers do not depend on it. Only when nursery and keeper are both
  killed can a tree escape, and then the runner kills what it still finds below the agent's process.

A keeper could later also read the agent's stdout, spool it to disk and wait for a restarted runner: it is already the
only process that owns the agent's pipes at the start, and the control socket is its only tie to the runner.
"""

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator

DESCRIPTORS = 4
SWEEP_PAUSE = 0.02
SLOWEST_SWEEP_PAUSE = 1.0
FREEZE_SECONDS = 2.0
CHASE_SECONDS = 0.25  # then the dead are collected, which makes the next chase quicker
LEFTOVER_GRACE = 0.5
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
# stopped, traced, dead; and waiting in the kernel, as a parent in vfork does while its child is stopped
_STILL = frozenset({b"T", b"t", b"Z", b"X", b"D"})
_CHILDREN = "/proc/thread-self/children"
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


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


def _children(pid: int) -> "list[int]":
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


def freeze(root: int, spare: "set[int] | None" = None, seconds: float = FREEZE_SECONDS) -> None:
    """Stop everything below `root` until nothing can fork any more.

    What is found is signalled at once, or a fork loop would be a generation ahead of us. Two scans in a row must see
    the same processes at rest: what the first missed was born before its parent came to rest, and the second sees it.
    """
    resting: set[int] = set()
    signalled: set[int] = set()
    before: set[int] = set()
    calm = False
    deadline = time.monotonic() + seconds
    while not calm and time.monotonic() < deadline:
        seen, moving = set(), False
        for pid in descendants(root, spare):
            seen.add(pid)
            if pid not in signalled:
                send_signal(pid, signal.SIGSTOP)
                signalled.add(pid)
                moving = True
            elif pid not in resting:
                state = _state(pid)
                moving |= state not in _STILL
                if state in _STILL - {b"D"}:
                    resting.add(pid)
        calm = not moving and seen == before
        before = seen


def _state(pid: int) -> bytes:
    return (_stat(pid) or [b"gone"])[0]


def sweep(root: int, spare: "set[int] | None" = None) -> None:
    """Kill everything below `root` once; a fork loop cannot outrun it, because nothing runs when the killing starts."""
    freeze(root, spare, CHASE_SECONDS)
    for pid in descendants(root, spare):
        send_signal(pid, signal.SIGKILL)


class Bell:
    """Wakes a poll when a child has died."""

    def __init__(self) -> None:
        self.inlet, self._outlet = os.pipe()
        os.set_blocking(self.inlet, False)
        os.set_blocking(self._outlet, False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._outlet, warn_on_full_buffer=False)

    def silence(self) -> None:
        """Forget the rings so far."""
        try:
            os.read(self.inlet, 4096)
        except BlockingIOError:
            return

    def close(self) -> None:
        """Give the descriptors back."""
        signal.set_wakeup_fd(-1)
        os.close(self.inlet)
        os.close(self._outlet)


class Keeper:
    """Owns one agent: starts it, reports on it, ends its tree."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._bell = Bell()
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(self._bell.inlet, select.POLLIN)
        self._received = b""
        self._main = 0
        self._ending: list[signal.Signals] = []
        self._grace = 0.0
        self._due: float | None = None
        self._pause = SWEEP_PAUSE
        self._frozen: set[int] = set()

    def run(self, pipes: "list[int]") -> None:
        """Start the agent and stay until nothing of it is left."""
        os.setsid()
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
        prctl(_PR_SET_NAME, b"ostler-keeper")
        request = self._first_line()
        if request is None or not self._start(json.loads(request), pipes):
            return
        while self._collect():
            self._wait()
        self._report(event="gone")

    def _first_line(self) -> "bytes | None":
        while b"\n" not in self._received:
            chunk = self._control.recv(65536)
            if not chunk:
                return None
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _start(self, request: "dict[str, object]", pipes: "list[int]") -> bool:
        what = "cwd"
        try:
            os.chdir(str(request["cwd"]))
            what = "program"
            self._main = _spawn(request["argv"], request["env"], pipes)
        except (OSError, ValueError) as error:
            self._report(event="failed", what=what, message=getattr(error, "strerror", None) or str(error))
            return False
        finally:
            for descriptor in pipes:
                os.close(descriptor)
            os.chdir("/")  # never keep a workspace busy
        self._report(event="started", pid=self._main, keeper=os.getpid())
        return True

    def _collect(self) -> bool:
        """Take in the dead; False when the whole tree is gone."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._main:
                self._main_ended(status)

    def _main_ended(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self._report(event="exit", code=code if code >= 0 else None, signal=-code if code < 0 else None)
        if not self._ending:
            self._end([signal.SIGTERM, signal.SIGKILL], LEFTOVER_GRACE)

    def _wait(self) -> None:
        pause = None if self._due is None else max(0.0, self._due - time.monotonic()) * 1000
        for descriptor, _ in self._poll.poll(pause):
            if descriptor == self._bell.inlet:
                self._bell.silence()
            else:
                self._listen()
        if self._due is not None and time.monotonic() >= self._due:
            self._next_signal()

    def _listen(self) -> None:
        try:
            chunk = self._control.recv(65536)
        except OSError:
            chunk = b""
        if not chunk:
            self._poll.unregister(self._control)
            self._end([signal.SIGKILL], 0)
        self._received += chunk
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, order: "dict[str, object]") -> None:
        verb = order["do"]
        if verb == "kill":
            self._end([signal.SIGKILL], 0)
        elif verb == "stop" and not self._ending:
            self._end([signal.SIGINT, signal.SIGTERM, signal.SIGKILL], float(str(order["grace"])))
        elif verb == "freeze":
            self._freeze()
            self._report(event="frozen")
        elif verb == "thaw":
            self._thaw()
            self._report(event="thawed")

    def _freeze(self) -> None:
        stopped_before = {pid for pid in descendants(os.getpid()) if _state(pid) == b"T"}
        freeze(os.getpid())
        self._frozen.update(set(descendants(os.getpid())) - stopped_before)

    def _thaw(self) -> None:
        for pid in self._frozen.intersection(descendants(os.getpid())):
            send_signal(pid, signal.SIGCONT)
        self._frozen.clear()

    def _end(self, signals: "list[signal.Signals]", grace: float) -> None:
        self._ending = signals
        self._grace = grace
        self._next_signal()

    def _next_signal(self) -> None:
        """Send the next signal of the ending to the whole tree; the last one is sent until nothing is left."""
        number = self._ending[0]
        if number == signal.SIGKILL:
            sweep(os.getpid())
            self._due = time.monotonic() + self._pause
            self._pause = min(self._pause * 2, SLOWEST_SWEEP_PAUSE)
            return
        self._ending = self._ending[1:]
        self._due = time.monotonic() + self._grace
        for pid in descendants(os.getpid()):
            send_signal(pid, number)
            send_signal(pid, signal.SIGCONT)  # a stopped process hears nothing else
        self._frozen.clear()

    def _report(self, **fields: object) -> None:
        try:
            self._control.sendall(json.dumps(fields).encode() + b"\n")
        except OSError:
            return  # the runner is gone; the closed socket is handled where it is read


def _spawn(argv: object, env: object, pipes: "list[int]") -> int:
    """Start the agent in its own session with a clean signal state and nothing open but its three pipes."""
    if not isinstance(argv, list) or not isinstance(env, dict):
        raise TypeError("argv must be a list and env a mapping")
    os.environ["PATH"] = env.get("PATH", os.defpath)  # posix_spawnp looks along our own PATH
    return os.posix_spawnp(
        argv[0],
        argv,
        env,
        file_actions=[(os.POSIX_SPAWN_DUP2, pipe, number) for number, pipe in enumerate(pipes)],
        setsid=True,
        setsigmask=(),
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )


class Nursery:
    """Forks keepers, and kills the tree of a keeper that died before its work was done."""

    def __init__(self, door: socket.socket) -> None:
        self._door = door
        self._open = True
        self._keepers: set[int] = set()
        self._strays = False
        self._bell = Bell()
        self._poll = select.poll()
        self._poll.register(door, select.POLLIN)
        self._poll.register(self._bell.inlet, select.POLLIN)

    def run(self) -> None:
        """Serve until the runner has gone and the last keeper too."""
        while self._open or self._keepers or self._strays:
            for descriptor, _ in self._poll.poll(SWEEP_PAUSE * 1000 if self._strays else None):
                if descriptor == self._bell.inlet:
                    self._bell.silence()
                else:
                    self._admit()
            self._collect()
            if self._strays:
                sweep(os.getpid(), self._keepers)
                self._strays = any(descendants(os.getpid(), self._keepers))

    def _collect(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._keepers:
                self._keepers.discard(pid)
                self._strays |= status != 0

    def _admit(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._door, 1, DESCRIPTORS)
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._open = False
            self._poll.unregister(self._door)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        if len(descriptors) == DESCRIPTORS:
            self._fork(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork(self, descriptors: "list[int]") -> None:
        try:
            pid = os.fork()
        except OSError:
            return  # the control socket closes, and the runner says that no keeper came
        if pid:
            self._keepers.add(pid)
            return
        code = 1
        try:
            self._door.close()
            self._bell.close()
            Keeper(socket.socket(fileno=descriptors[3])).run(descriptors[:3])
            code = 0
        except BaseException:  # noqa: BLE001 - the edge of a process
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)


_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: "int | bytes") -> None:
    """Linux's prctl."""
    nothing = ctypes.c_ulong(0)
    argument = ctypes.c_ulong(value) if isinstance(value, int) else value
    if _libc.prctl(option, argument, nothing, nothing, nothing) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _close_others(keep: int) -> None:
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - pathlib costs start-up time
        if int(name) > 2 and int(name) != keep:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing's own


def main() -> None:
    """Be the nursery on the socket that the runner left open for us."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)  # a Ctrl-C in the terminal must not end us before our work is done
    door = int(sys.argv[1])
    _close_others(door)
    os.set_inheritable(door, False)
    os.chdir("/")
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    prctl(_PR_SET_NAME, b"ostler-nursery")
    gc.disable()
    gc.freeze()  # collections in keepers would copy the pages they share with us
    Nursery(socket.socket(fileno=door)).run()


if __name__ == "__main__":
    main()
