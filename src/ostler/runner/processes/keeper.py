"""The nursery and its keepers: they own the agents' processes, so that nothing an agent starts outlives it.

The runner starts one **nursery** with `python -I -S keeper.py FD` and asks it over the socket FD to fork one **keeper**
per agent: forking this small preloaded process is far cheaper than starting a new interpreter. A request carries one
descriptor, a socket to the keeper.

A keeper owns the agent's pipes. It spools what the agent says to disk (spool.py) and rings a bell; the runner
reads the file. So a runner may come and go: the first one talks over the socket it made, a later one connects to the
socket in the spool's folder. When none is there, the agent works on, until `patience` is over and it is stopped. After
`freeze` seconds without one it stands still until a runner says `wake`: others may have its session by then.

To the keeper go JSON lines, some followed by `size` bytes: first `{"argv", "env", "cwd", "folder", "patience"}`, then
`input` (id, size: written to the agent once, however often it is sent), `read` (upto: the runner has read so far),
`stop` (grace, why: INT, TERM, KILL), `kill`, `freeze`, `thaw`, `wake` (the runner goes on with it). From the keeper:
`hello` (pid and all that a late runner has to know) or `failed` (what, message), `eof`, `taken` (id: the agent's pipe
took this input), `frozen`, `thawed`, `exit` (code or signal) and `gone` when no descendant is left. An empty line is
the bell: the spool has grown. An agent that talks fast is read every few milliseconds, one that talks slowly as soon as
it says something.

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
import gc
import os
import select
import signal
import socket
import sys
import time

if __name__ == "__main__":  # -I hides the folder the package lies in
    sys.path.append(os.path.abspath(__file__).rsplit("/ostler/", 1)[0])  # noqa: PTH100 - pathlib costs start-up time

from ostler.runner.processes.line import Line
from ostler.runner.processes.nursery_process import Nursery
from ostler.runner.processes.pipes import CHUNK_BYTES, GATHER_SECONDS, Input, Output, Stderr, spawn
from ostler.runner.processes.spool import END, RUNNING, SOCKET, Spool, boot
from ostler.runner.processes.tree import Tree, birth_of
from ostler.runner.processes.watched import Bell, Watched

LEFTOVER_GRACE = 0.5
ORPHAN_GRACE = 5.0
RETRY_SECONDS = 1.0
GOODBYE_SECONDS = 1.0
LAST_WORDS_SECONDS = 30.0
MOST_UNREAD = 64 * 2**20
BUSY_SECONDS = 0.04
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
        self._tree = Tree(self._died)
        self._exit: list[int | None] | None = None
        self._patience = 0.0
        self._alone_until: float | None = None
        self._freeze_after = 0.0
        self._freeze_at: float | None = None
        self._is_paused = self._stands_still = False
        self._read_upto = 0
        self._reported = 0
        self._dismissed = False
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
        while self._tree.collect():
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
        self._patience, self._freeze_after = float(str(request["patience"])), float(str(request.get("freeze") or 0))
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        try:
            self._open_folder(str(request["folder"]))
            what = "cwd"
            os.chdir(str(request["cwd"]))
            what = "program"
            self._main = spawn(request["argv"], request["env"], [stdin[0], stdout[1], stderr[1]])
        except (OSError, ValueError) as error:
            self._say(event="failed", what=what, message=getattr(error, "strerror", None) or str(error))
            return False
        finally:
            for pipe in (stdin[0], stdout[1], stderr[1]):
                os.close(pipe)
            os.chdir("/")  # never keep a workspace busy
        self._input = Input(stdin[1])
        self._output = Output(stdout[0], self._spool, self._tell_output, self._tell_eof)
        self._stderr = Stderr(stderr[0], self._spool, lambda pipe: self._watched.watch(pipe, 0))
        self._watched.watch(self._stderr.pipe, select.EPOLLIN)
        self._only_words = [(self._output.pipe, select.EPOLLIN)]
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
        self._reported = self._spool.size
        self._say(
            event="hello",
            pid=self._main,
            keeper=os.getpid(),
            written=self._input.written,
            taken=self._input.taken,
            output=self._spool.size,
            eof=self._output.eof,
            exit=self._exit,
            dropped_lines=self._spool.dropped_lines,
        )

    def _leave(self) -> None:
        """Nothing of the agent is left: keep its last words, and say so."""
        self._keep_last_words(time.monotonic() + self._patience)
        while self._stderr.take():
            continue
        code, number = self._exit or (None, None)
        lost = self._spool.dropped_lines
        end = {"code": code, "signal": number, "ordered": self._tree.ordered, "dropped_lines": lost}
        self._spool.note(END, {**end, "synced": self._line is None and self._spool.sync()})
        if self._line is None:
            self._spool.sync()
        self._say(event="gone", output=self._spool.size, dropped_lines=lost, ordered=self._tree.ordered)
        deadline = time.monotonic() + GOODBYE_SECONDS
        while self._line is not None and self._line.is_behind and time.monotonic() < deadline:
            select.select([], [self._line], [], GOODBYE_SECONDS)
            self._line.flush()

    def _keep_last_words(self, ends: float) -> None:
        """Wait until a full disk takes them: long for a runner that listens, not long when alone, not if told."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._dismiss())
        self._tree.due = self._alone_until = self._freeze_at = None  # nobody is left to be signalled
        while self._output.drain() and not self._dismissed and time.monotonic() < ends:
            self._wait()
            if self._line is None:
                self._alone_until = None
                ends = min(ends, time.monotonic() + LAST_WORDS_SECONDS)

    def _dismiss(self) -> None:
        """There is nothing left that is worth waiting for."""
        self._dismissed = True

    def _died(self, pid: int, status: int) -> None:
        """A process of the tree has ended; with the agent itself its children must go."""
        if pid != self._main:
            return
        code = os.waitstatus_to_exitcode(status)
        self._exit = [code, None] if code >= 0 else [None, -code]
        self._say(event="exit", code=self._exit[0], signal=self._exit[1])
        if not self._tree.is_ending:
            self._tree.end([signal.SIGTERM, signal.SIGKILL], LEFTOVER_GRACE)

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
        now, output = time.monotonic(), self._output
        if 0 < output.heard_at < now - 2 * GATHER_SECONDS and self._line is not None and self._line.is_unheard:
            time.sleep(BUSY_SECONDS)  # the runner hears many just now; when it comes to us it should find more
        chunk = os.read(output.pipe, CHUNK_BYTES)
        if not chunk or self._line is None or output.is_fast(now):
            output.add(chunk)
            return False
        self._spool.add(chunk)
        output.heard_at, self._reported = now, self._spool.size
        return self._line.ring() and self._reported - self._read_upto < MOST_UNREAD and not self._spool.is_stuck

    def _watch_pipes(self) -> None:
        if self._line is not None:
            self._watched.watch(self._line.fileno(), _IN_AND_OUT if self._line.is_behind else select.EPOLLIN)
        is_heard = not self._output.eof and not self._spool.is_stuck and self._output.gather_until is None
        may_say_more = is_heard and self._spool.size - self._read_upto < MOST_UNREAD
        self._watched.watch(self._output.pipe, select.EPOLLIN if may_say_more else 0)
        self._watched.watch(self._input.pipe, select.EPOLLOUT if self._input.is_waiting else 0)

    def _pause_length(self) -> "float | None":
        due_at = (self._tree.due, self._alone_until, self._freeze_at, self._output.gather_until)
        dues = [due for due in due_at if due is not None]
        pause = min(dues) - time.monotonic() if dues else None
        if self._spool.is_stuck:
            pause = min(RETRY_SECONDS, RETRY_SECONDS if pause is None else pause)
        return None if pause is None else max(0.0, pause)

    def _on_ready(self, descriptor: int, events: int) -> None:
        if descriptor == self._output.pipe:
            self._output.take()
        elif descriptor == self._input.pipe:
            self._give_input()
        elif descriptor == self._bell.inlet:
            self._bell.silence()
        elif descriptor == self._stderr.pipe:
            self._stderr.take()
        elif descriptor == self._door.fileno():
            self._admit()
        elif self._line is not None and descriptor == self._line.fileno():
            self._line.flush()
            if events & ~select.EPOLLOUT:
                self._listen()
            self._tell_output()

    def _on_time(self, now: float) -> bool:
        """Do what is due; whether processes were signalled."""
        if self._output.gather_until is not None and now >= self._output.gather_until:
            self._output.gather_until = None
        if self._spool.is_stuck:
            self._spool.retry()
            self._tell_output()
        if self._freeze_at is not None and now >= self._freeze_at:
            self._freeze_at, self._stands_still = None, True
            self._tree.freeze()
        if self._alone_until is not None and now >= self._alone_until:
            self._alone_until = self._freeze_at = None
            gentle = [] if self._stands_still else [signal.SIGINT, signal.SIGTERM]  # nothing more is done
            self._tree.order_end("orphaned", [*gentle, signal.SIGKILL], ORPHAN_GRACE)
        if self._tree.due is not None and now >= self._tree.due:
            self._tree.send_next()
            return True
        return False

    # The agent's pipes

    def _tell_output(self) -> None:
        """Ring the runner's bell, unless it has not heard the last one."""
        if self._reported != self._spool.size and self._line is not None and not self._line.is_behind:
            self._reported = self._spool.size
            self._line.ring()

    def _tell_eof(self) -> None:
        self._say(event="eof", output=self._spool.size)

    def _give_input(self) -> None:
        self._output.hurry()  # somebody waits for the answer
        for number in self._input.write():
            self._say(event="taken", id=number)

    # The runner

    def _admit(self) -> None:
        """Another runner comes; there is only ever one, and the newest is right."""
        try:
            connection, _ = self._door.accept()
        except OSError:
            return
        if self._line is not None:
            self._hang_up(self._line)
        self._line, self._alone_until, self._freeze_at = Line(connection), None, None
        self._greet()

    def _listen(self) -> None:
        orders = self._line.orders() if self._line is not None else []
        if orders is None and self._line is not None:
            self._hang_up(self._line)
            self._line = None
            self._alone_until = time.monotonic() + self._patience
            if self._freeze_after and not self._stands_still:
                self._freeze_at = time.monotonic() + self._freeze_after
            return
        for order, payload in orders or ():
            self._obey(order, payload)

    def _hang_up(self, line: Line) -> None:
        self._watched.watch(line.fileno(), 0)
        line.close()

    def _obey(self, order: "dict[str, object]", payload: bytes) -> None:
        match order:
            case {"do": "input", "id": int(number)}:
                if self._input.add(number, payload):
                    self._give_input()
            case {"do": "read", "upto": int(upto)}:
                self._read_upto = upto
            case {"do": "kill"}:
                self._dismiss()
                self._tree.order_end("kill", [signal.SIGKILL], 0)
            case {"do": "stop", "grace": grace, "why": str(why)} if not self._tree.is_ending:
                self._tree.order_end(why, [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], float(str(grace)))
            case {"do": "freeze"}:
                self._is_paused = True
                self._tree.freeze()
                self._say(event="frozen")
            case {"do": "thaw"}:
                self._is_paused = self._stands_still = False
                self._tree.thaw()
                self._say(event="thawed")
            case {"do": "wake"} if self._stands_still:
                self._stands_still = False
                if not self._is_paused:
                    self._tree.thaw()

    def _say(self, **fields: object) -> None:
        if self._line is not None:
            self._line.say(fields)


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
    Nursery(socket.socket(fileno=door), lambda connection: Keeper(connection).run()).run()


if __name__ == "__main__":
    main()
