"""One socket between a server and a runner: messages of several peers in pieces, lane by lane, and beats both ways."""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Literal, Protocol

import msgspec

from ostler.base.errors.runners import LinkLost
from ostler.link.peer import Peer, Send

LINK_VERSION = 1
"""Of everything that passes over a link; a server refuses a runner that speaks another one."""
REFUSED = 4000
"""The code that a socket is closed with when the other end should not come back as it is."""
PIECE_BYTES = 128 * 1024
MOST_FRAME_BYTES = 2**20
"""The largest binary message that an end takes; pieces are far smaller."""
_MOST_BYTES = 320 * 2**20
_PART_BYTES = 8 * 1024
"""What a part counts for besides its data, so that small and empty ones are not free."""
_BEATS_OF_PATIENCE = 3

PeerName = Literal["runner", "workspaces"]


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """The first thing that a runner says; the fields up to `version` are the same in every version of the link."""

    link: int
    version: str
    """Of the program."""
    boot: str
    """Which start of the machine this is."""
    labels: dict[str, str]
    slots: int | None
    """How many sessions may be at work there at a time; None for no limit."""
    os: str
    arch: str
    hostname: str


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag="welcome"):
    """The server's answer to it."""

    runner: str
    name: str
    beat: float
    """Seconds between beats; an end that hears nothing for three of them holds the other for gone."""
    freeze_after: float = 0.0
    """Seconds without a link after which agents have to stand still, since their sessions may go on elsewhere then."""
    servers: tuple[str, ...] = ()
    """Where runners reach the servers that there are, as far as that was said."""


class Taken(msgspec.Struct, frozen=True, kw_only=True, tag="taken"):
    """The server has taken the runner in: everybody sees it, and it may get work."""


class Goodbye(msgspec.Struct, frozen=True, kw_only=True, tag="goodbye"):
    """This end leaves; `final` if the other one should not come back."""

    reason: str
    final: bool = False


class Beat(msgspec.Struct, frozen=True, kw_only=True, tag="beat", omit_defaults=True):
    """This end is there."""

    sent: float | None = None
    """When, by its own clock; the other end says it again."""
    again: float | None = None
    """What the other end said last."""


class Piece(msgspec.Struct, frozen=True, kw_only=True, tag="piece", omit_defaults=True):
    """A message of a peer, or a part of it."""

    of: PeerName
    data: bytes
    message: int = 0
    """What the parts of one message have in common; 0 if this is all of it."""
    more: bool = False


Frame = Hello | Welcome | Taken | Goodbye | Beat | Piece
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Frame).decode


class Socket(Protocol):
    """Moves whole binary messages; `send` waits while the other end does not read."""

    async def send(self, data: bytes) -> None:
        """Raises OSError if nothing can be sent any more."""
        ...

    async def receive(self) -> bytes | None:
        """The next message; None when the other end has closed."""
        ...


class _Outgoing:
    """A message that is being sent piece by piece."""

    def __init__(self, of: PeerName, data: bytes, number: int) -> None:
        self._of: PeerName = of
        self._data = data
        self._number = number if len(data) > PIECE_BYTES else 0
        self._at = 0
        self.sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def next(self) -> tuple[Piece, bool]:
        """The next piece, and whether it is the last one."""
        part = self._data[self._at : self._at + PIECE_BYTES] if self._number else self._data
        self._at += len(part)
        more = self._at < len(self._data)
        return Piece(of=self._of, data=part, message=self._number, more=more), not more


