"""An agent that is a local HTTP server, made to look like a process with frames on its pipes.

Frames are JSON lines. What is written is a request, {"id": 1, "method": "POST", "path": "/session", "body": {...}};
requests are performed one after the other, and the first one when the event stream is open, so that no event is missed.
What is read is a response, {"response": 1, "status": 200, "body": ...} (status 0 when there was none, with the reason
as its body), or an event of the server's stream, {"event": {...}}. A request with the method EXIT ends the server, with
its body as the reason: the way of a translator to say that a start has failed.
"""

import asyncio
import re
import secrets
from collections import deque
from collections.abc import Callable
from typing import Any, Self

import httpx
import msgspec

from ostler.agents.adapter import HttpServer
from ostler.base.logs import Log
from ostler.runner.frames import FrameSplitter, Overlong
from ostler.runner.nursery import NurseryHandle
from ostler.runner.process import Command, Exit, Process
from ostler.runner.stderr import StderrLog
from ostler.runner.stdin import MOST_BYTES, ROOM_BYTES
from ostler.runner.waiting import finished

log = Log(__name__)
HELD_BYTES = 2**20
_GREETING_BYTES = 65536
_LAST_EVENTS_SECONDS = 2.0
_STOP_GRACE = 2.0
_ADDRESS = re.compile(rb"listening on (https?://[^\s/]+)/?\s")
# A frozen agent answers late: waits are bounded by the start, turn and interrupt limits, not here.
_TIMEOUT = httpx.Timeout(None, connect=10.0)


class _Request(msgspec.Struct, frozen=True):
    id: int
    method: str
    path: str
    body: Any = None


_requests = msgspec.json.Decoder(_Request)


