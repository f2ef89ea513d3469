"""A command in a terminal of its own, as a vendor's login wants it."""

import asyncio
import errno
import os
import signal
from contextlib import suppress

from ostler.runner.logins.screen import Screen
from ostler.runner.processes.ending import GRACE_SECONDS, end
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import Starter
from ostler.runner.starting.ways import in_terminal

_CHUNK = 2**16


class Terminal:
    """One command; what it prints is on `screen`, and `outcome` says how it ended."""

    def __init__(self, process: asyncio.subprocess.Process, master: int, confirms: str = "") -> None:
        self.screen = Screen()
        self.changed = asyncio.Event()
        """Set when more was printed."""
        self._process = process
        self._master: int | None = master
        self._confirms = confirms
        self._over = asyncio.Event()
        os.set_blocking(master, False)
        asyncio.get_running_loop().add_reader(master, self._read)

    @classmethod
    async def start(cls, starter: Starter, start: Start, confirms: str = "") -> "Terminal":
        """Start a command, and say yes when it asks this; raises OSError if that cannot be."""
        return cls(*await starter.start(start, in_terminal), confirms)

    def type(self, text: str) -> None:
        """Type a line."""
        if self._master is not None:
            with suppress(OSError):
                os.write(self._master, text.encode() + b"\r")

    async def outcome(self) -> str | None:
        """Why it failed, when it is over and all that it printed is read."""
        code = await self._process.wait()
        with suppress(TimeoutError):  # something it started may have the terminal still
            async with asyncio.timeout(GRACE_SECONDS):
                await self._over.wait()
        return None if code == 0 else (self.screen.last_line() or f"It ended with {code}.")

    async def close(self) -> None:
        """End it with everything below it; returns when it is gone."""
        await end(self._process, signal.SIGHUP)
        self._end()

    def _read(self) -> None:
        if self._master is None:
            return
        try:
            chunk = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            chunk = b""
            if error.errno != errno.EIO:  # that is how the end shows
                self._end()
                return
        if not chunk:
            self._end()
            return
        self.screen.feed(chunk)
        if self._confirms and self.screen.has(self._confirms):
            self._confirms = ""
            self.type("y")
        self.changed.set()

    def _end(self) -> None:
        if self._master is not None:
            asyncio.get_running_loop().remove_reader(self._master)
            os.close(self._master)
            self._master = None
        self._over.set()
        self.changed.set()
