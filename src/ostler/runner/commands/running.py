"""One command that somebody started: its process, what it says, and what it is told."""

import asyncio
import errno
import fcntl
import os
import signal
import struct
import termios
import time
from asyncio.subprocess import Process
from collections import deque
from contextlib import suppress

from ostler.base.errors.commands import CommandConflict
from ostler.runner.processes.ending import GRACE_SECONDS, end
from ostler.wire.commands import CommandLog, CommandOrder, CommandOutput, CommandState, CommandStream

_CHUNK = 2**16
_OVERHEAD = 128
"""What an entry takes beside its bytes, so that many small ones are bounded too."""


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class RunningCommand:
    """Held by pipes, or by the other end of its terminal."""

    def __init__(self, name: str, order: CommandOrder, process: Process, master: int | None) -> None:
        self.id = name
        self.order = order
        self._process = process
        self._master = master
        self._created_at = now()
        self._ended_at: int | None = None
        self._entries: deque[CommandOutput] = deque()
        self._bytes = 0
        self._last = 0
        self._changed = asyncio.Event()
        self._quiet = asyncio.Event()
        """The terminal has nothing more to say."""
        self._typing = asyncio.Lock()
        self._room = asyncio.Event()
        """The terminal takes more, or nothing ever again."""
        if master is not None:
            os.set_blocking(master, False)
            asyncio.get_running_loop().add_reader(master, self._read_terminal, master)
        elif not order.interactive and process.stdin is not None:
            process.stdin.close()
        self._task = asyncio.create_task(self._follow(), name=f"command {name}")

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._ended_at is not None

    @property
    def state(self) -> CommandState:
        """How it stands."""
        code = self._process.returncode
        return CommandState(
            id=self.id,
            argv=self.order.argv,
            cwd=self.order.cwd,
            tty=self.order.tty,
            interactive=self.order.interactive,
            created_at=self._created_at,
            pid=self._process.pid,
            ended_at=self._ended_at,
            code=code if self.is_over and code is not None and code >= 0 else None,
        )

    async def _follow(self) -> None:
        """Until it has ended and all that it said is read, unless something that it started goes on saying more."""
        out, err = self._process.stdout, self._process.stderr
        waiting = [
            asyncio.create_task(self._read("stdout", out)),
            asyncio.create_task(self._read("stderr", err)),
            asyncio.create_task(self._silence()),
        ]
        try:
            await self._process.wait()
            await asyncio.wait(waiting, timeout=GRACE_SECONDS)
        finally:
            for each in waiting:
                each.cancel()
            self._let_go()
            self._ended_at = now()
            self._change()

    async def _read(self, stream: CommandStream, pipe: asyncio.StreamReader | None) -> None:
        while pipe is not None and (data := await pipe.read(_CHUNK)):
            self._add(stream, data)

    async def _silence(self) -> None:
        if self._master is not None:
            await self._quiet.wait()

    def _read_terminal(self, master: int) -> None:
        try:
            data = os.read(master, _CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            data = b""
            if error.errno != errno.EIO:  # that is how the end shows
                self._let_go()
        if data:
            self._add("pty", data)
        else:
            asyncio.get_running_loop().remove_reader(master)
            self._quiet.set()

    def _let_go(self) -> None:
        if self._master is not None:
            asyncio.get_running_loop().remove_reader(self._master)
            asyncio.get_running_loop().remove_writer(self._master)
            os.close(self._master)
            self._master = None
        self._quiet.set()
        self._room.set()

    def _add(self, stream: CommandStream, data: bytes) -> None:
        self._last += 1
        self._entries.append(CommandOutput(sequence=self._last, stream=stream, at=now(), data=data))
        self._bytes += len(data) + _OVERHEAD
        while self._bytes > self.order.limits.log_bytes and len(self._entries) > 1:
            self._bytes -= len(self._entries.popleft().data) + _OVERHEAD
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def log(self, *, since: int, stream: CommandStream | None, tail: int | None, wait: float) -> CommandLog:
        """What it said behind a number, or says next."""
        found = self._behind(since, stream)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                while not found and not self.is_over:
                    await self._changed.wait()
                    found = self._behind(since, stream)
        remaining = found if tail is None else found[max(0, len(found) - tail) :]
        return CommandLog(entries=tuple(remaining), is_over=self.is_over)

    def _behind(self, since: int, stream: CommandStream | None) -> list[CommandOutput]:
        return [each for each in self._entries if each.sequence > since and stream in {None, each.stream}]

    async def signalled(self, number: int, wait: float) -> None:
        """Send a signal to its group, and wait for its end."""
        if self.is_over:
            return
        if number == signal.SIGKILL:
            await end(self._process, signal.SIGKILL)
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
        await asyncio.wait([self._task], timeout=max(wait, GRACE_SECONDS if number == signal.SIGKILL else 0))

    async def type_in(self, data: bytes) -> None:
        """Write to its terminal or its input."""
        if self.is_over:
            raise CommandConflict(reason=f"The process '{self.id}' has ended; it takes no input.")
        if self._master is not None:
            await self._type(data)
            return
        if not self.order.interactive or self._process.stdin is None:
            raise CommandConflict(
                reason=f"The process '{self.id}' takes no input. Start it with `interactive` or `tty`."
            )
        with suppress(BrokenPipeError, ConnectionResetError):  # it has closed its input
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def _type(self, data: bytes) -> None:
        """Write to the terminal as fast as the command reads; its number is another file's once it is closed."""
        async with self._typing:
            while data and (master := self._master) is not None:
                try:
                    data = data[os.write(master, data) :]
                except BlockingIOError:
                    await self._writable(master)
                except OSError:  # nobody has its other end any more
                    return

    async def _writable(self, master: int) -> None:
        self._room.clear()
        asyncio.get_running_loop().add_writer(master, self._room.set)
        try:
            await self._room.wait()
        finally:
            if self._master is not None:
                asyncio.get_running_loop().remove_writer(master)

    def resize(self, columns: int, rows: int) -> None:
        """Tell the terminal its size."""
        if self._master is None:
            raise CommandConflict(reason=f"The process '{self.id}' has no terminal. Start it with `tty`.")
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def close(self) -> None:
        """End it with everything below it."""
        if not self.is_over:
            await end(self._process, signal.SIGHUP if self.order.tty else signal.SIGTERM)
        await asyncio.wait([self._task])
