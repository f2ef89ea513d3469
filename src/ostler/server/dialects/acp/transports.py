"""The two ways a client can be connected: one channel for everything, or a stream for each session."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from ostler.base.clock import Clock
from ostler.base.logs import Log
from ostler.server.dialects.acp.attachments import Source
from ostler.server.dialects.acp.blocks import Json
from ostler.server.dialects.acp.connection import AcpConnection, ConnectionServices
from ostler.server.dialects.acp.messages import Incoming

log = Log(__name__)
_POLL_SECONDS = 30.0
_IDLE_SECONDS = 3600.0
_HEARTBEAT = b": still here\n\n"


class Channel:
    """One ordered channel, such as a WebSocket: a task for each session moves its messages over."""

    def __init__(self, write: Callable[[str], Awaitable[None]]) -> None:
        self._write = write
        self._writing = asyncio.Lock()
        self._pumps: dict[Source, asyncio.Task[None]] = {}

    async def send(self, message: Json) -> None:
        """Write one message."""
        async with self._writing:
            await self._write(msgspec.json.encode(message).decode())

    def attach(self, attachment: Source) -> None:
        """Begin to move a session's messages."""
        self._pumps[attachment] = asyncio.get_running_loop().create_task(self._pump(attachment))

    async def detach(self, attachment: Source) -> None:
        """Stop that."""
        if (pump := self._pumps.pop(attachment, None)) is not None:
            pump.cancel()
            await asyncio.wait([pump])

    def is_read(self, session_id: str) -> bool:
        """Whether somebody takes what the session says now."""
        return any(attachment.id == session_id for attachment in self._pumps)

    async def _pump(self, attachment: Source) -> None:
        attachment.watch()
        try:
            while (messages := await attachment.next(timeout=_POLL_SECONDS)) is not None:
                for message in messages:
                    await self.send(message)
            for message in attachment.lost():
                await self.send(message)
        except Exception as error:  # noqa: BLE001 - the edge of a background task: most often the client is gone
            log.info("acp.channel_broken", session_id=attachment.id, reason=repr(error))
        finally:
            attachment.unwatch()


class HttpClient:
    """A client that posts its messages and reads streams: one of its own, and one for each session."""

    def __init__(self, services: ConnectionServices, clock: Clock, heartbeat: float) -> None:
        self.connection = AcpConnection(services, self)
        self.last_used = clock.monotonic()
        self.is_closed = False
        self._heartbeat = heartbeat
        self._background = services.background
        self._letters: list[Json] = []
        self._changed = asyncio.Event()
        self._reading: dict[str | None, int] = {}

    async def send(self, message: Json) -> None:
        """Keep a message until the client's own stream takes it; there is at most one for each request."""
        self._letters.append(message)
        self._change()

    def attach(self, attachment: Source) -> None:
        """A session's stream has something to say now."""
        self._change()

    async def detach(self, attachment: Source) -> None:
        """A session's stream has nothing to say any more."""
        self._change()

    def is_read(self, session_id: str) -> bool:
        """Whether somebody takes what the session says now."""
        return self.is_streaming(session_id)

    def is_streaming(self, session_id: str | None) -> bool:
        """Whether a stream is open and waits for more."""
        return self._reading.get(session_id, 0) > 0

    def accept(self, incoming: Incoming) -> None:
        """Handle a message after its request was answered."""
        self._background.spawn(self.connection.handle(incoming), connection=self.connection.id)

    async def close(self) -> None:
        """The client said goodbye."""
        self.is_closed = True
        await self.connection.close()
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def next(self, session_id: str | None) -> bytes | None:
        """The next bytes of a stream."""
        self._reading[session_id] = self._reading.get(session_id, 0) + 1
        try:
            messages = await (self._next_letters() if session_id is None else self._next_of(session_id))
        finally:
            self._reading[session_id] -= 1
        if messages is None:
            return None
        return b"".join(b"data: %b\n\n" % msgspec.json.encode(message) for message in messages) or _HEARTBEAT

    async def _next_letters(self) -> list[Json] | None:
        if not self._letters and not self.is_closed:
            await self._wait()
        letters, self._letters = self._letters, []
        return None if self.is_closed and not letters else letters

    async def _next_of(self, session_id: str) -> list[Json] | None:
        if self.is_closed:
            return None
        attachment = self.connection.attachments.get(session_id) or self.connection.passages.get(session_id)
        if attachment is None:  # opened ahead of session/load
            await self._wait()
            return []
        messages = await attachment.next(timeout=self._heartbeat)
        return attachment.lost() or None if messages is None else messages

    async def _wait(self) -> None:
        changed = self._changed
        try:
            async with asyncio.timeout(self._heartbeat):
                await changed.wait()
        except TimeoutError:
            return


class SessionStream:
    """The stream of one session, or of everything else, for one client."""

    def __init__(self, client: HttpClient, session_id: str | None) -> None:
        self._client = client
        self._session_id = session_id

    async def next(self) -> bytes | None:
        """The next bytes to write."""
        return await self._client.next(self._session_id)


class HttpClients:
    """All clients that post; one that has been silent for long is forgotten, its sessions are not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clients: dict[str, HttpClient] = {}

    async def open(self, services: ConnectionServices, heartbeat: float) -> HttpClient:
        """A new client."""
        await self._forget_idle()
        client = HttpClient(services, self._clock, heartbeat)
        self._clients[client.connection.id] = client
        return client

    def find(self, connection_id: str) -> HttpClient | None:
        """A client by the id it was given."""
        if (client := self._clients.get(connection_id)) is not None:
            client.last_used = self._clock.monotonic()
        return client

    async def close(self, connection_id: str) -> None:
        """Forget a client."""
        if (client := self._clients.pop(connection_id, None)) is not None:
            await client.close()

    async def _forget_idle(self) -> None:
        oldest = self._clock.monotonic() - _IDLE_SECONDS
        for connection_id, client in list(self._clients.items()):
            if client.last_used < oldest and not client.is_streaming(None):
                await self.close(connection_id)
