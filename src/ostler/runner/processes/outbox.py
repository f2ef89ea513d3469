"""Writes to a socket without ever blocking the loop."""

import asyncio
import socket
from collections import deque

_AT_ONCE = 2**18


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
