"""Event streams: a client is a cursor that moves when its socket takes more."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from litestar import Response

from ostler.server.api.asgi import App, Receive, Scope, Send
from ostler.server.api.selection import Keep
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
FAREWELL = b": the stream ends here\nretry: 500\n\n"
_BACK_SOON = b": the server stops, to start again; connect again with Last-Event-ID\nretry: 1000\n\n"


Source = Callable[[int, int], Awaitable[list[StoredEvent]]]
"""Where a cursor reads what has fallen out of memory: up to `limit` events after an offset."""


class Cursor:
    """One client's place in a feed."""

    __slots__ = ("_feed", "_from_memory", "_heartbeat", "_keep", "_offset", "_source")

    def __init__(
        self,
        feed: Feed,
        source: Source,
        *,
        offset: int,
        heartbeat: float,
        from_memory: bool,
        keep: Keep | None = None,
    ) -> None:
        self._feed = feed
        self._keep = keep
        self._source = source
        self._offset = offset
        self._heartbeat = heartbeat
        self._from_memory = from_memory

    async def next(self) -> bytes | None:
        """The next bytes to write, a heartbeat when nothing happens, None when nothing will."""
        if self._offset >= self._feed.last and not self._feed.closed:
            await self._feed.wait(self._offset, timeout=self._heartbeat)
        if self._offset < self._feed.last:
            return await self._read()
        return None if self._feed.closed else _HEARTBEAT

    async def _read(self) -> bytes:
        frames = self._feed.after(self._offset, _WRITE_BYTES) if self._from_memory else None
        if frames is not None:
            self._offset += len(frames)
            return self._joined(frames)
        stored = await self._source(self._offset, _PAGE)
        if not stored:  # deleted while it was being read
            self._offset = self._feed.last
            return b""
        self._offset = stored[-1].number
        return self._joined([frame(event.number, with_raw(event)) for event in stored])

    def _joined(self, frames: list[bytes]) -> bytes:
        if self._keep is None:
            return b"".join(frames)
        kept = b"".join(found for found in frames if self._keep(found))
        return kept or b"id: %d\n\n" % self._offset  # moves the client's place past what it did not want


def with_raw(event: StoredEvent) -> bytes:
    """The event with its native frame, if it has one."""
    return event.body if event.raw is None else b'%b,"raw":%b}' % (event.body[:-1], event.raw)


class Chunks(Protocol):
    """Where the bytes of a stream come from."""

    async def next(self) -> bytes | None:
        """The next bytes to write; None when there will be no more."""


_SCOPE_KEY = "ostler.stream"


class EventStream(Response[None]):
    """An answer that goes on until the client leaves, the feed closes, or `until` says that this was the last.

    A stream may live for days, so it is not written from within Litestar, whose stack would cost each client
    kilobytes: the handler only leaves the stream in the scope, and `Streams` writes it when Litestar has let go.
    """

    def __init__(
        self,
        cursor: Chunks,
        feed: Feed,
        counters: Counters,
        *,
        holds: object,
        headers: dict[str, str] | None = None,
        until: Callable[[bytes], bool] | None = None,
        farewell: bytes = FAREWELL,
    ) -> None:
        super().__init__(None, media_type="text/event-stream")
        self._stream = _Stream(cursor, feed, counters, holds, headers or {}, until, farewell)

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Litestar asks for the ASGI application of a response."""
        return self._leave_in_scope

    async def _leave_in_scope(self, scope: Scope, _: Receive, __: Send) -> None:
        scope[_SCOPE_KEY] = self._stream


class Streams:
    """ASGI application around Litestar that writes the event streams its handlers leave behind."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)
        if (stream := scope.pop(_SCOPE_KEY, None)) is not None:
            scope["state"] = {}  # frees what Litestar parsed of the request
            await stream.write(receive, send)


class _Stream:
    __slots__ = ("_counters", "_cursor", "_farewell", "_feed", "_headers", "_holds", "_until")

    def __init__(
        self,
        cursor: Chunks,
        feed: Feed,
        counters: Counters,
        holds: object,
        headers: dict[str, str],
        until: Callable[[bytes], bool] | None,
        farewell: bytes,
    ) -> None:
        self._farewell = farewell
        self._cursor = cursor
        self._feed = feed
        self._counters = counters
        self._holds = holds  # keeps the live session in memory while it is watched
        self._headers = headers
        self._until = until

    async def write(self, receive: Receive, send: Send) -> None:
        """Send everything the cursor gives until there is no more or nobody to send it to."""
        self._feed.watch()
        self._counters.open_streams += 1
        gone = asyncio.create_task(_until_disconnect(receive))
        gone.add_done_callback(functools.partial(_stop_writing, asyncio.current_task()))
        try:
            await self._write(send)
        except asyncio.CancelledError:
            if not gone.done():  # it is not the client who left
                raise
        finally:
            gone.cancel()
            self._counters.open_streams -= 1
            self._feed.unwatch()

    async def _write(self, send: Send) -> None:
        await send(self._start())
        while (chunk := await self._cursor.next()) is not None:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if self._until is not None and self._until(chunk):
                break
        await send({"type": "http.response.body", "body": self._last_words(), "more_body": False})

    def _start(self) -> dict[str, Any]:
        more = {name.encode(): value.encode() for name, value in self._headers.items()}
        return {"type": "http.response.start", "status": 200, "headers": list((dict(_HEADERS) | more).items())}

    def _last_words(self) -> bytes:
        return _BACK_SOON if self._farewell and self._counters.stopping else self._farewell


def _stop_writing(writing: "asyncio.Task[Any] | None", gone: "asyncio.Task[None]") -> None:
    if writing is not None and not gone.cancelled():
        writing.cancel()


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
