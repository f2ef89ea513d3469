"""Event streams: a client is a cursor that moves when its socket takes more."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from litestar import Response

from ostler.server.api.asgi import Receive, Scope, Send
from ostler.server.api.services import Counters
from ostler.server.sessions.feed import Feed
from ostler.server.sessions.log import frame
from ostler.server.store.records import StoredEvent

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
_WRITE_BYTES = 256 * 1024
_PAGE = 1000
_HEARTBEAT = b": still here\n\n"
_FAREWELL = b": the stream ends here\nretry: 500\n\n"


Source = Callable[[int, int], Awaitable[list[StoredEvent]]]
"""Where a cursor reads what has fallen out of memory: up to `limit` events after an offset."""


class Cursor:
    """One client's place in a feed; yields bytes to write, None when it is time for a heartbeat."""

    def __init__(self, feed: Feed, source: Source, *, offset: int, heartbeat: float, from_memory: bool) -> None:
        self._feed = feed
        self._source = source
        self._offset = offset
        self._heartbeat = heartbeat
        self._from_memory = from_memory

    async def chunks(self) -> AsyncIterator[bytes]:
        """Everything after the offset, live until the feed closes."""
        while True:
            if self._offset < self._feed.last:
                yield await self._next()
            elif self._feed.closed:
                return
            else:
                await self._feed.wait(self._offset, timeout=self._heartbeat)
                if self._offset >= self._feed.last and not self._feed.closed:
                    yield _HEARTBEAT

    async def _next(self) -> bytes:
        frames = self._feed.after(self._offset, _WRITE_BYTES) if self._from_memory else None
        if frames is not None:
            self._offset += len(frames)
            return b"".join(frames)
        stored = await self._source(self._offset, _PAGE)
        if not stored:  # deleted while it was being read
            self._offset = self._feed.last
            return b""
        self._offset = stored[-1].number
        return b"".join(frame(event.number, with_raw(event)) for event in stored)


def with_raw(event: StoredEvent) -> bytes:
    """The event with its native frame, if it has one."""
    return event.body if event.raw is None else b'%b,"raw":%b}' % (event.body[:-1], event.raw)


class EventStream(Response[None]):
    """An answer that goes on until the client leaves, the feed closes, or `until` says that this was the last."""

    def __init__(
        self,
        cursor: Cursor,
        feed: Feed,
        counters: Counters,
        *,
        holds: object,
        headers: dict[str, str] | None = None,
        until: Callable[[bytes], bool] | None = None,
    ) -> None:
        super().__init__(None, media_type="text/event-stream", headers=headers)
        self._cursor = cursor
        self._feed = feed
        self._counters = counters
        self._holds = holds  # keeps the live session in memory while it is watched
        self._more_headers = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        self._until = until

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Litestar asks for the ASGI application of a response: this is one."""
        return self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        writing = asyncio.create_task(self._write(send))
        gone = asyncio.create_task(_until_disconnect(receive))
        try:
            await asyncio.wait({writing, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            writing.cancel()
            gone.cancel()
        if writing.done() and not writing.cancelled():
            writing.result()

    async def _write(self, send: Send) -> None:
        self._feed.watch()
        self._counters.open_streams += 1
        try:
            headers = [*_HEADERS, *self._more_headers]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for chunk in self._cursor.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                if self._until is not None and self._until(chunk):
                    break
            await send({"type": "http.response.body", "body": _FAREWELL, "more_body": False})
        finally:
            self._counters.open_streams -= 1
            self._feed.unwatch()


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
