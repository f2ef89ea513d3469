"""The live end of a log: the newest events as bytes, shared by all who watch, and how readers follow them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ostler.server.store.records import StoredEvent

_FRESH_SECONDS = 10.0
"""Who reads along has them long before; what is older costs memory for as long as a session is watched."""


_READ_BYTES = 32 * 1024
_PAGE = 1000
_HELD_UP_SECONDS = 0.25
_DATA = b"\ndata: "


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


class Source(Protocol):
    """Where older events are read."""

    def __call__(self, offset: int, limit: int, *, raw: bool = False) -> Awaitable[list[StoredEvent]]:
        """Up to `limit` events after the offset."""


class Tail:
    """The end of one log, where readers wait for more."""

    __slots__ = ("_feed", "_settled", "_source")

    def __init__(self, feed: Feed, source: Source, settled: Callable[[], Awaitable[int]] | None = None) -> None:
        """`settled` says up to which event the source will show nothing more than it does, if that is not all."""
        self._feed = feed
        self._source = source
        self._settled = settled

    @property
    def last(self) -> int:
        """The number of the newest event."""
        return self._feed.last

    @property
    def is_closed(self) -> bool:
        """Whether there will be no more."""
        return self._feed.closed

    def watch(self) -> None:
        """One more reader."""
        self._feed.watch()

    def unwatch(self) -> None:
        """One reader fewer."""
        self._feed.unwatch()

    async def wait(self, offset: int, *, timeout: float) -> None:
        """Return when there is something after the offset, when there will be no more, or when the time is up."""
        await self._feed.wait(offset, timeout=timeout)

    def newest(self, offset: int, max_bytes: int) -> list[bytes] | None:
        """The frames that follow the offset, about max_bytes of them; None if they are only in the store."""
        return self._feed.after(offset, max_bytes)

    async def stored(self, offset: int, *, raw: bool = False) -> Sequence[StoredEvent]:
        """The events that follow the offset, as the store has them."""
        return await self._source(offset, _PAGE, raw=raw)

    async def now(self) -> int:
        """Where a reader begins who wants only what comes: nothing is committed before it any more."""
        return self._feed.last if self._settled is None else min(self._feed.last, await self._settled())

    async def passed(self, offset: int) -> int:
        """Where a reader is who found nothing stored after the offset: those events are gone, or not to be seen yet."""
        if self._settled is None:
            return self._feed.last
        settled = min(self._feed.last, await self._settled())
        if settled <= offset:
            await asyncio.sleep(_HELD_UP_SECONDS)  # somebody else's transaction is not over; nobody tells us when it is
            return offset
        return settled if not await self._source(offset, 1) else offset  # what came in between is read at the next try


class Follower:
    """A reader's place in a log; holds no events, only a number."""

    def __init__(self, tail: Tail, *, offset: int, raw: bool = False) -> None:
        self.offset = offset
        self._tail = tail
        self._raw = raw

    @property
    def has_more(self) -> bool:
        """Whether `next` has something to tell at once."""
        return self._tail.last > self.offset or self._tail.is_closed

    async def wait(self, *, timeout: float) -> None:
        """Return when there is something to tell, or when the time is up."""
        await self._tail.wait(self.offset, timeout=timeout)

    async def next(self, *, timeout: float) -> Sequence[StoredEvent] | None:
        """What follows; nothing when the time is up, None when there will be no more."""
        await self.wait(timeout=timeout)
        if self.offset < self._tail.last:
            return await self._read()
        return None if self._tail.is_closed else []

    async def _read(self) -> Sequence[StoredEvent]:
        frames = None if self._raw else self._tail.newest(self.offset, _READ_BYTES)
        if frames is not None:
            found: Sequence[StoredEvent] = [
                StoredEvent(number, unframed(each)) for number, each in enumerate(frames, self.offset + 1)
            ]
        else:
            found = await self._tail.stored(self.offset, raw=self._raw)
        self.offset = found[-1].number if found else await self._tail.passed(self.offset)
        return found


def frame(number: int, event: bytes) -> bytes:
    """An encoded event as one message of an event stream."""
    return b"id: %d\ndata: %b\n\n" % (number, event)


def unframed(message: bytes) -> bytes:
    """The encoded event in a message that `frame` made."""
    return message[message.index(_DATA) + len(_DATA) : -2]
