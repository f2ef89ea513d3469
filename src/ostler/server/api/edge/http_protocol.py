"""uvicorn's HTTP protocol with limits: how long a request's head is, how late it comes, how much waits to go out."""

import asyncio
from http import HTTPStatus
from typing import Any, ClassVar

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ostler.base.errors import HeadersTooLarge, InvalidRequest, OstlerError, RequestTimeout
from ostler.base.settings import Settings
from ostler.server.api.edge.asgi import FLOW_KEY
from ostler.server.api.edge.certificates import SHOWN, names_in
from ostler.server.api.problems import error_body

_WRITE_BUFFER_BYTES = 16 * 1024
_LINGER_SECONDS = 2.0
_LONGEST_ADDRESS = 65_535
"""What the parser takes."""
_OVERHEAD = 16
"""Bytes around each byte of a body that come in the smallest of chunks."""


class HeadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the head of a request may be."""

    max_bytes: int
    max_count: int
    seconds: float


def limited(settings: Settings) -> type[HttpToolsProtocol]:
    """The protocol with the limits of these settings."""
    limits = HeadLimits(
        max_bytes=settings.max_header_bytes, max_count=settings.max_headers, seconds=settings.header_timeout_seconds
    )
    return type("LimitedHttp", (_LimitedHttp,), {"limits": limits})


class _LimitedHttp(HttpToolsProtocol):
    """One connection. What is refused before a request is whole is told as a problem, then the connection ends."""

    limits: ClassVar[HeadLimits]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refusal: OstlerError | None = None
        self._is_refused = False
        self._in_head = False
        self._is_socket = False
        self._began_now = False
        self._received = self._body = self._header_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Begin to wait for a request."""
        transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        super().connection_made(transport)
        if certificate := transport.get_extra_info("peercert"):
            self.app_state = {**self.app_state, SHOWN: names_in(certificate)}  # every request, and a socket, has it
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left, or was made to."""
        self._forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sent; after a refusal that is nothing."""
        if self._is_refused:
            return
        self._began_now = False
        super().data_received(data)
        if self._is_socket:  # what comes from now on goes to it, and no request is waited for
            return
        if not self._began_now:
            self._received += len(data)
            not_body = self._received - self._body
            if not_body > self.limits.max_bytes + _OVERHEAD * self._body and not self._is_refused:
                self._refuse(self._too_large())
        if not (self._head_timer or self.timeout_keep_alive_task or self._is_refused or self._is_answering()):
            self._await_head()  # something came that is no request, or the end of one that was answered before

    def handle_websocket_upgrade(self) -> None:
        """The connection is a socket from now on."""
        self._forget_timer()
        self._is_socket = True
        super().handle_websocket_upgrade()

    # The parser

    def on_message_begin(self) -> None:
        """The first byte of a request came."""
        super().on_message_begin()
        self._in_head = self._began_now = True
        self._received = self._body = self._header_bytes = 0
        self._await_head()

    def on_url(self, url: bytes) -> None:
        """A piece of the address came."""
        super().on_url(url)
        if len(self.url) > _LONGEST_ADDRESS:
            hint = "Shorten what follows the `?`."
            self._fail(HeadersTooLarge(limit=_LONGEST_ADDRESS, what="bytes in its address", hint=hint))

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header came, or a trailer."""
        super().on_header(name, value)
        if len(self.headers) > self.limits.max_count:
            self._fail(_too_much(self.limits.max_count, "fields", "max_headers"))
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > self.limits.max_bytes:
            self._fail(self._too_large())

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._forget_timer()
        if not self.url.startswith((b"/", b"http://", b"https://")):
            shown = self.url[:50].decode("latin-1")
            self._fail(InvalidRequest(reason=f"'{shown}' in the request line is not a path. Begin it with a slash."))
        self.scope[FLOW_KEY] = self.flow  # type: ignore[literal-required]  # a key of our own, for those who write streams
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Part of the body came."""
        self._body += len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """An answer is written; the rest of its request, which nobody reads, may not take for ever."""
        is_whole = not self.cycle.more_body
        super().on_response_complete()
        if not is_whole:
            self._await_head()

    # Refusals

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls when the parser failed; it does when one of the methods above refused."""
        self._refuse(self._refusal or InvalidRequest(reason="This is not a valid HTTP request."))

    def _fail(self, error: OstlerError) -> None:
        self._refusal = error
        raise error

    def _too_large(self) -> HeadersTooLarge:
        return _too_much(self.limits.max_bytes, "bytes", "max_header_bytes")

    def _refuse(self, error: OstlerError) -> None:
        """Answer, if that is possible, and drop what still comes for a while, so that the client reads the answer."""
        self._is_refused = True
        self._forget_timer()
        if self._is_answering() and not self._take_back():
            self.transport.close()
            return
        media_type, body = error_body(error, self.url.partition(b"?")[0][:1000].decode("latin-1"))
        head = (
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\ncontent-type: {media_type}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def _take_back(self) -> bool:
        """Let the application believe that the client left, as long as nothing was answered."""
        if self.cycle.response_started:
            return False
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return True

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # Time

    def _await_head(self) -> None:
        self._forget_timer()
        self._head_timer = self.loop.call_later(self.limits.seconds, self._head_is_late)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        if self._is_answering():  # the client may not have been read from
            self._await_head()
        elif self._in_head:
            self._refuse(RequestTimeout(seconds=self.limits.seconds))
        else:
            self.transport.close()


def _too_much(limit: int, what: str, setting: str) -> HeadersTooLarge:
    hint = f"Send less, or raise the setting `{setting}`."
    return HeadersTooLarge(limit=limit, what=f"{what} in its headers", hint=hint)
