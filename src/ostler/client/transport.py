"""What a client sends its calls through."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TypeVar
from urllib.parse import urlsplit

from ostler.base.tls.loopback import is_loopback
from ostler.client.calls import Call, headers_of
from ostler.client.errors import BadAddress, BadToken, ClientError, ConnectionLost, TokenExposed
from ostler.client.events import SessionEvent, Stream

DEFAULT_ADDRESS = "http://127.0.0.1:2468"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 120.0
SILENCE_SECONDS = 45.0
CLOSE_SECONDS = 2.0
T = TypeVar("T")
_UNSPECIFIED = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, never bound
"""What a server that listens everywhere is told to listen on; as an address to call it is this machine."""


def unheard(_: ClientError | None) -> None:
    """Nobody wants to know that a stream broke."""


def check_address(address: str) -> None:
    """Raise BadAddress if it could never lead to a server."""
    try:
        url = urlsplit(address)
        host, _ = url.hostname, url.port
    except ValueError as error:
        raise BadAddress(address, f"{error}"[:1].lower() + f"{error}"[1:].rstrip(".")) from None
    if url.scheme not in {"http", "https"}:
        raise BadAddress(address, "it must begin with http:// or https://")
    if not host:
        raise BadAddress(address, "it names no machine")
    if not address.isprintable() or " " in address:
        raise BadAddress(address, "it has a space or a line break")


def check_exposure(address: str, token: str | None, *, insecure: bool) -> None:
    """Raise TokenExposed if others could read the token on its way, and that was not accepted."""
    check_address(address)
    if token is not None and not (token.isascii() and token.isprintable()):
        raise BadToken
    url = urlsplit(address)
    if token is None or insecure or url.scheme != "http":
        return
    if (host := url.hostname or "") not in _UNSPECIFIED and not is_loopback(host):
        raise TokenExposed(address)


class SyncTransport(ABC):
    """Sends calls and reads streams."""

    address: str
    reached = False
    on_break: Callable[[ClientError | None], None] = staticmethod(unheard)
    """Called with the error when a stream breaks and is tried again, and with None when it goes on."""

    def run(self, call: Call[T]) -> T:
        """Send a call, once more if the connection breaks under it."""
        own = headers_of(call)
        try:
            return self._send(call, own)
        except ConnectionLost:
            if not call.repeatable:
                raise
        return self._send(call, own)

    @abstractmethod
    def _send(self, call: Call[T], own: dict[str, str]) -> T:
        """Send a call and read its answer; raises only errors of the SDK."""

    @abstractmethod
    def follow(self, stream: Stream) -> Generator[SessionEvent, None, None]:
        """Each event once, over as many connections as it takes."""

    @abstractmethod
    def close(self) -> None:
        """Give the connections back."""


class AsyncTransport(ABC):
    """Sends calls and reads streams."""

    address: str
    reached = False
    on_break: Callable[[ClientError | None], None] = staticmethod(unheard)
    """Called with the error when a stream breaks and is tried again, and with None when it goes on."""

    async def run(self, call: Call[T]) -> T:
        """Send a call, once more if the connection breaks under it."""
        own = headers_of(call)
        try:
            return await self._send(call, own)
        except ConnectionLost:
            if not call.repeatable:
                raise
        return await self._send(call, own)

    @abstractmethod
    async def _send(self, call: Call[T], own: dict[str, str]) -> T:
        """Send a call and read its answer; raises only errors of the SDK."""

    @abstractmethod
    def follow(self, stream: Stream) -> AsyncGenerator[SessionEvent, None]:
        """Each event once, over as many connections as it takes."""

    @abstractmethod
    async def close(self) -> None:
        """End all streams, also those that were left in the middle, and give the connections back."""
