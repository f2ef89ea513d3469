"""The runner's end of the socket to a keeper: orders go out, reports come in, and nothing ever blocks the loop."""

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ostler.base.undo import undone_by
from ostler.runner.processes.bells import Bells
from ostler.runner.processes.spool import SOCKET

_AT_ONCE = 2**18
_CHUNK_BYTES = 65536


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
