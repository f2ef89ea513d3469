"""What a client sends its calls through."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator
from typing import TypeVar

from ostler.client.calls import Call, headers_of
from ostler.client.errors import ConnectionLost
from ostler.client.events import SessionEvent, Stream

DEFAULT_ADDRESS = "http://127.0.0.1:2468"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 120.0
SILENCE_SECONDS = 45.0
CLOSE_SECONDS = 2.0
T = TypeVar("T")


class SyncTransport(ABC):
    """Sends calls and reads streams."""

    address: str
    reached = False

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