class Requests:
    """The requests that wait for their turn; callers wait for room before they add more."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._room: asyncio.Future[None] | None = None
        self._pending = 0

    async def room(self, timeout: float) -> bool:
        """Wait until most of them have been taken; False when they are not in time."""
        if self._pending <= ROOM_BYTES:
            return True
        if self._room is None:
            self._room = asyncio.get_running_loop().create_future()
        return await finished(self._room, timeout)

    def write(self, data: bytes) -> bool:
        """Add one; False when far too many wait."""
        if self._pending + len(data) > MOST_BYTES:
            return False
        self._pending += len(data)
        self._waiting.append(data)
        self._more.set()
        return True

    async def take(self) -> bytes:
        """The next one."""
        while not self._waiting:
            self._more.clear()
            await self._more.wait()
        data = self._waiting.popleft()
        self._pending -= len(data)
        if self._room is not None and self._pending <= ROOM_BYTES:
            self._room.set_result(None)
            self._room = None
        return data


class HttpChannel:
    """A server under its keeper, the client that talks to it, and the frames between them; implements Channel."""

    def __init__(self, process: Process, printed: asyncio.Event, wake: Callable[[], None], splitter: FrameSplitter):
        self._process = process
        self._printed = printed
        self._wake = wake
        self._splitter = splitter
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._frames: list[bytes] = []
        self._held = 0
        self._room = asyncio.Event()
        self._room.set()
        self._over = False
        self._verdict = ""
        """Why we ended the server ourselves."""
        self._task: asyncio.Task[None] | None = None
        self.stdin = Requests()

    @classmethod
    async def start(
        cls,
        nursery: NurseryHandle,
        command: Command,
        server: HttpServer,
        wake: Callable[[], None],
        *,
        max_frame_bytes: int,
    ) -> Self:
        """Start the server with a password of its own; raises CannotStart."""
        password = secrets.token_urlsafe(24)
        secured = msgspec.structs.replace(command, env={**command.env, server.password_variable: password})
        printed = asyncio.Event()
        process = await Process.start(nursery, secured, printed.set)
        channel = cls(process, printed, wake, FrameSplitter(max_frame_bytes))
        auth = httpx.BasicAuth(server.user, password)
        channel._task = asyncio.create_task(channel._run(server.events, auth), name=f"http {process.pid}")
        return channel

    # What a connection needs

    @property
    def stderr(self) -> StderrLog:
        """What the server printed."""
        return self._process.stderr

    @property
    def is_gone(self) -> bool:
        """Whether nothing of the process tree is alive."""
        return self._process.is_gone

    @property
    def exit(self) -> Exit:
        """How the server ended; only after it has."""
        return self._process.exit

    def read(self) -> bytes | None:
        """The frames so far, b"" at the end, None when there are none now."""
        if not self._frames:
            return b"" if self._over else None
        chunk = b"".join(self._frames)
        self._frames, self._held = [], 0
        self._room.set()
        return chunk

    async def wait_exit(self, timeout: float) -> bool:
        """Wait for the server to end; False when the time is up."""
        return await self._process.wait_exit(timeout)

    async def stop(self, *, grace: float, force: bool = False) -> None:
        """End the whole tree; returns when it is gone."""
        await self._process.stop(grace=grace, force=force)

    async def freeze(self) -> bool:
        """Stop the whole tree where it stands; False if the keeper did not answer."""
        return await self._process.freeze()

    async def thaw(self) -> bool:
        """Let it go on; False if the keeper did not answer."""
        return await self._process.thaw()

    def release(self) -> None:
        """Close everything."""
        if self._task is not None:
            self._task.cancel()
        self._process.release()

    # The task

    async def _run(self, events: str, auth: httpx.Auth) -> None:
        talking = asyncio.create_task(self._talk(events, auth))
        try:
            await self._watch_output()
            await finished(talking, _LAST_EVENTS_SECONDS)
        finally:
            talking.cancel()
            self.stderr.feed(self._verdict.encode())  # after all that it said itself
            self._over = True
            self._wake()
            await finished(talking, _LAST_EVENTS_SECONDS)

    async def _watch_output(self) -> None:
        """Find the address in what the server prints, and keep the rest for reports; ends with the server."""
        greeting = b""
        while True:
            self._printed.clear()
            chunk = self._process.read()
            if chunk is None:
                await self._printed.wait()
            elif chunk:
                self.stderr.feed(chunk)
                if not self._address.done():
                    greeting = (greeting + chunk)[-_GREETING_BYTES:]
                    self._look_for_address(greeting)
            else:
                return

    def _look_for_address(self, greeting: bytes) -> None:
        if found := _ADDRESS.search(greeting):
            self._address.set_result(found[1].decode())

    async def _talk(self, events: str, auth: httpx.Auth) -> None:
        """Talk to the server until its event stream ends; one that lives on without it is of no use and is stopped."""
        address = await self._address
        problem = "its event stream ended"
        try:
            async with (
                httpx.AsyncClient(base_url=address, auth=auth, timeout=_TIMEOUT, trust_env=False) as client,
                client.stream("GET", events) as stream,
            ):
                if stream.is_error:
                    words = (await stream.aread()).decode(errors="replace")
                    self._verdict = f"\n{stream.status_code} {words}"
                    stream.raise_for_status()
                performing = asyncio.create_task(self._perform(client))
                try:
                    await self._listen(stream)
                finally:
                    performing.cancel()
                    await asyncio.wait({performing})
        except httpx.HTTPError as error:
            problem = repr(error)
        except Exception as error:
            log.error("http_channel.failed", pid=self._process.pid, exc_info=error)
        if not await self._process.wait_exit(_LAST_EVENTS_SECONDS):
            log.warning("http_channel.broken", pid=self._process.pid, error=problem)
            await self._process.stop(grace=_STOP_GRACE)

    async def _listen(self, stream: httpx.Response) -> None:
        async for chunk in stream.aiter_bytes():
            for line in self._splitter.feed(chunk):
                if isinstance(line, Overlong):
                    await self._push(msgspec.json.encode({"event": {"type": "overlong", "size": line.size}}))
                elif line.startswith(b"data:"):
                    await self._push(b'{"event":%b}' % line.removeprefix(b"data:").strip())

    async def _perform(self, client: httpx.AsyncClient) -> None:
        while True:
            request = _requests.decode(await self.stdin.take())
            if request.method == "EXIT":
                self._verdict = f"\n{request.body}"
                await self._process.stop(grace=_STOP_GRACE)
                return
            status, body = await _answer(client, request)
            await self._push(msgspec.json.encode({"response": request.id, "status": status, "body": body}))

    async def _push(self, frame: bytes) -> None:
        """Hand over a frame; waits while the connection has not read what is there, so the server waits too."""
        await self._room.wait()
        self._frames.append(frame + b"\n")
        self._held += len(frame)
        if self._held > HELD_BYTES:
            self._room.clear()
        self._wake()


async def _answer(client: httpx.AsyncClient, request: _Request) -> tuple[int, Any]:
    content = None if request.body is None else msgspec.json.encode(request.body)
    headers = {"content-type": "application/json"} if content is not None else {}
    try:
        response = await client.request(request.method, request.path, content=content, headers=headers)
    except httpx.HTTPError as error:
        return 0, f"{type(error).__name__}: {error}"
    try:
        return response.status_code, msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return response.status_code, response.text
