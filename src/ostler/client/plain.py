"""One plain request to a server on this machine: what a short command needs, without loading a whole HTTP client."""

import socket
from collections.abc import Generator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

from httptools import HttpParserError, HttpResponseParser

from ostler.client.calls import Call, answer, headers
from ostler.client.errors import ConnectionLost, NoAnswer, ServerUnreachable
from ostler.client.events import SessionEvent, Stream
from ostler.client.transport import ANSWER_SECONDS, CONNECT_SECONDS, LOCAL, SILENCE_SECONDS, SyncTransport

_PIECE = 1 << 16
T = TypeVar("T")


def suits(address: str, token: str | None) -> bool:
    """Whether a server can be reached this way: no encryption, no proxy, no header that needs care."""
    url = urlsplit(address)
    plain = url.scheme == "http" and url.hostname in LOCAL and url.username is None
    return plain and (token is None or (token.isascii() and token.isprintable()))


class PlainTransport(SyncTransport):
    """A connection per call; streams are left to the real HTTP client, loaded when one is asked for."""

    def __init__(
        self, address: str, token: str | None, seconds: float = ANSWER_SECONDS, project: str | None = None
    ) -> None:
        self.address = address
        self._seconds = seconds
        self._token = token
        self._project = project
        self._url = urlsplit(address)
        self._streams: SyncTransport | None = None

    def _send(self, call: Call[T], own: dict[str, str]) -> T:
        seconds = call.timeout or self._seconds
        with self._connection(min(CONNECT_SECONDS, seconds)) as connection:
            connection.settimeout(seconds)
            try:
                with suppress(BrokenPipeError, ConnectionResetError):  # a refusal may come before all was sent
                    connection.sendall(self._request(call, own))
                response = _read(connection, self.address)
            except TimeoutError as error:
                raise NoAnswer(self.address) from error
            except (OSError, HttpParserError) as error:
                raise ConnectionLost(self.address, str(error)) from error
        self.reached = True
        return answer(call, response.status, response.headers, bytes(response.body))

    def _connection(self, seconds: float) -> socket.socket:
        try:
            return socket.create_connection((self._url.hostname or "", self._url.port or 80), timeout=seconds)
        except OSError as error:
            raise ServerUnreachable(self.address) from error

    def _request(self, call: Call[T], own: Mapping[str, str]) -> bytes:
        path = quote(self._url.path.rstrip("/") + call.path, safe="/:%")
        target = f"{path}?{urlencode(call.params)}" if call.params else path
        body = call.body or b""
        fields = {"host": self._url.netloc, "connection": "close", **headers(self._token, self._project), **own}
        if call.method != "GET":
            fields["content-length"] = str(len(body))
        lines = [f"{call.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1") + body

    def follow(self, stream: Stream) -> Generator[SessionEvent, None, None]:
        """Each event once, over as many connections as it takes."""
        if self._streams is None:
            transport = import_module("ostler.client.sync_http").HttpTransport
            self._streams = transport(self.address, self._token, ANSWER_SECONDS, SILENCE_SECONDS, project=self._project)
            self._streams.reached = self.reached
            self._streams.on_break = self.on_break
        return self._streams.follow(stream)

    def close(self) -> None:
        """Give the connections back."""
        if self._streams is not None:
            self._streams.close()


class _Response:
    """Takes what the parser finds."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, piece: bytes) -> None:
        self.body += piece

    def on_message_complete(self) -> None:
        self.complete = True

    @property
    def ends_with_the_connection(self) -> bool:
        """Whether nothing else could say where the body ends."""
        return self.status != 0 and not {"content-length", "transfer-encoding"} & self.headers.keys()


def _read(connection: socket.socket, address: str) -> _Response:
    response = _Response()
    parser = HttpResponseParser(response)
    while not response.complete:
        piece = connection.recv(_PIECE)
        if not piece and response.ends_with_the_connection:
            break
        if not piece:
            raise ConnectionLost(address, "")
        parser.feed_data(piece)
        response.status = parser.get_status_code()
    return response
