"""A keeper's end of its agent's pipes. Standard library only."""

import fcntl
import os
import signal
import time
from collections import deque
from collections.abc import Callable

from ostler.runner.processes.spool import Spool, write_some

CHUNK_BYTES = 65536
GATHER_SECONDS = 0.004
GATHERED_BYTES = CHUNK_BYTES // 4
# Larger pipes are not faster, and an unprivileged user may only have 64 MiB of them in all.
PIPE_BYTES = 256 * 1024


def spawn(argv: object, env: object, pipes: "list[int]") -> int:
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


class Input:
    """What the agent was sent and its pipe has not taken yet; each once, however often it is sent."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self.written = self.taken = 0
        """The newest that came, and the newest that was taken whole."""
        self._waiting: deque[tuple[int, memoryview]] = deque()

    @property
    def is_waiting(self) -> bool:
        """Whether the pipe has not taken everything."""
        return bool(self._waiting)

    def add(self, number: int, data: bytes) -> bool:
        """Take it in; False for what was sent before."""
        if number <= self.written:
            return False
        self.written = number
        self._waiting.append((number, memoryview(data)))
        return True

    def write(self) -> "list[int]":
        """Write as much as the pipe takes now; which of them it has taken whole."""
        try:
            written = write_some(self.pipe, [data for _, data in self._waiting])
        except OSError:  # it closed its stdin: nothing we write will ever be read
            written = sum(len(data) for _, data in self._waiting)
        whole = []
        while self._waiting and written >= len(self._waiting[0][1]):
            self.taken, data = self._waiting.popleft()
            written -= len(data)
            whole.append(self.taken)
        if written:
            number, data = self._waiting[0]
            self._waiting[0] = (number, data[written:])
        return whole


class Output:
    """Spools what the agent says; `grown` is called after each piece, `ended` once there will be no more."""

    def __init__(self, pipe: int, spool: Spool, grown: "Callable[[], None]", ended: "Callable[[], None]") -> None:
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self._spool = spool
        self._grown = grown
        self._ended = ended
        self.eof = False
        self.heard_at = 0.0
        self.gather_until: float | None = None
        """When it is heard again: while it says little at a time, but often."""
        try:
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            return  # a smaller one works too

    def take(self) -> bool:
        """Spool a piece; False when there is nothing more now."""
        try:
            chunk = os.read(self.pipe, CHUNK_BYTES)
        except BlockingIOError:
            return False
        self.add(chunk)
        return not self.eof

    def drain(self) -> bool:
        """Take all that is there; True if the disk did not."""
        while not self.eof and not self._spool.is_stuck and self.take():
            continue
        return self._spool.is_stuck

    def add(self, chunk: bytes) -> None:
        """Spool what was read; nothing is the end."""
        if chunk:
            self._spool.add(chunk)
            self._grown()
            self._gather_if_fast(len(chunk))
        else:
            self.eof = True
            self._ended()

    def _gather_if_fast(self, size: int) -> None:
        now = time.monotonic()
        if self.is_fast(now) and size < GATHERED_BYTES:
            self.gather_until = now + GATHER_SECONDS
        self.heard_at = now

    def is_fast(self, now: float) -> bool:
        """Whether it said something a moment ago."""
        return now - self.heard_at < 2 * GATHER_SECONDS

    def hurry(self) -> None:
        """Somebody waits for an answer: hear it at once."""
        self.heard_at, self.gather_until = 0.0, None


class Stderr:
    """Spools what the agent prints beside its frames."""

    def __init__(self, pipe: int, spool: Spool, closed: "Callable[[int], None]") -> None:
        """`closed` is called before the pipe is given back."""
        os.set_blocking(pipe, False)
        self.pipe = pipe
        self._spool = spool
        self._closed = closed

    def take(self) -> bool:
        """Spool a piece; False when there is nothing more now."""
        try:
            chunk = os.read(self.pipe, CHUNK_BYTES) if self.pipe >= 0 else b""
        except BlockingIOError:
            return False
        if chunk:
            self._spool.add_stderr(chunk)
            return True
        if self.pipe >= 0:
            self._closed(self.pipe)
            os.close(self.pipe)
            self.pipe = -1
        return False
