"""The runner's end of the socket to a keeper: orders go out, reports come in, and nothing ever blocks the loop."""

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ostler.base.failpoints import failpoint
from ostler.base.undo import undone_by
from ostler.runner.processes.bells import Bells
from ostler.runner.processes.spool import SOCKET
from ostler.runner.processes.waiting import finished

_AT_ONCE = 2**18
_CHUNK_BYTES = 65536


ROOM_BYTES = 2**20
MOST_BYTES = 512 * 2**20


def keeper_of(folder: Path) -> socket.socket:
    """Call a keeper; the way over a descriptor keeps the address short, however long the folder's name."""
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_UNIX)
    try:
        with undone_by(connection.close):
            connection.connect(f"/proc/self/fd/{place}/{SOCKET}")
    finally:
        os.close(place)
    return connection


class Control:
    """One keeper at the other end."""

    def __init__(
        self,
        connection: socket.socket,
        bells: Bells,
        *,
        rang: Callable[[], None],
        reported: Callable[[dict[str, Any]], None],
        left: Callable[[], None],
    ) -> None:
        """These are called for its bell, for a report, and when it has hung up."""
        connection.setblocking(False)
        self._connection = connection
        self._bells = bells
        self._rang, self._reported, self._left = rang, reported, left
        self._outbox = Outbox(connection)
        self._received = b""
        bells.add(connection.fileno(), self._on_ready)

    def _on_ready(self) -> None:
        try:
            chunk = self._connection.recv(_CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._left()
            return
        *lines, self._received = (self._received + chunk).split(b"\n")
        for line in lines:
            if line:
                self._reported(json.loads(line))
            else:
                self._rang()

    def order(self, order: dict[str, Any], payload: bytes = b"") -> None:
        """Send an order, later if need be."""
        self._outbox.write(json.dumps(order).encode() + b"\n" + payload)

    def ignore(self) -> None:
        """Listen no more."""
        self._bells.remove(self._connection.fileno())

    def close(self) -> None:
        """Hang up."""
        self.ignore()
        self._outbox.close()
        self._connection.close()


class Outbox:
    """Keeps what the socket does not take yet, in order; how much may wait is the caller's business."""

    def __init__(self, connection: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection: socket.socket | None = connection
        self._waiting: deque[memoryview] = deque()

    def write(self, data: bytes) -> None:
        """Send in order, later if need be; nothing is sent to a peer that has gone."""
        if self._connection is not None:
            self._waiting.append(memoryview(data))
            if len(self._waiting) == 1:
                self._push()

    def _push(self) -> None:
        while self._waiting and self._connection is not None:
            piece = self._waiting[0]
            try:
                sent = self._connection.send(piece[:_AT_ONCE])
            except BlockingIOError:
                self._loop.add_writer(self._connection, self._push)
                return
            except OSError:
                self.close()
                return
            if sent == len(piece):
                self._waiting.popleft()
            else:
                self._waiting[0] = piece[sent:]
        if self._connection is not None:
            self._loop.remove_writer(self._connection)

    def close(self) -> None:
        """Send nothing more; the socket belongs to the caller."""
        if self._connection is not None:
            self._loop.remove_writer(self._connection)
            self._connection = None
        self._waiting.clear()


class Input:
    """Counts what was sent, what the agent took, and what an earlier runner has sent before us."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._sent = 0
        self.written = 0
        """How much the keeper has from all runners; that is not sent again."""
        self._untaken: deque[tuple[int, int]] = deque()
        self.pending = 0
        """Bytes that the agent has not taken."""
        self._room: asyncio.Future[None] | None = None
        self._is_over = False

    async def room(self, timeout: float) -> bool:
        """Wait until the agent has taken most of what it was sent; False when it does not in time."""
        if self.pending <= ROOM_BYTES:
            return True
        if self._room is None:
            self._room = asyncio.get_running_loop().create_future()
        return await finished(self._room, timeout)

    def write(self, data: bytes) -> bool:
        """Send it, unless an earlier runner did. False when far too much waits."""
        if self.pending + len(data) > MOST_BYTES:
            return False
        self._sent += 1
        if self._sent > self.written and not self._is_over:
            self._untaken.append((self._sent, len(data)))
            self.pending += len(data)
            failpoint("input.before")
            self._control.order({"do": "input", "id": self._sent, "size": len(data)}, data)
            failpoint("input.after")
        return True

    def taken(self, number: int) -> None:
        """The agent's pipe took everything up to this."""
        while self._untaken and self._untaken[0][0] <= number:
            self.pending -= self._untaken.popleft()[1]
        if self._room is not None and self.pending <= ROOM_BYTES:
            if not self._room.done():
                self._room.set_result(None)
            self._room = None

    def close(self) -> None:
        """The agent is gone: nobody waits for it to take anything."""
        self._is_over = True
        self.taken(self._sent)
