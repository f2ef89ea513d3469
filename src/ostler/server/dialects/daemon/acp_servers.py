"""ACP over HTTP as newer clients of the daemon speak it: a server for each id that a client chose.

A request is answered in the answer to its POST; everything else that the agent says goes to one numbered stream.
"""

import asyncio
from collections import deque
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import NotFound
from ostler.server.dialects.acp.connection import AcpConnection, ConnectionServices
from ostler.server.dialects.acp.messages import Incoming
from ostler.server.dialects.acp.transports import Channel
from ostler.wire.struct import Wire

_MOST_MESSAGES = 4000
_MOST_BYTES = 8 * 2**20
"""What is kept of a client that does not read: the newest messages, at most this much together."""
_MOST_CLIENTS = 500
"""Of one project; the one that has been silent for longest gives way."""
_IDLE_SECONDS = 3600.0
_HEARTBEAT = b": still here\n\n"
Key = tuple[str, str]
"""The project, and the id that the client chose."""


class DaemonAcpServer(Wire, frozen=True, kw_only=True, rename="camel"):
    """A client that speaks ACP over HTTP."""

    server_id: str
    agent: str
    created_at_ms: int


class DaemonAcpServers(Wire, frozen=True, kw_only=True):
    """All of them."""

    servers: tuple[DaemonAcpServer, ...]


class AcpServer:
    """One client: its connection, from its first message on, and what it has not read yet."""

    def __init__(self, server_id: str, clock: Clock, heartbeat: float) -> None:
        self.id = server_id
        self.agent = ""
        self.last_used = clock.monotonic()
        self.created_at = datetime.fromisoformat(clock.now())
        self._clock = clock
        self._heartbeat = heartbeat
        self._connection: AcpConnection | None = None
        self._messages: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self._waiting: dict[Any, asyncio.Future[bytes]] = {}
        self._changed = asyncio.Event()
        self._is_closed = False

    @property
    def has_begun(self) -> bool:
        """Whether the client has said which agent it wants."""
        return self._connection is not None

    def begin(self, services: ConnectionServices) -> None:
        """The first message came, and says which agent is wanted."""
        self.agent = services.default_agent
        self._connection = AcpConnection(services, Channel(self._take))

    async def post(self, incoming: Incoming) -> bytes | None:
        """Take one message of the client; gives the answer to a request as soon as it is there."""
        connection = self._connection
        if connection is None:
            hint = "Name the agent with the first message: ?agent=mock."
            raise NotFound(what="ACP server", value=self.id, hint=hint)
        if not incoming.is_request:
            await connection.handle(incoming)
            return None
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[incoming.id] = answer
        try:
            await connection.handle(incoming)
            return await answer
        finally:
            self._waiting.pop(incoming.id, None)

    async def _take(self, text: str) -> None:
        """What the connection has to say: the answer that a POST waits for, or a message of the stream."""
        message = msgspec.json.decode(text)
        waiting = None if "method" in message else self._waiting.get(message.get("id"))
        if waiting is not None and not waiting.done():
            waiting.set_result(text.encode())
            return
        self._last += 1
        self._keep(self._last, text.encode())
        self._wake()

    def _keep(self, number: int, message: bytes) -> None:
        self._messages.append((number, message))
        self._bytes += len(message)
        while len(self._messages) > _MOST_MESSAGES or (self._bytes > _MOST_BYTES and len(self._messages) > 1):
            _, dropped = self._messages.popleft()
            self._bytes -= len(dropped)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        """The client left; its sessions go on."""
        self._is_closed = True
        for waiting in self._waiting.values():
            waiting.cancel()
        if self._connection is not None:
            await self._connection.close()
        self._wake()

    async def after(self, position: int) -> list[tuple[int, bytes]] | None:
        """The messages behind a position, after some time none; None when there will be no more."""
        self.last_used = self._clock.monotonic()
        changed = self._changed
        found = [message for message in self._messages if message[0] > position]
        if found or self._is_closed:
            return found or None
        try:
            async with asyncio.timeout(self._heartbeat):
                await changed.wait()
        except TimeoutError:
            pass
        return []


class AcpServerStream:
    """What an agent says, from a position on."""

    def __init__(self, server: AcpServer, position: int) -> None:
        self._server = server
        self._position = position

    async def next(self) -> bytes | None:
        """The next bytes to write."""
        found = await self._server.after(self._position)
        if found is None:
            return None
        self._position = found[-1][0] if found else self._position
        return b"".join(b"id: %d\ndata: %b\n\n" % message for message in found) or _HEARTBEAT


class AcpServers:
    """Every client of this server; one that has been silent for long is forgotten, its sessions are not."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._servers: dict[Key, AcpServer] = {}
        self._expected: WeakValueDictionary[Key, AcpServer] = WeakValueDictionary()
        """Those whose first message is still to come; each is there only as long as its stream is read."""

    def of(self, project: str) -> list[AcpServer]:
        """Those of a project that have begun."""
        return [server for (owner, _), server in self._servers.items() if owner == project]

    async def open(self, project: str, server_id: str, heartbeat: float) -> AcpServer:
        """The one that a client calls so, made if need be: its stream may come before its first message."""
        await self._forget_idle()
        key = project, server_id
        if (server := self._servers.get(key) or self._expected.get(key)) is None:
            server = self._expected[key] = AcpServer(server_id, self._clock, heartbeat)
        server.last_used = self._clock.monotonic()
        return server

    async def begin(self, project: str, server: AcpServer, services: ConnectionServices) -> None:
        """The first message of a client came."""
        server.begin(services)
        self._servers[project, server.id] = server
        known = self.of(project)
        if len(known) > _MOST_CLIENTS:
            await self.close(project, min(known, key=lambda each: each.last_used).id)

    async def close(self, project: str, server_id: str) -> None:
        """Forget a client."""
        key = project, server_id
        expected = self._expected.pop(key, None)
        if (server := self._servers.pop(key, expected)) is not None:
            await server.close()

    async def _forget_idle(self) -> None:
        oldest = self._clock.monotonic() - _IDLE_SECONDS
        for (project, server_id), server in list(self._servers.items()):
            if server.last_used < oldest:
                await self.close(project, server_id)
