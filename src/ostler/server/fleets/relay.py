"""Orders and input for followers that listen at this server, and what followers said of how they can be reached."""

import asyncio
import base64
from collections import deque
from collections.abc import Iterable

import msgspec

from ostler.base.errors.fleets import FollowerAway
from ostler.wire.connecting import ControlOrder, HandshakeAck, HandshakeStatus, HostReached, Reached

TAKEN_SECONDS = 20.0
"""So long a message waits for a follower that connects anew."""
MOST_WAITING = 64
PIECE_BYTES = 128 * 1024


class _Message(msgspec.Struct):
    frame: bytes
    taken: "asyncio.Future[None]"


class Mailbox:
    """Messages for one reader in order; who sends one hears when the reader has it."""

    def __init__(self) -> None:
        self._messages: deque[_Message] = deque()
        self._news = asyncio.Event()

    async def send(self, frame: bytes, seconds: float) -> bool:
        """Whether the reader took it in time; one that it did not take is forgotten."""
        if len(self._messages) >= MOST_WAITING:
            return False
        message = _Message(frame, asyncio.get_running_loop().create_future())
        self._messages.append(message)
        self._news.set()
        try:
            async with asyncio.timeout(seconds):
                await message.taken
        except TimeoutError:
            return False
        finally:
            if message in self._messages:
                self._messages.remove(message)
        return True

    def post(self, frame: bytes) -> None:
        """For a reader who is there soon, or never."""
        if len(self._messages) < MOST_WAITING:
            self._messages.append(_Message(frame, asyncio.get_running_loop().create_future()))
            self._news.set()

    async def next(self, heartbeat: float) -> bytes:
        """The next message, or a comment if there is none for so long."""
        try:
            async with asyncio.timeout(heartbeat or None):
                while not self._messages:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return b": still here\n\n"
        message = self._messages.popleft()
        if not message.taken.done():
            message.taken.set_result(None)
        return message.frame


class MailStream:
    """What a follower reads: a first word, then its messages. Implements streams.outflow.Chunks."""

    def __init__(self, mailbox: Mailbox, first: bytes, heartbeat: float) -> None:
        self._mailbox = mailbox
        self._first = first
        self._heartbeat = heartbeat

    async def next(self) -> bytes | None:
        """The next bytes."""
        if self._first:
            first, self._first = self._first, b""
            return first
        return await self._mailbox.next(self._heartbeat)


class Relay:
    """The mailboxes and the answers of all followers, by session and host."""

    def __init__(self) -> None:
        self._control: dict[tuple[str, str], Mailbox] = {}
        self._stdin: dict[tuple[str, str], Mailbox] = {}
        self._acks: dict[tuple[str, str], HandshakeAck] = {}
        self._acked = asyncio.Condition()

    def control(self, session: str, host: str) -> Mailbox:
        """The orders for a follower."""
        return self._control.setdefault((session, host), Mailbox())

    def stdin(self, session: str, host: str) -> Mailbox:
        """The input for what runs on a follower."""
        return self._stdin.setdefault((session, host), Mailbox())

    def forget(self, session: str) -> None:
        """A session is over."""
        for table in (self._control, self._stdin, self._acks):
            for key in [key for key in table if key[0] == session]:
                table.pop(key)

    async def order(self, session: str, host: str, order: ControlOrder) -> None:
        """Hand an order to a follower."""
        await self._send(self.control(session, host), session, host, frame(msgspec.json.encode(order)))

    async def write(self, session: str, host: str, data: bytes) -> None:
        """Hand input to what runs on a follower; nothing is the end of it."""
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)] or [b""]
        for piece in pieces:
            words = {"data": base64.b64encode(piece).decode(), "end": not piece}
            await self._send(self.stdin(session, host), session, host, frame(msgspec.json.encode(words)))

    async def _send(self, mailbox: Mailbox, session: str, host: str, sent: bytes) -> None:
        if not await mailbox.send(sent, TAKEN_SECONDS):
            raise FollowerAway(host=host, session=session)

    async def ack(self, ack: HandshakeAck) -> None:
        """A follower says how it can be reached."""
        async with self._acked:
            self._acks[ack.session_id, ack.host] = ack
            self._acked.notify_all()

    async def handshake(self, session: str, hosts: Iterable[str], seconds: float) -> HandshakeStatus:
        """Ask followers, and wait until all have answered or the time is over."""
        wanted = tuple(dict.fromkeys(hosts))
        for host in wanted:
            self._acks.pop((session, host), None)
            self.control(session, host).post(frame(b'{"type":"handshake"}'))
        try:
            async with asyncio.timeout(seconds), self._acked:
                await self._acked.wait_for(lambda: all((session, host) in self._acks for host in wanted))
        except TimeoutError:
            pass  # the answer says who is missing
        return HandshakeStatus(statuses={host: _reached(self._acks.get((session, host))) for host in wanted})


def frame(data: bytes) -> bytes:
    """One message of an event stream."""
    return b"data: %b\n\n" % data


def _reached(ack: HandshakeAck | None) -> HostReached:
    if ack is None:
        return HostReached(overlay="fail", relay="fail", ssh="fail")
    return HostReached(overlay=_way(ack.overlay_ready), relay=_way(ack.relay_ready), ssh="ok" if ack.ssh_ok else "fail")


def _way(ready: bool | None) -> Reached:
    return "skip" if ready is None else "ok" if ready else "fail"
