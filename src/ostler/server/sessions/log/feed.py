"""The live end of a log: the newest events as bytes, shared by every client that watches."""

import asyncio
import time
from collections.abc import Sequence

_FRESH_SECONDS = 10.0
"""Who reads along has them long before; what is older costs memory for as long as a session is watched."""


class Feed:
    """Numbered frames, oldest dropped first. A client is only a number; nobody has a queue.

    Nothing is kept while nobody watches: a client that is behind reads the store instead.
    """

    def __init__(self, *, last: int, limit_bytes: int) -> None:
        self.last = last
        self.closed = False
        self.watchers = 0
        self._limit = limit_bytes
        self._frames: list[bytes] = []
        self._size = 0
        self._old = 0
        """How many of the frames were there at the last look; at the next one they are old."""
        self._looked_at = 0.0
        self._waiting: set[asyncio.Future[None]] = set()

    def publish(self, frames: Sequence[bytes]) -> None:
        """Add committed frames and wake everybody who waits."""
        self.last += len(frames)
        if self.watchers:
            self._frames.extend(frames)
            self._size += sum(map(len, frames))
            self._trim(time.monotonic())
        self._wake()

    def skip(self, last: int) -> None:
        """Events up to here exist but only in the store."""
        self.last = last
        self._forget()
        self._wake()

    def after(self, offset: int, max_bytes: int) -> list[bytes] | None:
        """Frames that follow the offset, about max_bytes of them; None if they are only in the store."""
        start = len(self._frames) - (self.last - offset)
        if start < 0:
            return None
        taken, size = start, 0
        while taken < len(self._frames) and size < max_bytes:
            size += len(self._frames[taken])
            taken += 1
        return self._frames[start:taken]

    async def wait(self, offset: int, *, timeout: float) -> None:
        """Return when there is something after the offset, when the feed is closed, or when the time is up."""
        if self.last > offset or self.closed:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.add(waiter)
        timer = loop.call_later(timeout, _wake, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiting.discard(waiter)

    def watch(self) -> None:
        """One more client."""
        self.watchers += 1

    def unwatch(self) -> None:
        """One client fewer."""
        self.watchers -= 1
        if not self.watchers:
            self._forget()

    def close(self) -> None:
        """No more frames: the session is gone or the server stops."""
        self.closed = True
        self._wake()

    def _forget(self) -> None:
        self._frames.clear()
        self._size = self._old = 0

    def _trim(self, now: float) -> None:
        if now - self._looked_at > _FRESH_SECONDS:
            self._drop(self._old)
            self._old, self._looked_at = len(self._frames), now
        if self._size > self._limit:
            size, count = self._size, 0
            while size > self._limit // 2:  # half at a time, so that trimming costs little per frame
                size -= len(self._frames[count])
                count += 1
            self._drop(count)

    def _drop(self, count: int) -> None:
        self._size -= sum(map(len, self._frames[:count]))
        del self._frames[:count]
        self._old = max(0, self._old - count)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for waiter in waiting:
            _wake(waiter)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
