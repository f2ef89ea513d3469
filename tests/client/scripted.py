"""A small real HTTP server whose answers are scripted one connection at a time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def offset(self) -> int:
        """Where a stream is to go on."""
        return int(self.headers.get("last-event-id", "0"))


Answer = Callable[[Received], bytes | None]
"""Bytes are sent and the connection is closed; None leaves it open and silent."""


@dataclass
class Scripted:
    """What came in so far; the last answer of the script is used for all further requests."""

    url: str = ""
    requests: list[Received] = field(default_factory=list)


def event(sequence: int, kind: str = "log", **data: object) -> bytes:
    """One event as it stands on the stream."""
    fields = {
        "type": kind,
        "event_id": f"evt_{sequence}",
        "sequence": sequence,
        "time": "2026-01-01T00:00:00.000Z",
        "session_id": "ses_1",
        "source": "daemon",
        "synthetic": False,
        "data": data or {"level": "info", "message": f"line {sequence}"},
    }
    return f"id: {sequence}\ndata: {json.dumps(fields)}\n\n".encode()


def ended(sequence: int) -> bytes:
    """The event after which nothing follows."""
    return event(sequence, "session.ended", reason="completed", terminated_by="daemon")


def log(last: int) -> bytes:
    """Events 1 to `last`, the last of which ends the session."""
    return b"".join(event(number) for number in range(1, last)) + ended(last)


def after(whole: bytes, offset: int) -> bytes:
    """The part of a log that follows a sequence."""
    return b"".join(block + b"\n\n" for block in whole.split(b"\n\n")[offset:-1])


def stream(payload: bytes) -> bytes:
    """An event stream with these bytes in it."""
    return STREAM_HEAD + payload


def reply(status: int, body: object, content_type: str = "application/json") -> bytes:
    """A plain answer."""
    payload = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(payload)}\r\n\r\n"
    return head.encode() + payload


def problem(status: int, code: str) -> bytes:
    """A problem document."""
    body = {"type": "about:blank", "title": "No", "status": status, "code": code, "detail": f"{code}!"}
    return reply(status, body, "application/problem+json")


@asynccontextmanager
async def scripted_server(script: Sequence[Answer]) -> AsyncIterator[Scripted]:
    """Serve the script on a free port."""
    state = Scripted()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            request = await _read(reader)
            state.requests.append(request)
            answer = script[min(len(state.requests), len(script)) - 1](request)
            if answer is None:
                await reader.read()  # silent until the client goes away
            else:
                writer.write(answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield state


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body)
