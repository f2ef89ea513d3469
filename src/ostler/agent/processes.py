"""Commands of tools: started in a session of their own, and ended with everything that they started."""

import asyncio
import ctypes
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

_SET_CHILD_SUBREAPER = 36
_GENTLE_SECONDS = 1.0
_LOOK_SECONDS = 0.02
_PARENT, _STARTED = 1, 19
_libc = ctypes.CDLL(None, use_errno=True)
Hear = Callable[[int, bytes], None]
"""Gets what was printed: to 1, stdout, or 2, stderr."""


def adopt_orphans() -> None:
    """Whatever a command leaves behind becomes a child of ours, so that it can be found."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Command(asyncio.SubprocessProtocol):
    """A command that runs."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._exited = asyncio.Event()
        self._closed = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self.pid = 0
        self.began = 0
        """In the clock of `/proc`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It has been started."""
        assert isinstance(transport, asyncio.SubprocessTransport)  # noqa: S101  asyncio's own words for it
        self._transport = transport
        self.pid = transport.get_pid()
        self.began = _began(self.pid)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """It has printed something."""
        self._hear(fd, data if isinstance(data, bytes) else data.encode())

    def process_exited(self) -> None:
        """It has ended; what it left running may hold its pipes."""
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more can be printed."""
        self._closed.set()

    @property
    def has_ended(self) -> bool:
        """Whether the command itself is over."""
        return self._exited.is_set()

    async def ended(self) -> int:
        """Wait for the end; says with which code."""
        await self._exited.wait()
        code = self._transport.get_returncode() if self._transport is not None else None
        return -1 if code is None else code

    async def drained(self, seconds: float) -> None:
        """Wait until nothing more can be printed, but not for ever."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)

    def close(self) -> None:
        """Listen no longer."""
        if self._transport is not None:
            self._transport.close()


@asynccontextmanager
async def started(
    command: Sequence[str], hear: Hear, *, cwd: str, environ: Mapping[str, str], alone: bool
) -> AsyncIterator[Command]:
    """A command that is ended if the block is left before its end.

    One that runs `alone` is ended with everything that was started since; of others nothing below them is known.
    """
    starting = asyncio.ensure_future(_start(command, hear, cwd, environ))
    try:
        yield await asyncio.shield(starting)  # a start that is cancelled half-way would never come to an end
    finally:
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await asyncio.shield(asyncio.ensure_future(_stop(starting.result(), alone=alone)))


async def _start(command: Sequence[str], hear: Hear, cwd: str, environ: Mapping[str, str]) -> Command:
    _, running = await asyncio.get_running_loop().subprocess_exec(
        lambda: Command(hear),
        *command,
        cwd=cwd,
        env=dict(environ),
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    return running


async def _stop(running: Command, *, alone: bool) -> None:
    try:
        if not running.has_ended:
            await (_end(running) if alone else _kill(running))
    finally:
        running.close()


async def _kill(running: Command) -> None:
    _signal({running.pid}, signal.SIGKILL)
    await running.ended()


async def _end(running: Command) -> None:
    began = running.began
    for number in (signal.SIGINT, signal.SIGTERM):
        _signal({running.pid, *_younger(began)}, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(running.ended(), _GENTLE_SECONDS)
            break
    while left := _younger(began) - ({running.pid} if running.has_ended else set()):
        _signal(left, signal.SIGKILL)
        _reap(left - {running.pid})
        await asyncio.sleep(_LOOK_SECONDS)
    await running.ended()


def _signal(processes: set[int], number: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap(processes: set[int]) -> None:
    """Orphans have nobody else who waits for them."""
    for pid in processes:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _younger(began: int) -> set[int]:
    """All processes below this one that began then or later."""
    table = _table()
    below = {os.getpid()}
    while more := {pid for pid, (parent, _) in table.items() if parent in below and pid not in below}:
        below |= more
    return {pid for pid in below - {os.getpid()} if table[pid][1] >= began}


def _began(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[_STARTED]) if fields else 0


def _table() -> dict[int, tuple[int, int]]:
    """Every process -> its parent, and when it began; not every kernel lists the children of one."""
    found: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            found[int(folder.name)] = (int(fields[_PARENT]), int(fields[_STARTED]))
    return found


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it is gone
        return []
