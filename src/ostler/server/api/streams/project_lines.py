"""The log of all sessions as flat lines, each with the session that it is about."""

from typing import Annotated

import msgspec
from litestar.params import QueryParameter

from ostler.base.errors import InvalidRequest
from ostler.server.api.streams.projected import UNIVERSAL
from ostler.server.dialects.flat.projection import line_of
from ostler.wire.events import decode_event

_FLAT = "flat"
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


def flat_line(body: bytes) -> bytes | None:
    """The line of an encoded event, if it has one."""
    event = decode_event(body)
    line = line_of(event)
    return None if line is None else msgspec.json.encode({**line, "sessionId": event.session_id})
