"""The SOCKS5 front of sessions: peers register addresses by a WebSocket, and only these can be reached, by name.

Its host connects to nobody. For each connection it asks the peer over the socket that it registered with, and the
peer opens one more socket, whose messages are the bytes of that connection.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol

import msgspec

from ostler.base.clock import later
from ostler.base.errors.fleets import SocksOff, TooManyPeers
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.wire.connecting import Register, SocksAccess

log = Log(__name__)
VALID_SECONDS = 3600
_OPEN_SECONDS = 15.0
GREETING_SECONDS = 15.0
_OVER, BAD, NOBODY, TAKEN = 1000, 4400, 4404, 4409
"""What a socket of a peer is closed with: its first words are wrong, nobody waits for it, or others have its place."""
_LONGEST_REASON = 120
_PIECE = 64 * 1024
"""Each is copied a few times, which costs half as much while it fits into the processor's cache."""
_VERSION, _BY_PASSWORD, _NO_WAY, _CONNECT, _NAME = 5, 2, 0xFF, 1, 3
_DONE, _FULL, _NOT_ALLOWED, _UNREACHABLE, _REFUSED, _NO_COMMAND, _NO_ADDRESS = 0, 1, 2, 4, 5, 7, 8
_LOOK_SECONDS = 5.0
"""So often it is looked whether the session of a peer is over."""
MOST_PEERS = 256
"""Of one session."""
MOST_STREAMS = 512
"""Connections of one session at a time."""
MOST_LOGINS = 256
"""Clients at a time that have not logged in yet."""
MOST_LOGINS_OF_ONE = 64
"""Of them from one address."""


