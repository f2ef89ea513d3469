"""How readers follow a log: the newest events from memory, which all of them share, and older ones from the store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ostler.server.sessions.log.feed import Feed
from ostler.server.store.records import StoredEvent

_READ_BYTES = 32 * 1024
_PAGE = 1000
_HELD_UP_SECONDS = 0.25
_DATA = b"\ndata: "


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
