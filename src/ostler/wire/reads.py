"""What a person has seen of sessions, on whatever device."""

from typing import Annotated

import msgspec

from ostler.wire.struct import Answer, Body

MOST_READS = 5000
"""Of one actor in a project; what was seen longest ago is forgotten first."""


class MarkRead(Body, frozen=True, kw_only=True):
    """What was seen of a session; by default all that there is now."""

    turns: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    """How many turns it had then."""
    failed: bool | None = None
    """Whether it was seen that the last one went wrong."""


class ReadMark(Answer, frozen=True, kw_only=True):
    """Up to where a session was seen."""

    session_id: str
    turns: int
    failed: bool
    read_at: str


class ReadMarks(Answer, frozen=True, kw_only=True):
    """What the caller has seen in a project, the newest first."""

    since: str
    """What happened before is no news, seen or not."""
    items: tuple[ReadMark, ...]