class PeerSocket(Protocol):
    """One WebSocket of a peer."""

    async def send_text(self, text: str) -> None:
        """Send words."""

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes."""

    async def receive(self) -> bytes | str | None:
        """The next message; None when it is closed."""


class Farewell(NamedTuple):
    """How the socket of a peer is closed."""

    code: int
    reason: str = ""


class _Peer:
    def __init__(self, socket: PeerSocket, register: Register) -> None:
        self.socket = socket
        self.instance = register.instance
        self.replaced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ports = {int(target.rsplit(":", 1)[1]): name for name, target in register.targets.items()}


class _Stream:
    """A connection that waits for its socket, or has it."""

    def __init__(self, session: str, peer: str) -> None:
        loop = asyncio.get_running_loop()
        self.session = session
        self.peer = peer
        self.socket: asyncio.Future[PeerSocket | None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()


class _Entry(msgspec.Struct, frozen=True):
    digest: bytes
    until: float


class Rendezvous:
    """The peers of all sessions and the proxy in front of them."""

    def __init__(self) -> None:
        self._idle_seconds = 0.0
        self._most_bytes = 0
        self._peers: dict[tuple[str, str], _Peer] = {}
        self._streams: dict[str, _Stream] = {}
        self._entries: dict[str, list[_Entry]] = {}
        self._logins: Counter[str] = Counter()
        self._server: asyncio.Server | None = None
        self._address = ("", 0)

    async def start(self, host: str, port: int, *, idle_seconds: float, most_bytes: int) -> None:
        """Listen; 0 is no limit."""
        self._idle_seconds, self._most_bytes = idle_seconds, most_bytes
        self._server = await asyncio.start_server(self._serve, host, port, limit=2 * _PIECE)
        self._address = (host, self._server.sockets[0].getsockname()[1])
        log.info("socks.listening", host=host, port=self._address[1])

    def close(self) -> None:
        """Listen no more, and end what is open."""
        for stream in self._streams.values():
            if not stream.socket.done():
                stream.socket.set_result(None)
        if self._server is not None:
            self._server.close()

    def access(self, session: str, now: str) -> SocksAccess:
        """A new password for the peers of a session."""
        if self._server is None:
            raise SocksOff
        time = asyncio.get_running_loop().time()
        password = secrets.token_urlsafe(32)
        valid = [entry for entry in self._entries.get(session, ()) if entry.until > time][-15:]
        self._entries = {of: entries for of, entries in self._entries.items() if entries[-1].until > time}
        self._entries[session] = [*valid, _Entry(_digest(password), time + VALID_SECONDS)]
        return SocksAccess(
            host=self._address[0],
            port=self._address[1],
            username=session,
            password=password,
            expires_at=later(now, VALID_SECONDS),
            names=self.names(session),
        )

    def names(self, session: str) -> tuple[str, ...]:
        """What can be reached in a session."""
        found = (f"{peer}:{port}" for (of, peer), each in self._peers.items() if of == session for port in each.ports)
        return tuple(sorted(found))

    def refuse_if_full(self, session: str, peer: str) -> None:
        """Raise if a session has as many peers as it may have, and this is one more."""
        others = sum(of == session and name != peer for of, name in self._peers)
        if others >= MOST_PEERS:
            raise TooManyPeers(session=session, most=MOST_PEERS)

    async def serve(
        self, session: str, peer: str, stream: str | None, socket: PeerSocket, is_over: Callable[[], bool]
    ) -> Farewell | None:
        """Have a socket that registers a peer, or one that brings a connection; None if it was closed by its peer."""
        if stream is not None:
            return Farewell(_OVER if await self._attach(session, peer, stream, socket) else NOBODY)
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                if (words := await socket.receive()) is None:
                    return None
            wanted = msgspec.json.decode(words, type=Register)
            self.refuse_if_full(session, peer)
        except (msgspec.MsgspecError, TimeoutError) as error:
            return Farewell(BAD, str(error)[:_LONGEST_REASON] or "It did not say its targets.")
        except TooManyPeers as error:
            return Farewell(TAKEN, str(error)[:_LONGEST_REASON])
        return await self._register(session, peer, socket, wanted, is_over)

    async def _register(
        self, session: str, peer: str, socket: PeerSocket, register: Register, is_over: Callable[[], bool]
    ) -> Farewell | None:
        """Have a peer until its socket or the session ends; who connects anew takes the place that it had."""
        former, mine = self._peers.get((session, peer)), _Peer(socket, register)
        if former is not None and former.instance != mine.instance:
            return Farewell(TAKEN, f"Another peer of this session has the name '{peer}'; two need two names.")
        self._peers[session, peer] = mine
        if former is not None:
            former.replaced.set_result(None)
        try:
            names = [f"{peer}:{port}" for port in mine.ports]
            await socket.send_text(msgspec.json.encode({"type": "registered", "names": names}).decode())
            return await self._listen(session, peer, mine, is_over)
        finally:
            if self._peers.get((session, peer)) is mine:
                del self._peers[session, peer]

    async def _listen(self, session: str, peer: str, mine: _Peer, is_over: Callable[[], bool]) -> Farewell | None:
        receiving = asyncio.ensure_future(mine.socket.receive())
        try:
            while not is_over():
                either: set[asyncio.Future[Any]] = {receiving, mine.replaced}
                await asyncio.wait(either, timeout=_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if mine.replaced.done():
                    return Farewell(TAKEN, "This peer has registered anew.")
                if not receiving.done():
                    continue
                if (message := receiving.result()) is None:
                    return None
                self._heard(session, peer, message)
                receiving = asyncio.ensure_future(mine.socket.receive())
            return Farewell(NOBODY, "The session is over.")
        finally:
            receiving.cancel()

    def _heard(self, session: str, peer: str, message: bytes | str) -> None:
        """A peer that cannot open what it was asked for says so."""
        with suppress(msgspec.MsgspecError, TypeError, AttributeError):
            words = msgspec.json.decode(message)
            stream = self._streams.get(str(words.get("stream")))
            if (
                words.get("type") == "failed"
                and stream is not None
                and (stream.session, stream.peer) == (session, peer)
            ) and not stream.socket.done():
                stream.socket.set_result(None)

    async def _attach(self, session: str, peer: str, stream_id: str, socket: PeerSocket) -> bool:
        """Give a connection its socket, and return when it is over; False if nobody waits for it."""
        stream = self._streams.get(stream_id)
        if stream is None or (stream.session, stream.peer) != (session, peer) or stream.socket.done():
            return False
        stream.socket.set_result(socket)
        await stream.over
        return True

    # The proxy

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = str((writer.get_extra_info("peername") or ("",))[0])
        try:
            if self._logins[address] >= MOST_LOGINS_OF_ONE or self._logins.total() >= MOST_LOGINS:
                return
            with self._logging_in(address):
                async with asyncio.timeout(GREETING_SECONDS):
                    session = await self._greeted(reader, writer)
                    target = await _wanted(reader, writer) if session is not None else None
            if session is not None and target is not None:
                await self._connect(session, *target, reader, writer)
        except (OSError, EOFError, TimeoutError, ValueError):
            pass  # the client is gone, or speaks something else
        finally:
            writer.close()

    @contextmanager
    def _logging_in(self, address: str) -> Iterator[None]:
        """Count a client that has not logged in yet."""
        self._logins[address] += 1
        try:
            yield
        finally:
            self._logins[address] -= 1
            if not self._logins[address]:
                del self._logins[address]

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str | None:
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if version != _VERSION or _BY_PASSWORD not in methods:
            writer.write(bytes((_VERSION, _NO_WAY)))
            await writer.drain()
            return None
        writer.write(bytes((_VERSION, _BY_PASSWORD)))
        _, length = await reader.readexactly(2)
        session = (await reader.readexactly(length)).decode()
        password = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        is_known = self._opens(session, password)
        writer.write(bytes((1, 0 if is_known else 1)))
        await writer.drain()
        return session if is_known else None

    def _opens(self, session: str, password: str) -> bool:
        now, digest = asyncio.get_running_loop().time(), _digest(password)
        valid = [entry for entry in self._entries.get(session, ()) if entry.until > now]
        return any([hmac.compare_digest(entry.digest, digest) for entry in valid])  # noqa: C419 - all are compared

    async def _connect(
        self, session: str, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        peer = self._peers.get((session, host))
        if peer is None or port not in peer.ports:
            await _say(writer, _UNREACHABLE if peer is None else _NOT_ALLOWED)
            return
        if sum(each.session == session for each in self._streams.values()) >= MOST_STREAMS:
            await _say(writer, _FULL)
            return
        stream_id, stream = new_id("str"), _Stream(session, host)
        self._streams[stream_id] = stream
        first = asyncio.create_task(reader.read(_PIECE))  # an end of it says that the client waits no longer
        try:
            words = {"type": "open", "stream": stream_id, "target": peer.ports[port]}
            await peer.socket.send_text(msgspec.json.encode(words).decode())
            async with asyncio.timeout(_OPEN_SECONDS):
                either: set[asyncio.Future[Any]] = {stream.socket, first}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if first.done() and not first.result():
                    return
                socket = await stream.socket
            await _say(writer, _REFUSED if socket is None else _DONE)
            if socket is not None:
                await self._pump(first, reader, writer, socket)
        except TimeoutError:
            await _say(writer, _UNREACHABLE)
        finally:
            first.cancel()
            del self._streams[stream_id]
            stream.over.set_result(None)

    async def _pump(
        self,
        first: "asyncio.Task[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        socket: PeerSocket,
    ) -> None:
        """Pass bytes both ways until both ends have said all, nothing is said for long, or too much was."""
        traffic = _Traffic(self._idle_seconds, self._most_bytes)
        ways = [
            asyncio.create_task(_out(first, reader, socket, traffic)),
            asyncio.create_task(_in(writer, socket, traffic)),
        ]
        both: asyncio.Future[Any] = asyncio.gather(*ways)
        watch: asyncio.Future[Any] = asyncio.create_task(traffic.watch())
        try:
            await asyncio.wait({both, watch}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*ways, watch):
                task.cancel()
            await asyncio.gather(both, watch, return_exceptions=True)


class _Traffic:
    """How much was passed on, and when last."""

    def __init__(self, idle_seconds: float, most_bytes: int) -> None:
        self._idle_seconds = idle_seconds
        self._most_bytes = most_bytes
        self._bytes = 0
        self._moved = False

    def passed(self, count: int) -> None:
        """Raise if it is too much."""
        self._moved = True
        self._bytes += count
        if 0 < self._most_bytes < self._bytes:
            raise ConnectionAbortedError

    async def watch(self) -> None:
        """Return when nothing was passed on for so long."""
        while self._idle_seconds:
            self._moved = False
            await asyncio.sleep(self._idle_seconds)
            if not self._moved:
                return
        await asyncio.get_running_loop().create_future()


END = "end"
"""The text message that says that one side has said all."""


async def _out(
    first: "asyncio.Task[bytes]", reader: asyncio.StreamReader, socket: PeerSocket, traffic: _Traffic
) -> None:
    data = await first
    while data:
        traffic.passed(len(data))
        await socket.send_bytes(data)
        data = await reader.read(_PIECE)
    await socket.send_text(END)


async def _in(writer: asyncio.StreamWriter, socket: PeerSocket, traffic: _Traffic) -> None:
    while (message := await socket.receive()) is not None:
        if isinstance(message, str):
            with suppress(OSError):
                writer.write_eof()
            return
        traffic.passed(len(message))
        writer.write(message)
        await writer.drain()
    raise ConnectionAbortedError


async def _wanted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int] | None:
    """The name and port that a client wants; addresses are nobody's names."""
    version, command, _, kind = await reader.readexactly(4)
    if version != _VERSION or command != _CONNECT or kind != _NAME:
        await _say(writer, _NO_COMMAND if command != _CONNECT else _NO_ADDRESS)
        return None
    host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
    return host, int.from_bytes(await reader.readexactly(2), "big")


async def _say(writer: asyncio.StreamWriter, code: int) -> None:
    writer.write(bytes((_VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0)))
    await writer.drain()


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()
