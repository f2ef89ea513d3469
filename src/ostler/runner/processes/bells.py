"""Hears the keepers of all agents through one descriptor, so that many that ring at once wake the loop once."""

import asyncio
import select
import time
from collections.abc import Callable

from ostler.base.logs import Log

log = Log(__name__)
GATHER_SECONDS = 0.004
"""How long rings are gathered when many agents talk; an agent that talks alone is heard at once."""
LONGEST_SECONDS = 0.04
"""The same when that alone would keep us busy: what an agent says meanwhile is dealt with at once."""
_FEW = 4
_LOOK_SECONDS = 0.1
_BUSY = 0.35


class Bells:
    """Calls whoever has something to read; needs a running loop only while somebody listens."""

    def __init__(self) -> None:
        self._calls: dict[int, Callable[[], None]] = {}
        self._poll: select.epoll | None = None
        self._recent: set[int] = set()
        self._since = 0.0
        self._gather_seconds = GATHER_SECONDS
        self._looked_at = self._cpu_seconds = 0.0
        self._pause: asyncio.TimerHandle | None = None
        """When the bells are heard next, while many ring; otherwise the loop tells."""

    def add(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call this whenever the descriptor can be read."""
        if self._poll is None:
            self._poll = select.epoll()
            asyncio.get_running_loop().add_reader(self._poll.fileno(), self._on_ring, self._poll)
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

    def _on_ring(self, poll: select.epoll) -> None:
        rung = self._heard(poll)
        now = time.monotonic()
        if now - self._since > GATHER_SECONDS:
            self._since = now
            self._recent.clear()
        self._recent.update(rung)
        if len(self._recent) > _FEW and poll is self._poll:
            asyncio.get_running_loop().remove_reader(poll.fileno())
            self._gather(poll)

    def _gather(self, poll: select.epoll) -> None:
        self._pause = asyncio.get_running_loop().call_later(self._gather_seconds, self._hear_many, poll)

    def _hear_many(self, poll: select.epoll) -> None:
        self._pause = None
        is_still_busy = len(self._heard(poll)) > _FEW
        if poll is not self._poll:
            return
        if is_still_busy:
            self._adapt()
            self._gather(poll)
        else:
            self._gather_seconds = GATHER_SECONDS
            asyncio.get_running_loop().add_reader(poll.fileno(), self._on_ring, poll)

    def _adapt(self) -> None:
        """Gather longer while we are at work more than a third of the time, and shorter again when not."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_SECONDS:
            return
        cpu_seconds = time.process_time()
        share = (cpu_seconds - self._cpu_seconds) / (now - self._looked_at)
        self._looked_at, self._cpu_seconds = now, cpu_seconds
        longer = self._gather_seconds * (1.5 if share > _BUSY else 1 / 1.5 if share < _BUSY / 2 else 1)
        self._gather_seconds = min(max(longer, GATHER_SECONDS), LONGEST_SECONDS)

    def _heard(self, poll: select.epoll) -> list[int]:
        rung = [descriptor for descriptor, _ in poll.poll(0)]
        for descriptor in rung:
            if (call := self._calls.get(descriptor)) is not None:
                try:
                    call()
                except Exception as error:  # the edge of a callback: one agent must not make us deaf for all others
                    log.error("bell.failed", exc_info=error)
        return rung
