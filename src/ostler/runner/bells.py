"""Hears the keepers of all agents through one descriptor, so that many that ring at once wake the loop once."""

import asyncio
import select
import time
from collections.abc import Callable

GATHER_SECONDS = 0.004
"""How long rings are gathered when many agents talk; an agent that talks alone is heard at once."""
_FEW = 4


class Bells:
    """Calls whoever has something to read; needs a running loop only while somebody listens."""

    def __init__(self) -> None:
        self._calls: dict[int, Callable[[], None]] = {}
        self._poll: select.epoll | None = None
        self._recent: set[int] = set()
        self._since = 0.0
        self._pause: asyncio.TimerHandle | None = None

    def add(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call this whenever the descriptor can be read."""
        if self._poll is None:
            self._poll = select.epoll()
            self._listen()
        self._calls[descriptor] = call
        self._poll.register(descriptor, select.EPOLLIN)

    def remove(self, descriptor: int) -> None:
        """Call no more; a second time does nothing."""
        if self._poll is None or self._calls.pop(descriptor, None) is None:
            return
        self._poll.unregister(descriptor)
        if not self._calls:
            self._close(self._poll)

    def _close(self, poll: select.epoll) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        asyncio.get_running_loop().remove_reader(poll.fileno())
        poll.close()
        self._poll = None

    def _listen(self) -> None:
        self._pause = None
        if self._poll is not None:
            asyncio.get_running_loop().add_reader(self._poll.fileno(), self._hear)

    def _hear(self) -> None:
        rung = [descriptor for descriptor, _ in self._poll.poll(0)] if self._poll is not None else []
        for descriptor in rung:
            if (call := self._calls.get(descriptor)) is not None:
                call()
        self._gather_if_many(rung)

    def _gather_if_many(self, rung: list[int]) -> None:
        now = time.monotonic()
        if now - self._since > GATHER_SECONDS:
            self._since = now
            self._recent.clear()
        self._recent.update(rung)
        if len(self._recent) > _FEW and self._poll is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._poll.fileno())
            self._pause = loop.call_later(GATHER_SECONDS, self._listen)
