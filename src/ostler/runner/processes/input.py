"""What an agent is sent: in order, once, and not more than it can take."""

import asyncio
from collections import deque

from ostler.base.failpoints import failpoint
from ostler.runner.processes.control import Control
from ostler.runner.processes.waiting import finished

ROOM_BYTES = 2**20
MOST_BYTES = 512 * 2**20


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
