"""Raw HTTP and SSE clients, cheap enough that the server under test is the bottleneck, not they."""

import re
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Self

TICK = re.compile(rb"tick-(\d{7})")
CHUNK = 1 << 18
GATHER_SECONDS = 0.001
"""Pause between two reads under load, so that the client does not take the server's processor time."""


class NoAnswer(Exception):
    """The server closed the connection or did not answer in time."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a server answered."""

    status: int
    body: bytes


def _request(method: str, port: int, path: str, body: bytes, accept: str) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: {accept}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def _connected(port: int, timeout: float, receive_buffer: int | None = None) -> socket.socket:
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(timeout)
    connection.connect(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def without_chunks(data: bytes) -> bytes:
    """The body inside a chunked transfer, as far as it has come."""
    parts: list[bytes] = []
    at = 0
    while (end := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:end], 16)
        if size == 0:
            break
        parts.append(data[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(parts)


class Http:
    """One kept-alive connection; a request can be sent now and its answer read later."""

    def __init__(self, port: int, *, timeout: float = 30.0) -> None:
        self._port = port
        self._socket = _connected(port, timeout)
        self._rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        """Send a request."""
        self._socket.sendall(_request(method, self._port, path, body, "application/json"))

    def receive(self) -> Answer:
        """Read the answer to the oldest request."""
        head = self._until_head()
        status = int(head.split(b" ", 2)[1])
        found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if found:
            return Answer(status=status, body=self._exactly(int(found[1])))
        if b"transfer-encoding: chunked" in head.lower():
            return Answer(status=status, body=self._chunked())
        return Answer(status=status, body=b"")

    def call(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Send a request and read its answer."""
        self.send(method, path, body)
        return self.receive()

    def _more(self) -> bytes:
        try:
            data = self._socket.recv(CHUNK)
        except TimeoutError as error:
            raise NoAnswer("no answer in time") from error
        if not data:
            raise NoAnswer("the server closed the connection")
        return data

    def _until_head(self) -> bytes:
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        return head

    def _exactly(self, size: int) -> bytes:
        parts = [self._rest]
        missing = size - len(self._rest)
        while missing > 0:
            parts.append(self._more())
            missing -= len(parts[-1])
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size]

    def _chunked(self) -> bytes:
        while not self._rest.endswith(b"0\r\n\r\n"):
            self._rest += self._more()
        body, self._rest = without_chunks(self._rest), b""
        return body


@dataclass(kw_only=True)
class Received:
    """What one stream brought, read after the fact."""

    ticks: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)

    def lost(self, count: int) -> int:
        """How many of the agent's pieces are missing."""
        return count - len(set(self.ticks))

    def in_order(self) -> bool:
        """Whether everything that came, came once and in order."""
        return all(a < b for numbers in (self.ticks, self.ids) for a, b in pairwise(numbers))


class Stream:
    """One SSE client; it keeps the bytes and looks only for the end of the turn."""

    def __init__(self, port: int, path: str, *, end: bytes, receive_buffer: int | None = None) -> None:
        self._socket = _connected(port, 30.0, receive_buffer)
        self._end = end
        self._socket.sendall(_request("GET", port, path, b"", "text/event-stream"))
        self._parts: list[bytes] = []
        self._times: list[float] = []
        self._tail = b""
        self.ended_at: float | None = None
        self.heard_at = time.perf_counter()
        self._keep(self._head())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def fileno(self) -> int:
        """For polling."""
        return self._socket.fileno()

    def _head(self) -> bytes:
        seen = b""
        while b"\r\n\r\n" not in seen:
            data = self._socket.recv(CHUNK)
            if not data:
                raise NoAnswer("the server closed the stream")
            seen += data
        head, _, rest = seen.partition(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise NoAnswer(head.decode(errors="replace"))
        return rest

    def pull(self) -> bool:
        """Read what is there; False if the server hung up."""
        data = self._socket.recv(CHUNK)
        if not data:
            return False
        self._keep(data)
        return True

    def _keep(self, data: bytes) -> None:
        self._parts.append(data)
        self.heard_at = time.perf_counter()
        self._times.append(self.heard_at)
        window = self._tail + data
        if self._end in window:
            self.ended_at = self.heard_at
        self._tail = window[-len(self._end) :]

    def wait_for(self, marker: bytes) -> float:
        """Read until the marker comes, and say when that was."""
        tail = b""
        while self.pull():
            at = time.perf_counter()
            window = tail + self._parts[-1]
            if marker in window:
                return at
            tail = window[-len(marker) :]
        raise NoAnswer("the server closed the stream")

    def wait_for_end(self) -> None:
        """Read until the turn is over."""
        while self.ended_at is None:
            if not self.pull():
                raise NoAnswer("the server closed the stream")

    def forget(self) -> None:
        """Make ready for the next turn."""
        self.ended_at = None
        self._tail = b""

    def body(self) -> bytes:
        """Everything that came."""
        return without_chunks(b"".join(self._parts))

    def lags(self, stamp: re.Pattern[bytes], *, since: float) -> list[float]:
        """How old each piece was when it first came, by the time that the agent put into it."""
        lags, newest = [], since
        for part, at in zip(self._parts, self._times, strict=True):
            for found in stamp.findall(part):
                if (said := int(found) / 1e6) > newest:
                    newest = said
                    lags.append(at - said)
        return lags

    def received(self) -> Received:
        """Everything that came, taken apart; the whole text at a message's end does not count as pieces."""
        found = Received()
        for block in self.body().split(b"\n\n"):
            number = re.search(rb"^id: ?(\d+)", block, re.MULTILINE)
            if number:
                found.ids.append(int(number[1]))
            tick = TICK.search(block)
            if tick and b'"item.completed"' not in block:
                found.ticks.append(int(tick[1]))
        return found


def drain(streams: Sequence[Stream], *, quiet_seconds: float = 2.0, limit_seconds: float = 60.0) -> None:
    """Read all streams until each has seen the turn's end, or nothing has come for a while (it was lost)."""
    waiting = {stream.fileno(): stream for stream in streams if stream.ended_at is None}
    poll = select.epoll()
    for number in waiting:
        poll.register(number, select.EPOLLIN)
    deadline = time.perf_counter() + limit_seconds
    try:
        while waiting and time.perf_counter() < deadline:
            ready = poll.poll(quiet_seconds)
            if not ready:
                return
            for number, _ in ready:
                stream = waiting[number]
                if not stream.pull() or stream.ended_at is not None:
                    poll.unregister(number)
                    del waiting[number]
            time.sleep(GATHER_SECONDS)
    finally:
        poll.close()
