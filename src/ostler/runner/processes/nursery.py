"""The runner's side of the nursery: starts it, asks it for keepers, starts another when it has died."""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ostler.base.logs import Log
from ostler.runner.processes import keeper
from ostler.runner.processes.bells import Bells
from ostler.runner.processes.waiting import finished

log = Log(__name__)
_PROGRAM = str(Path(keeper.__file__))
_DOOR = 3
_CLOSE_SECONDS = 2.0
_MOST_AT_ONCE = 32
_NEEDED = ("PATH", "LD_LIBRARY_PATH")


class NurseryHandle:
    """A nursery that is started when first needed; ask for keepers inside `async with nursery.queue`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = {name: environ[name] for name in _NEEDED if name in environ}
        self._door: socket.socket | None = None
        self._pid = 0
        self.queue = asyncio.Semaphore(_MOST_AT_ONCE)  # more requests than that could fill the socket
        self.bells = Bells()

    def start(self) -> None:
        """Start the nursery now, so that the first agent need not wait for it."""
        if self._door is None:
            self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._pid = _spawn(theirs.fileno(), self._environ)
            self._door.setblocking(False)

    def fork_keeper(self, connection: int) -> None:
        """Hand a socket to a new keeper; one that never comes shows as a closed socket."""
        try:
            self._send(connection)
        except OSError as error:
            log.warning("nursery.lost", pid=self._pid, error=str(error))
            self.abandon()
            self._send(connection)

    def _send(self, connection: int) -> None:
        self.start()
        if self._door is None:
            raise AssertionError("start() opens the door")
        socket.send_fds(self._door, [b"+"], [connection])

    def abandon(self) -> None:
        """Give up on this nursery; its keepers stay, and it leaves after the last of them."""
        if self._door is not None:
            self._door.close()
            self._door = None
            _reap(self._pid)

    async def close(self) -> None:
        """End the nursery; it stays as long as one of its keepers has an agent."""
        door, self._door = self._door, None
        if door is None:
            return
        with door:
            with suppress(OSError):  # it may have died before
                door.shutdown(socket.SHUT_WR)
            ended = asyncio.ensure_future(asyncio.get_running_loop().sock_recv(door, 1))
            left = await finished(ended, _CLOSE_SECONDS)
            ended.cancel()
        if left:
            await asyncio.to_thread(os.waitpid, self._pid, 0)
        else:
            log.info("nursery.stays", pid=self._pid)


def _spawn(door: int, environ: dict[str, str]) -> int:
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", "-X", "utf8", _PROGRAM, str(_DOOR)],
        environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, door, _DOOR),
        ],
        setsid=True,
        setsigmask=(),
    )


_abandoned: set[int] = set()
"""Nurseries that stay until their last keeper leaves; nobody hears when that is."""


def _reap(pid: int) -> None:
    """Take note of what became of a nursery, and of those that were given up before and have left since."""
    _abandoned.add(pid)
    for each in list(_abandoned):
        try:
            left, _ = os.waitpid(each, os.WNOHANG)
        except ChildProcessError:
            left = each
        if left:
            _abandoned.discard(each)
