"""The nursery and its keepers: they own the agents' processes, so that nothing an agent starts outlives it.

The runner starts one **nursery** with `python -I -S keeper.py FD` and asks it over the socket FD to fork one **keeper**
per agent: forking this small preloaded process is far cheaper than starting a new interpreter. A request carries one
descriptor, a socket to the keeper.

A keeper owns the agent's pipes. It spools what the agent says to disk (spool.py) and rings a bell; the runner
reads the file. So a runner may come and go: the first one talks over the socket it made, a later one connects to the
socket in the spool's folder. When none is there, the agent works on, until `patience` is over and it is stopped.

To the keeper go JSON lines, some followed by `size` bytes: first `{"argv", "env", "cwd", "folder", "patience"}`, then
`input` (id, size: written to the agent once, however often it is sent), `read` (upto: the runner has read so far),
`stop` (grace, why: INT, TERM, KILL), `kill`, `freeze`, `thaw`. From the keeper: `hello` (pid and all that a late runner
has to know) or `failed` (what, message), `eof`, `taken` (id: the agent's pipe took this input),
`frozen`, `thawed`, `exit` (code or signal) and `gone` when no descendant is left. An empty line is the bell: the spool
has grown. An agent that talks fast is read every few milliseconds, one that talks slowly as soon as it says something.

A keeper is a child subreaper and has no children but the agent, so its descendants are exactly the agent's tree:
whatever daemonises, changes its session or cleans its environment lands below the keeper again. The tree is gone when
the kernel says that the keeper has no children. A cgroup could not be more exact, needs rights we may not have, and is
left out.

What happens when something is killed with -9:
- the agent: the keeper ends what it left behind, TERM first, and reports;
- the runner: its socket closes; the agent works on and its keeper waits for the next runner;
- a keeper: the nursery, a subreaper too, inherits its tree and kills it; the runner sees the socket close;
- the nursery: the runner starts another; running keepers do not depend on it. Only when nursery and keeper are both
  killed can a tree escape, and then the runner, also the next one, kills what it still finds below the agent's process.
"""

import ctypes
import fcntl
import gc
import os
import select
import signal
import socket
import sys
import time
from collections import deque

if __name__ == "__main__":  # -I hides the folder the package lies in
    sys.path.append(os.path.abspath(__file__).rsplit("/ostler/", 1)[0])  # noqa: PTH100 - pathlib costs start-up time

from ostler.runner.processes.line import Line
from ostler.runner.processes.spool import END, RUNNING, SOCKET, Spool, boot, write_some
from ostler.runner.processes.tree import birth_of, descendants, freeze, send_signal, state_of, sweep
from ostler.runner.processes.watched import Bell, Watched

