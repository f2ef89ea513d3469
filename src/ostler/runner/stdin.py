"""Writes to an agent's stdin without ever blocking the loop or growing without bound."""

import asyncio
import os
from collections import deque

from ostler.runner.waiting import finished

ROOM_BYTES = 2**20
MOST_BYTES = 512 * 2**20
_AT_ONCE = 65536


class Stdin:
    """Keeps what the pipe does not take yet, in order; callers wait for room before they add more."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self._loop = asyncio.get_running_loop()
        self._pipe: int | None = pipe
        self._waiting: deque[memoryview] = deque()
        self._room: asyncio.Future[None] | None = None
        self.pending = 0

    async def room(self, timeout: float) -> bool:
        """Wait until the agent has read most of what it was sent; False when it does not in time."""
        if self.pending <= ROOM_BYTES:
            return True
        if self._room is None:
            self._room = self._loop.create_future()
        return await finished(self._room, timeout)

    def write(self, data: bytes) -> bool:
        """Send in order, later if need be; False when the agent has left far too much unread."""
        if self._pipe is None:
            return True  # it is over; its exit is reported elsewhere
        if self.pending + len(data) > MOST_BYTES:
            return False
        self.pending += len(data)
        self._waiting.append(memoryview(data))
        if len(self._waiting) == 1:
            self._push()
        return True

    def _push(self) -> None:
        while self._waiting and self._pipe is not None:
            piece = self._waiting[0]
            try:
                written = os.write(self._pipe, piece[:_AT_ONCE])
            except BlockingIOError:
                self._loop.add_writer(self._pipe, self._push)
                return
            except OSError:
                self.close()
                return
            self.pending -= written
            if written == len(piece):
                self._waiting.popleft()
            else:
                self._waiting[0] = piece[written:]
            self._tell_room()
        if self._pipe is not None:
            self._loop.remove_writer(self._pipe)

    def _tell_room(self) -> None:
        if self._room is not None and self.pending <= ROOM_BYTES:
            self._room.set_result(None)
            self._room = None

    def close(self) -> None:
        """End the agent's input; what it has not read is dropped."""
        if self._pipe is not None:
            self._loop.remove_writer(self._pipe)
            os.close(self._pipe)
            self._pipe = None
        self._waiting.clear()
        self.pending = 0
        self._tell_room()
