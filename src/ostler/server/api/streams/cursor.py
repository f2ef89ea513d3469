"""One client's place in a log: the number of an event and how far into it; the bytes are everybody's."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from litestar.params import Parameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.streams.outflow import PIECE_BYTES
from ostler.server.sessions.log.feed import Tail, frame, unframed
from ostler.server.store.records import StoredEvent
from ostler.wire.events import EVENTS

_READ_BYTES = PIECE_BYTES - 4096
"""Of the newest events; with the one that goes over it there is still one piece, most often."""

Keep = Callable[[bytes], bool]
Types = Annotated[str | None, Parameter(description="Only events of these types, separated by commas.")]
Folded = Annotated[bool, Parameter(description="Leave out the deltas of items that the page also has complete.")]
HEARTBEAT = b": still here\n\n"
Show = Callable[[bytes], bytes | None]
"""What a client sees of an encoded event; None leaves it out."""


def only(keep: Keep | None) -> Show | None:
    """Show some events as they are."""
    return None if keep is None else lambda body: body if keep(body) else None


class CutOff(Exception):
    """The log is gone in the middle of an event that was half written."""


class Cursor:
    """Gives the frames of a log in pieces. What it has to put away it reads again."""

    __slots__ = ("_frames", "_heartbeat", "_offset", "_position", "_raw", "_show", "_tail", "_until")

    def __init__(
        self,
        tail: Tail,
        *,
        offset: int,
        heartbeat: float,
        raw: bool = False,
        show: Show | None = None,
    ) -> None:
        self._tail = tail
        self._show = show
        self._offset = offset
        self._position = 0
        self._frames: deque[tuple[int, bytes]] = deque()
        self._until = offset
        self._heartbeat = heartbeat
        self._raw = raw

    @property
    def held(self) -> int:
        """How many bytes stay in memory for what is not yet given out: an event is there as a whole, or not."""
        return sum(len(found) for _, found in self._frames)

    def put_away(self) -> None:
        """Forget what is held: it is in the store."""
        self._frames.clear()

    def close(self) -> None:
        """Nobody reads on."""
        self._frames.clear()

    async def next(self) -> bytes | None:
        """The next piece, a heartbeat when nothing happens, None when nothing will."""
        if self._frames:
            return self._piece()
        await self._tail.wait(self._offset, timeout=self._heartbeat)
        if self._offset < self._tail.last:
            return await self._read()
        return None if self._tail.is_closed else HEARTBEAT

    async def _read(self) -> bytes:
        frames = None if self._raw else self._tail.newest(self._offset, _READ_BYTES)
        if frames is not None:
            return self._begin(range(self._offset + 1, self._offset + len(frames) + 1), frames)
        stored = await self._tail.stored(self._offset, raw=self._raw)
        if stored:
            return self._begin(
                [event.number for event in stored], [frame(event.number, with_raw(event)) for event in stored]
            )
        if self._position:
            raise CutOff
        self._offset = await self._tail.passed(self._offset)
        return b""

    def _begin(self, numbers: Sequence[int], frames: Sequence[bytes]) -> bytes:
        """Take up frames; most often they are few and small, and all of them go out at once."""
        self._until = numbers[-1]
        if self._show is not None:
            rendered = ((number, self._show(unframed(found))) for number, found in zip(numbers, frames, strict=True))
            shown = [(number, frame(number, body)) for number, body in rendered if body is not None]
            # a client's place moves past what it did not want
            numbers, frames = zip(*shown, strict=True) if shown else ([self._until], [b"id: %d\n\n" % self._until])
        if not self._position and sum(map(len, frames)) <= PIECE_BYTES:
            self._offset = self._until
            return b"".join(frames)
        self._frames.extend(zip(numbers, frames, strict=True))
        return self._piece()

    def _piece(self) -> bytes:
        parts: list[bytes] = []
        room = PIECE_BYTES
        while self._frames and room:
            number, found = self._frames[0]
            part = found[self._position : self._position + room]
            parts.append(part)
            room -= len(part)
            self._position += len(part)
            if self._position == len(found):
                self._frames.popleft()
                self._offset, self._position = number, 0
        if not self._frames:
            self._offset = self._until
        return b"".join(parts)


def with_raw(event: StoredEvent) -> bytes:
    """The event with its native frame, if it has one."""
    return event.body if event.raw is None else b'%b,"raw":%b}' % (event.body[:-1], event.raw)


class _Typed(msgspec.Struct):
    type: str


class _Item(msgspec.Struct):
    item_id: str = ""


class _Data(msgspec.Struct):
    item: _Item | None = None
    item_id: str = ""


class _Peek(msgspec.Struct):
    data: _Data


_typed = msgspec.json.Decoder(_Typed)
_peek = msgspec.json.Decoder(_Peek)


def types_filter(types: str | None) -> Keep | None:
    """Whether an encoded event is of one of these types; None keeps all."""
    if types is None:
        return None
    wanted = frozenset(name.strip() for name in types.split(",") if name.strip())
    for name in wanted:
        if name not in EVENTS:
            reason = f"'{name[:50]}' is not a type of event"
            raise InvalidRequest(reason=f"types: {reason}.", errors={"types": [reason]})
    return lambda body: _typed.decode(body).type in wanted


def folded(events: list[StoredEvent]) -> list[StoredEvent]:
    """Without the deltas of items that are complete further on; starts stay, since they say what came first."""
    remaining: list[StoredEvent] = []
    complete: set[str] = set()
    for event in reversed(events):
        kind = _typed.decode(event.body).type
        if kind == "item.delta" and _item_id(event.body) in complete:
            continue
        if kind == "item.completed":
            complete.add(_item_id(event.body))
        remaining.append(event)
    return remaining[::-1]


def _item_id(body: bytes) -> str:
    data = _peek.decode(body).data
    return data.item.item_id if data.item else data.item_id