SWEEP_PAUSE = 0.02
SLOWEST_SWEEP_PAUSE = 1.0
LEFTOVER_GRACE = 0.5
ORPHAN_GRACE = 5.0
RETRY_SECONDS = 1.0
GOODBYE_SECONDS = 1.0
LAST_WORDS_SECONDS = 30.0
MOST_UNREAD = 64 * 2**20
CHUNK_BYTES = 65536
GATHER_SECONDS = 0.004
BUSY_SECONDS = 0.04
GATHERED_BYTES = CHUNK_BYTES // 4
# Larger pipes are not faster, and an unprivileged user may only have 64 MiB of them in all.
PIPE_BYTES = 256 * 1024
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_IN_AND_OUT = select.EPOLLIN | select.EPOLLOUT
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Keeper:
    """Owns one agent: starts it, spools it, reports on it, ends its tree."""

    def __init__(self, connection: socket.socket) -> None:
        self._line: Line | None = Line(connection)
        self._bell = Bell()
        self._main = 0
        self._exit: list[int | None] | None = None
        self._ending: list[signal.Signals] = []
        self._ordered: str | None = None
        self._grace = 0.0
        self._due: float | None = None
        self._pause = SWEEP_PAUSE
        self._frozen: set[int] = set()
        self._patience = 0.0
        self._alone_until: float | None = None
        self._written = self._taken = 0
        self._inputs: deque[tuple[int, memoryview]] = deque()
        self._read_upto = 0
        self._told = 0
        self._eof = False
        self._dismissed = False
        self._heard_at = 0.0
        self._gather_until: float | None = None
        self._watched = Watched()

    def run(self) -> None:
        """Start the agent and stay until nothing of it is left."""
        os.setsid()
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
        prctl(_PR_SET_NAME, b"ostler-keeper")
        (request, _), *more = self._first_orders()
        if "argv" not in request or not self._start(request):
            return
        for order, payload in more:
            self._obey(order, payload)
        self._watched.watch(self._bell.inlet, select.EPOLLIN)
        self._watched.watch(self._door.fileno(), select.EPOLLIN)
        while self._collect():
            while not self._wait():
                continue
        self._leave()

    def _first_orders(self) -> "list[tuple[dict[str, object], bytes]]":
        """The order to start, and what was said right after it; an empty one when the runner gave up before."""
        while self._line is not None:
            select.select([self._line], [], [])
            orders = self._line.orders()
            if orders is None:
                break
            if orders:
                return orders
        return [({}, b"")]

    # Start and end

    def _start(self, request: "dict[str, object]") -> bool:
        what = "folder"
        self._patience = float(str(request["patience"]))
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        try:
            self._open_folder(str(request["folder"]))
            what = "cwd"
            os.chdir(str(request["cwd"]))
            what = "program"
            self._main = _spawn(request["argv"], request["env"], [stdin[0], stdout[1], stderr[1]])
        except (OSError, ValueError) as error:
            self._say(event="failed", what=what, message=getattr(error, "strerror", None) or str(error))
            return False
        finally:
            for pipe in (stdin[0], stdout[1], stderr[1]):
                os.close(pipe)
            os.chdir("/")  # never keep a workspace busy
        self._stdin, self._stdout, self._stderr = stdin[1], stdout[0], stderr[0]
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe, False)
        self._watched.watch(self._stderr, select.EPOLLIN)
        self._only_words = [(self._stdout, select.EPOLLIN)]
        _enlarge(self._stdout)
        births = [birth_of(self._main), birth_of(os.getpid())]
        self._spool.note(RUNNING, {"pid": self._main, "keeper": os.getpid(), "births": births, "boot": boot()})
        self._greet()
        return True

    def _open_folder(self, folder: str) -> None:
        os.chdir(folder)  # the address of a socket is short, a folder's name may be long
        self._spool = Spool(os.open(".", os.O_RDONLY | os.O_CLOEXEC))
        self._door = socket.socket(socket.AF_UNIX)
        self._door.setblocking(False)
        self._door.bind(SOCKET)
        self._door.listen(4)

    def _greet(self) -> None:
        """Tell a runner all it has to know."""
        self._told = self._spool.size
        self._say(
            event="hello",
            pid=self._main,
            keeper=os.getpid(),
            written=self._written,
            taken=self._taken,
            output=self._spool.size,
            eof=self._eof,
            exit=self._exit,
            dropped_lines=self._spool.dropped_lines,
        )

    def _leave(self) -> None:
        """Nothing of the agent is left: keep its last words, and say so."""
        self._keep_last_words(time.monotonic() + self._patience)
        while self._take_stderr():
            continue
        code, number = self._exit or (None, None)
        lost = self._spool.dropped_lines
        end = {"code": code, "signal": number, "ordered": self._ordered, "dropped_lines": lost}
        self._spool.note(END, {**end, "synced": self._line is None and self._spool.sync()})
        if self._line is None:
            self._spool.sync()
        self._say(event="gone", output=self._spool.size, dropped_lines=lost, ordered=self._ordered)
        deadline = time.monotonic() + GOODBYE_SECONDS
        while self._line is not None and self._line.is_behind and time.monotonic() < deadline:
            select.select([], [self._line], [], GOODBYE_SECONDS)
            self._line.flush()

    def _keep_last_words(self, ends: float) -> None:
        """Wait until a full disk takes them: long for a runner that listens, not long when alone, not if told."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._dismiss())
        self._due = self._alone_until = None  # nobody is left to be signalled
        while self._drain() and not self._dismissed and time.monotonic() < ends:
            self._wait()
            if self._line is None:
                self._alone_until = None
                ends = min(ends, time.monotonic() + LAST_WORDS_SECONDS)

    def _drain(self) -> bool:
        """Take all output that is there; True if the disk did not."""
        while not self._eof and not self._spool.is_stuck and self._take_output():
            continue
        return self._spool.is_stuck

    def _dismiss(self) -> None:
        """There is nothing left that is worth waiting for."""
        self._dismissed = True

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
        self._exit = [code, None] if code >= 0 else [None, -code]
        self._say(event="exit", code=self._exit[0], signal=self._exit[1])
        if not self._ending:
            self._end([signal.SIGTERM, signal.SIGKILL], LEFTOVER_GRACE)

    # Waiting

    def _wait(self) -> bool:
        """Let something happen; whether a child may have died."""
        self._watch_pipes()
        pause = self._pause_length()
        ready = self._watched.poll(pause)
        while pause is None and ready == self._only_words:
            ready = self._watched.poll() if self._pass_on() else []
        rang = False
        for descriptor, events in ready:
            rang |= descriptor == self._bell.inlet
            self._on_ready(descriptor, events)
        return self._on_time(time.monotonic()) or rang

    def _pass_on(self) -> bool:
        """Spool what an agent that talks slowly said and ring: the way of nearly every event, so it must cost little.

        False when there is more to be done than to wait for the next.
        """
        now = time.monotonic()
        if 0 < self._heard_at < now - 2 * GATHER_SECONDS and self._line is not None and self._line.is_unheard:
            time.sleep(BUSY_SECONDS)  # the runner hears many just now; when it comes to us it should find more
        chunk = os.read(self._stdout, CHUNK_BYTES)
        if not chunk or self._line is None or now - self._heard_at < 2 * GATHER_SECONDS:
            self._heard(chunk)
            return False
        self._spool.add(chunk)
        self._heard_at, self._told = now, self._spool.size
        return self._line.ring() and self._told - self._read_upto < MOST_UNREAD and not self._spool.is_stuck

    def _watch_pipes(self) -> None:
        if self._line is not None:
            self._watched.watch(self._line.fileno(), _IN_AND_OUT if self._line.is_behind else select.EPOLLIN)
        is_heard = not self._eof and not self._spool.is_stuck and self._gather_until is None
        may_say_more = is_heard and self._spool.size - self._read_upto < MOST_UNREAD
        self._watched.watch(self._stdout, select.EPOLLIN if may_say_more else 0)
        self._watched.watch(self._stdin, select.EPOLLOUT if self._inputs else 0)

    def _pause_length(self) -> "float | None":
        dues = [due for due in (self._due, self._alone_until, self._gather_until) if due is not None]
        pause = min(dues) - time.monotonic() if dues else None
        if self._spool.is_stuck:
            pause = min(RETRY_SECONDS, RETRY_SECONDS if pause is None else pause)
        return None if pause is None else max(0.0, pause)

    def _on_ready(self, descriptor: int, events: int) -> None:
        if descriptor == self._stdout:
            self._take_output()
        elif descriptor == self._stdin:
            self._give_input()
        elif descriptor == self._bell.inlet:
            self._bell.silence()
        elif descriptor == self._stderr:
            self._take_stderr()
        elif descriptor == self._door.fileno():
            self._admit()
        elif self._line is not None and descriptor == self._line.fileno():
            self._line.flush()
            if events & ~select.EPOLLOUT:
                self._listen()
            self._tell_output()

    def _on_time(self, now: float) -> bool:
        """Do what is due; whether processes were signalled."""
        if self._gather_until is not None and now >= self._gather_until:
            self._gather_until = None
        if self._spool.is_stuck:
            self._spool.retry()
            self._tell_output()
        if self._alone_until is not None and now >= self._alone_until:
            self._alone_until = None
            self._order("orphaned", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ORPHAN_GRACE)
        if self._due is not None and now >= self._due:
            self._next_signal()
            return True
        return False

    # The agent's pipes

    def _take_output(self) -> bool:
        """Spool what the agent said; False when there is nothing more now."""
        try:
            chunk = os.read(self._stdout, CHUNK_BYTES)
        except BlockingIOError:
            return False
        self._heard(chunk)
        return not self._eof

    def _heard(self, chunk: bytes) -> None:
        if chunk:
            self._spool.add(chunk)
            self._tell_output()
            self._gather_if_fast(len(chunk))
        else:
            self._eof = True
            self._say(event="eof", output=self._spool.size)

    def _gather_if_fast(self, size: int) -> None:
        """Let an agent that says little at a time, but often, say more before it is heard again."""
        now = time.monotonic()
        if now - self._heard_at < 2 * GATHER_SECONDS and size < GATHERED_BYTES:
            self._gather_until = now + GATHER_SECONDS
        self._heard_at = now

    def _tell_output(self) -> None:
        """Ring the runner's bell, unless it has not heard the last one."""
        if self._told != self._spool.size and self._line is not None and not self._line.is_behind:
            self._told = self._spool.size
            self._line.ring()

    def _take_stderr(self) -> bool:
        try:
            chunk = os.read(self._stderr, CHUNK_BYTES) if self._stderr >= 0 else b""
        except BlockingIOError:
            return False
        if chunk:
            self._spool.add_stderr(chunk)
            return True
        if self._stderr >= 0:
            self._watched.watch(self._stderr, 0)
            os.close(self._stderr)
            self._stderr = -1
        return False

    def _give_input(self) -> None:
        self._heard_at, self._gather_until = 0.0, None  # somebody waits for the answer
        try:
            written = write_some(self._stdin, [data for _, data in self._inputs])
        except OSError:  # it closed its stdin: nothing we write will ever be read
            written = sum(len(data) for _, data in self._inputs)
        while self._inputs and written >= len(self._inputs[0][1]):
            self._taken, data = self._inputs.popleft()
            written -= len(data)
            self._say(event="taken", id=self._taken)
        if written:
            number, data = self._inputs[0]
            self._inputs[0] = (number, data[written:])

    # The runner

    def _admit(self) -> None:
        """Another runner comes; there is only ever one, and the newest is right."""
        try:
            connection, _ = self._door.accept()
        except OSError:
            return
        if self._line is not None:
            self._hang_up(self._line)
        self._line, self._alone_until = Line(connection), None
        self._greet()

    def _listen(self) -> None:
        orders = self._line.orders() if self._line is not None else []
        if orders is None and self._line is not None:
            self._hang_up(self._line)
            self._line = None
            self._alone_until = time.monotonic() + self._patience
            return
        for order, payload in orders or ():
            self._obey(order, payload)

    def _hang_up(self, line: Line) -> None:
        self._watched.watch(line.fileno(), 0)
        line.close()

    def _obey(self, order: "dict[str, object]", payload: bytes) -> None:
        match order:
            case {"do": "input", "id": int(number)}:
                if number > self._written:
                    self._written = number
                    self._inputs.append((number, memoryview(payload)))
                    self._give_input()
            case {"do": "read", "upto": int(upto)}:
                self._read_upto = upto
            case {"do": "kill"}:
                self._dismiss()
                self._order("kill", [signal.SIGKILL], 0)
            case {"do": "stop", "grace": grace, "why": str(why)} if not self._ending:
                self._order(why, [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], float(str(grace)))
            case {"do": "freeze"}:
                self._freeze()
                self._say(event="frozen")
            case {"do": "thaw"}:
                self._thaw()
                self._say(event="thawed")

    def _say(self, **fields: object) -> None:
        if self._line is not None:
            self._line.say(fields)

    # Signals

    def _freeze(self) -> None:
        stopped_before = {pid for pid in descendants(os.getpid()) if state_of(pid) == b"T"}
        freeze(os.getpid())
        self._frozen.update(set(descendants(os.getpid())) - stopped_before)

    def _thaw(self) -> None:
        for pid in self._frozen.intersection(descendants(os.getpid())):
            send_signal(pid, signal.SIGCONT)
        self._frozen.clear()

    def _order(self, why: str, signals: "list[signal.Signals]", grace: float) -> None:
        self._ordered = self._ordered or why
        self._end(signals, grace)

    def _end(self, signals: "list[signal.Signals]", grace: float) -> None:
        self._ending = signals
        self._grace = grace
        self._next_signal()

    def _next_signal(self) -> None:
        """Send the next signal of the ending to the whole tree; the last one is sent until nothing is left."""
        number = self._ending[0]
        if number == signal.SIGKILL:
            sweep(os.getpid(), self._collect)
            self._due = time.monotonic() + self._pause
            self._pause = min(self._pause * 2, SLOWEST_SWEEP_PAUSE)
            return
        self._ending = self._ending[1:]
        self._due = time.monotonic() + self._grace
        for pid in descendants(os.getpid()):
            send_signal(pid, number)
            send_signal(pid, signal.SIGCONT)  # a stopped process hears nothing else
        self._frozen.clear()


def _enlarge(pipe: int) -> None:
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return  # a smaller one works too


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
                sweep(os.getpid(), self._collect, self._keepers)
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
            message, descriptors, _, _ = socket.recv_fds(self._door, 1, 1)
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._open = False
            self._poll.unregister(self._door)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        for descriptor in descriptors:
            self._fork(descriptor)
            os.close(descriptor)

    def _fork(self, descriptor: int) -> None:
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
            Keeper(socket.socket(fileno=descriptor)).run()
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
