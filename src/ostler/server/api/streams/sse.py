"""Event streams: what a handler leaves behind is written when Litestar has let go, as fast as the client takes it."""

import asyncio
import functools
from contextlib import suppress
from typing import Any, Protocol

from litestar import Response

from ostler.server.api.edge.asgi import FLOW_KEY, App, Receive, Scope, Send
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.problems import refuse
from ostler.server.api.services import Services
from ostler.server.api.streams.cursor import Cursor, CutOff
from ostler.server.api.streams.outflow import Chunks, Pieces, Rendered, StalledReaders
from ostler.server.auth.scope import scope_of
from ostler.server.sessions.live import Leases
from ostler.server.sessions.log.feed import Tail

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
FAREWELL = b": the stream ends here\nretry: 500\n\n"
_BACK_SOON = b": the server stops, to start again; connect again with Last-Event-ID\nretry: 1000\n\n"
_KEY_ENDED = b": the credential is good no more\n\n"
_SCOPE_KEY = "ostler.stream"


class Flow(Protocol):
    """Whether a connection takes more."""

    write_paused: bool

    async def drain(self) -> None:
        """Wait until it does, or is gone."""


class EventStream(Response[None]):
    """An answer that goes on until the client leaves or there is no more.

    A stream may live for days, so it is not written from within Litestar, whose stack would cost each client
    kilobytes: the handler only leaves the stream in the scope, and `Streams` writes it when Litestar has let go.
    """

    def __init__(
        self,
        chunks: Chunks | Cursor,
        tail: Tail | None,
        services: Services,
        *,
        headers: dict[str, str] | None = None,
        farewell: bytes = FAREWELL,
    ) -> None:
        super().__init__(None, media_type="text/event-stream")
        pieces = chunks if isinstance(chunks, Cursor) else Rendered(chunks, services.settings.state_dir)
        self._stream = _Stream(pieces, tail, services, headers or {}, farewell)

    def to_asgi_response(self, *_: Any, **__: Any) -> Any:
        """Litestar asks for the ASGI application of a response."""
        return self._leave_in_scope

    async def _leave_in_scope(self, scope: Scope, _: Receive, __: Send) -> None:
        scope[_SCOPE_KEY] = self._stream


class Streams:
    """ASGI application around Litestar that writes the event streams its handlers leave behind."""

    def __init__(self, app: App, services: Services) -> None:
        self._app = app
        self._open = services.counters.streams
        self._directory = services.directory
        self._stalled = StalledReaders()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the sessions that it is about are there until its stream has ended."""
        with Leases():
            await self._app(scope, receive, send)
            stream: _Stream | None = scope.pop(_SCOPE_KEY, None)
            if stream is None:
                return
            client = client_of(scope)
            # what else was asked for is done by now; such a request was admitted before
            if scope["method"] == "GET" and (error := self._open.refusal(client)) is not None:
                await refuse(scope, send, error)
                return
            flow = scope[FLOW_KEY]
            scope["state"] = {}  # frees what Litestar parsed of the request
            with self._open.counted(client), suppress(TimeoutError):
                async with self._directory.ended_with_key(scope_of(scope)):
                    await stream.write(receive, send, flow, self._stalled)
                return
            await send({"type": "http.response.body", "body": _KEY_ENDED, "more_body": False})


class _Stream:
    __slots__ = ("_farewell", "_headers", "_pieces", "_services", "_tail")

    def __init__(
        self,
        pieces: Pieces,
        tail: Tail | None,
        services: Services,
        headers: dict[str, str],
        farewell: bytes,
    ) -> None:
        self._farewell = farewell
        self._pieces = pieces
        self._tail = tail
        self._services = services
        self._headers = headers

    async def write(self, receive: Receive, send: Send, flow: Flow, stalled: StalledReaders) -> None:
        """Send all there is until there is no more or nobody to send it to."""
        if self._tail is not None:
            self._tail.watch()
        gone = asyncio.create_task(_until_disconnect(receive))
        gone.add_done_callback(functools.partial(_stop_writing, asyncio.current_task()))
        try:
            await self._write(send, flow, stalled)
        except asyncio.CancelledError:
            if not gone.done():  # it is not the client who left
                raise
        except CutOff:
            return  # the answer stays incomplete, and the client sees that
        finally:
            gone.cancel()
            stalled.remove(self._pieces)
            self._pieces.close()
            if self._tail is not None:
                self._tail.unwatch()

    async def _write(self, send: Send, flow: Flow, stalled: StalledReaders) -> None:
        await send(self._start())
        while await self._send_piece(send):
            if flow.write_paused:
                stalled.add(self._pieces)
                await flow.drain()
                stalled.remove(self._pieces)
        await send({"type": "http.response.body", "body": self._last_words(), "more_body": False})

    async def _send_piece(self, send: Send) -> bool:
        """A function of its own, so that nothing holds the piece while the client takes none."""
        if (piece := await self._pieces.next()) is None:
            return False
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        return True

    def _start(self) -> dict[str, Any]:
        more = {name.encode(): value.encode() for name, value in self._headers.items()}
        return {"type": "http.response.start", "status": 200, "headers": list((dict(_HEADERS) | more).items())}

    def _last_words(self) -> bytes:
        return _BACK_SOON if self._farewell and self._services.counters.stopping else self._farewell


def _stop_writing(writing: "asyncio.Task[Any] | None", gone: "asyncio.Task[None]") -> None:
    if writing is not None and not gone.cancelled():
        writing.cancel()


async def _until_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