class _Incoming:
    """A message of which parts have come."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.held = 0

    def add(self, part: bytes) -> int:
        """One more part; returns what it counts for."""
        self.data += part
        counts = len(part) + _PART_BYTES
        self.held += counts
        return counts


class Channel:
    """Keeps the order within a lane; lanes take turns, a piece each, so that no session holds up the others.

    Nothing waits here but what its sender waits for too, so a peer that does not read costs no more memory.
    """

    def __init__(
        self,
        socket: Socket,
        beat: float,
        *,
        heard: Callable[[], object] = lambda: None,
        taken: Callable[[], object] = lambda: None,
        most_held: int | None = None,
    ) -> None:
        """`heard` is called whenever the other end has shown that it is there, `taken` when it has taken us in.

        Nothing is read while calls of the other end that are not answered yet hold more than `most_held` bytes.
        """
        self._socket = socket
        self._beat = beat
        self._on_heard = heard
        self._on_taken = taken
        self._most_held = most_held
        self._peers: dict[PeerName, Peer] = {}
        self._lanes: dict[str, deque[_Outgoing]] = {}
        self._numbers = count(1)
        self._wake = asyncio.Event()
        self._farewell: Goodbye | None = None
        self._lost: LinkLost | None = None
        self._parts: dict[int, _Incoming] = {}
        self._held = 0
        self._heard = 0.0
        self._beat_sent: float | None = None
        self.round_trip: float | None = None
        """Seconds from our last beat that was answered to the answer."""
        self._sending_since: float | None = None
        self._urgent: deque[Frame] = deque()

    def sender(self, of: PeerName) -> Send:
        """What a peer sends with."""

        async def send(data: bytes, lane: str) -> None:
            await self._send(of, data, f"{of} {lane}")

        return send

    def attach(self, name: PeerName, peer: Peer) -> None:
        """Whoever gets the messages of that peer's other end."""
        self._peers[name] = peer

    async def _send(self, of: PeerName, data: bytes, lane: str) -> None:
        if self._lost is not None:
            raise self._lost
        message = _Outgoing(of, data, next(self._numbers))
        self._lanes.setdefault(lane, deque()).append(message)
        self._wake.set()
        await asyncio.shield(message.sent)  # who gives up leaves it in its place: what undoes it follows

    def tell(self, frame: Frame) -> None:
        """Say something before all messages that wait."""
        self._urgent.append(frame)
        self._wake.set()

    def leave(self, goodbye: Goodbye) -> None:
        """Say goodbye, before anything else that waits, and have the channel end."""
        self._farewell = goodbye
        self._wake.set()

    async def run(self) -> Goodbye | None:
        """Move messages until one end says goodbye; None if it was this one. Raises LinkLost if the link breaks."""
        now = asyncio.get_running_loop().time
        self._heard = now()
        tasks = [asyncio.create_task(work) for work in (self._read(), self._write(), self._watch())]
        why = LinkLost(reason="it was closed")
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        except LinkLost as error:
            why = error
            raise
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            why = LinkLost(reason=str(error) or type(error).__name__)
            raise why from error
        finally:
            self._lose(why)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _lose(self, why: LinkLost) -> None:
        self._lost = why
        for message in [message for lane in self._lanes.values() for message in lane]:
            if not message.sent.done():
                message.sent.set_exception(why)
                message.sent.exception()  # its sender may have given up
        self._lanes.clear()
        for peer in self._peers.values():
            peer.lose(why)

    async def _read(self) -> Goodbye | None:
        while (data := await self._socket.receive()) is not None:
            self._heard = asyncio.get_running_loop().time()
            self._on_heard()
            match decode(data):
                case Piece() as piece:
                    self._take(piece)
                    await self._ease(self._peers[piece.of])
                case Goodbye() as goodbye:
                    return goodbye
                case Taken():
                    self._on_taken()
                case Beat() as beat:
                    self._beaten(beat)
                case Hello() | Welcome():
                    pass
        raise LinkLost(reason="the other end closed it")

    def _beaten(self, beat: Beat) -> None:
        if beat.sent is not None and not self._urgent:
            self.tell(Beat(again=beat.sent))
        if beat.again is not None and beat.again == self._beat_sent:
            self.round_trip, self._beat_sent = self._heard - beat.again, None

    def _take(self, piece: Piece) -> None:
        if not piece.message:
            self._peers[piece.of].receive(piece.data)
            return
        parts = self._parts.setdefault(piece.message, _Incoming())
        self._held += parts.add(piece.data)
        if self._held > _MOST_BYTES:
            raise LinkLost(reason=f"the other end sent a message of more than {_MOST_BYTES} bytes")
        if not piece.more:
            del self._parts[piece.message]
            self._held -= parts.held
            self._peers[piece.of].receive(bytes(parts.data))

    async def _ease(self, peer: Peer) -> None:
        if self._most_held is None or peer.held <= self._most_held:
            return
        try:
            async with asyncio.timeout(_BEATS_OF_PATIENCE * self._beat):
                await peer.eased(self._most_held)
        except TimeoutError:
            raise LinkLost(reason=f"what the other end wants done takes more than {self._most_held} bytes") from None
        self._heard = asyncio.get_running_loop().time()  # it may have said a lot meanwhile

    async def _write(self) -> Goodbye | None:
        while self._farewell is None:
            if self._urgent:
                await self._put(self._urgent.popleft())
            elif self._lanes:
                await self._send_from(next(iter(self._lanes)))
            else:
                self._wake.clear()
                await self._wake.wait()
        await self._put(self._farewell)
        return None

    async def _send_from(self, lane: str) -> None:
        """Send a piece of the lane whose turn it is, which then comes last."""
        messages = self._lanes.pop(lane)
        self._lanes[lane] = messages
        piece, is_last = messages[0].next()
        await self._put(piece)
        if is_last:
            sent = messages.popleft().sent
            if not sent.done():
                sent.set_result(None)
            if not messages:
                self._lanes.pop(lane, None)

    async def _put(self, frame: Frame) -> None:
        self._sending_since = asyncio.get_running_loop().time()
        await self._socket.send(encode(frame))
        self._sending_since = None

    async def _watch(self) -> Goodbye | None:
        """Have a beat sent now and then, and raise LinkLost when the other end gives no sign or takes nothing more."""
        now = asyncio.get_running_loop().time
        while True:
            slept = now()
            await asyncio.sleep(self._beat)
            if now() - slept > 2 * self._beat:  # this end stood still: what came meanwhile is not read yet
                self._heard = now()
                continue
            self._check(now() - _BEATS_OF_PATIENCE * self._beat)
            if not self._urgent:
                self._beat_sent = now()
                self.tell(Beat(sent=self._beat_sent))

    def _check(self, since: float) -> None:
        if self._heard < since:
            raise LinkLost(reason="nothing is heard of the other end any more")
        if self._sending_since is not None and self._sending_since < since:
            raise LinkLost(reason="the other end does not read any more")
