"""Orders and input for followers that listen at this server, and what followers said of how they can be reached."""

import asyncio
import base64
from collections import deque
from collections.abc import Callable, Iterable
from weakref import WeakValueDictionary, ref

import msgspec

from ostler.base.errors.fleets import FollowerAway, FollowerTaken
from ostler.wire.connecting import ControlOrder, HandshakeAck, HandshakeStatus, HostReached, Reached

TAKEN_SECONDS = 20.0
"""So long a message waits for a follower that connects anew."""
MOST_WAITING = 64
PIECE_BYTES = 128 * 1024


class _Message(msgspec.Struct):
    frame: bytes
    taken: "asyncio.Future[None]"


class Mailbox:
    """Messages for one reader in order; who sends a message hears when the reader has it.

    A stream that has ended is no reader any more: it is known here only as long as somebody writes it.
    """

    def __init__(self) -> None:
        self._messages: deque[_Message] = deque()
        self._news = asyncio.Event()
        self._reader: ref[MailStream] | None = None

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

    def read_by(self, reader: "MailStream") -> None:
        """Give what comes to this one, and end the stream of an earlier one."""
        self._reader = ref(reader)
        self._news.set()

    def is_for(self, follower: str | None) -> bool:
        """Whether nobody reads, or the same follower: one that says nothing of itself is as good as another such."""
        reader = self._reader() if self._reader is not None else None
        return reader is None or reader.follower == follower

    def _reads(self, reader: "MailStream") -> bool:
        return self._reader is not None and self._reader() is reader

    async def next(self, reader: "MailStream", heartbeat: float) -> "_Message | None":
        """The next message, which stays until it is taken; None when there is a newer reader.

        Raises TimeoutError if there is none for so long.
        """
        async with asyncio.timeout(heartbeat or None):
            while self._reads(reader) and not self._messages:
                self._news.clear()
                await self._news.wait()
        return self._messages[0] if self._reads(reader) else None

    def took(self, message: "_Message") -> None:
        """The reader has it."""
        if message in self._messages:
            self._messages.remove(message)
        if not message.taken.done():
            message.taken.set_result(None)


class MailStream:
    """What a follower reads: a first word, then its messages. Implements streams.outflow.Chunks."""

    def __init__(
        self,
        mailbox: Mailbox,
        first: bytes,
        heartbeat: float,
        is_over: Callable[[], bool],
        *,
        follower: str | None,
        replaced: bytes = b"",
    ) -> None:
        """`is_over` tells that there will be no more; `replaced` is the last word when a newer stream takes over."""
        self.follower = follower
        """What its reader calls itself."""
        self._mailbox = mailbox
        self._first = first
        self._replaced = replaced
        self._heartbeat = heartbeat
        self._is_over = is_over
        self._given: _Message | None = None
        mailbox.read_by(self)

    async def next(self) -> bytes | None:
        """The next bytes; whoever asks for more has got those before."""
        if self._given is not None:
            self._mailbox.took(self._given)
            self._given = None
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            self._given = await self._mailbox.next(self, self._heartbeat)
        except TimeoutError:
            return None if self._is_over() else b": still here\n\n"
        if self._given is not None:
            return self._given.frame
        last, self._replaced = self._replaced, b""
        return last or None


class _Handshake:
    """Followers that were asked, and what they said."""

    def __init__(self, session: str, hosts: Iterable[str]) -> None:
        self.session = session
        self.acks: dict[str, HandshakeAck | None] = dict.fromkeys(hosts)
        self.done = asyncio.Event()

    def hear(self, ack: HandshakeAck) -> None:
        """Note what one of them says."""
        if ack.session_id == self.session and ack.host in self.acks:
            self.acks[ack.host] = ack
        if None not in self.acks.values():
            self.done.set()


class Relay:
    """The ways to all followers, by session and host; a mailbox is there as long as it has a reader or a sender."""

    def __init__(self) -> None:
        self._control: WeakValueDictionary[tuple[str, str], Mailbox] = WeakValueDictionary()
        self._stdin: WeakValueDictionary[tuple[str, str], Mailbox] = WeakValueDictionary()
        self._handshakes: list[_Handshake] = []

    def control(self, session: str, host: str) -> Mailbox:
        """The orders for a follower."""
        return self._control.setdefault((session, host), Mailbox())

    def stdin(self, session: str, host: str) -> Mailbox:
        """The input for what runs on a follower."""
        return self._stdin.setdefault((session, host), Mailbox())

    def check(self, session: str, host: str, follower: str | None) -> None:
        """Raise if another follower listens by this name."""
        boxes = (self._control.get((session, host)), self._stdin.get((session, host)))
        if not all(box is None or box.is_for(follower) for box in boxes):
            raise FollowerTaken(session=session, host=host)

    async def order(self, session: str, host: str, order: ControlOrder) -> None:
        """Hand an order to a follower."""
        await self._send(self.control(session, host), session, host, frame(msgspec.json.encode(order)))

    async def write(self, session: str, host: str, data: bytes, run: str | None) -> None:
        """Hand input to a run on a follower, or to what runs there now; nothing is the end of it."""
        pieces = [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)] or [b""]
        to = {"run": run} if run is not None else {}
        for piece in pieces:
            words = {"data": base64.b64encode(piece).decode(), "end": not piece, **to}
            await self._send(self.stdin(session, host), session, host, frame(msgspec.json.encode(words)))

    async def _send(self, mailbox: Mailbox, session: str, host: str, sent: bytes) -> None:
        if not await mailbox.send(sent, TAKEN_SECONDS):
            raise FollowerAway(host=host, session=session)

    def ack(self, ack: HandshakeAck) -> None:
        """A follower says how it can be reached."""
        for each in self._handshakes:
            each.hear(ack)

    async def handshake(self, session: str, hosts: Iterable[str], seconds: float) -> HandshakeStatus:
        """Ask followers, and wait until all have answered or the time is over."""
        asked = _Handshake(session, hosts)
        word = frame(b'{"type":"handshake"}')
        asking = [asyncio.create_task(self.control(session, host).send(word, seconds)) for host in asked.acks]
        self._handshakes.append(asked)
        try:
            async with asyncio.timeout(seconds):
                await asked.done.wait()
        except TimeoutError:
            pass  # the answer says who is missing
        finally:
            self._handshakes.remove(asked)
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return HandshakeStatus(statuses={host: _reached(ack) for host, ack in asked.acks.items()})


def frame(data: bytes) -> bytes:
    """One message of an event stream."""
    return b"data: %b\n\n" % data


def _reached(ack: HandshakeAck | None) -> HostReached:
    if ack is None:
        return HostReached(overlay="fail", relay="fail", ssh="fail")
    return HostReached(overlay=_way(ack.overlay_ready), relay=_way(ack.relay_ready), ssh="ok" if ack.ssh_ok else "fail")


def _way(ready: bool | None) -> Reached:
    return "skip" if ready is None else "ok" if ready else "fail"
