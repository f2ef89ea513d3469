"""The log of all sessions as flat lines, each with the session that it is about."""

from typing import Annotated

import msgspec
from litestar.params import QueryParameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.projected import UNIVERSAL
from ostler.server.api.sse import Chunks
from ostler.server.dialects.flat.projection import line_of
from ostler.server.store.records import StoredEvent
from ostler.wire.events import decode_event

_FLAT = "flat"
_DATA = b"\ndata: "
ProjectFormat = Annotated[
    str | None,
    QueryParameter(
        name="format",
        description=f"`{UNIVERSAL}` is the log itself; `{_FLAT}`: its lines, each with its `sessionId`.",
    ),
]


def wants_flat(name: str | None, *, alone: bool) -> bool:
    """Whether lines are asked for; other formats tell of one session only."""
    if name in {None, UNIVERSAL}:
        return False
    if name == _FLAT and alone:
        return True
    reason = f"'{_FLAT}' cannot be combined with types" if name == _FLAT else f"is not one of {UNIVERSAL}, {_FLAT}"
    raise InvalidRequest(reason=f"format: {reason}.", errors={"format": [reason]})


def flat_lines(stored: StoredEvent) -> list[bytes]:
    """The line of an event, if it has one."""
    event = decode_event(stored.body)
    line = line_of(event)
    return [] if line is None else [msgspec.json.encode({**line, "sessionId": event.session_id})]


class FlatChunks:
    """A stream of events as a stream of lines."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    async def next(self) -> bytes | None:
        """The next lines; a batch of events without any moves the client's place."""
        chunk = await self._chunks.next()
        if chunk is None or _DATA not in chunk:
            return chunk
        frames = [frame.partition(_DATA) for frame in chunk.split(b"\n\n") if frame]
        lines = [
            b"%b%b%b\n\n" % (head, _DATA, line) for head, _, body in frames for line in flat_lines(StoredEvent(0, body))
        ]
        return b"".join(lines) or b"%b\n\n" % frames[-1][0]
