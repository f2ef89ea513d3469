"""Which trace a turn belongs to: the one that its request names, as W3C Trace Context has it, or one of its own."""

import re
import secrets
from collections.abc import Sequence
from contextvars import ContextVar

_PARENT = re.compile(
    rb"(?:00|(?!00|ff)[0-9a-f]{2}(?P<newer>))-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?(newer)(?:-.*)?)"
)
"""A version that we do not know begins as ours does, and may go on."""
_current: ContextVar[str | None] = ContextVar("trace", default=None)


def begin_trace(parents: Sequence[bytes]) -> None:
    """What the current task does from now on belongs to the trace of the `traceparent` header; a bad one is none."""
    found = _PARENT.fullmatch(parents[0]) if len(parents) == 1 else None
    is_trace = found is not None and all(each.strip(b"0") for each in found.group(2, 3))
    _current.set(found[2].decode() if found is not None and is_trace else None)


def current_trace() -> str:
    """The trace of what was just asked for."""
    return _current.get() or new_trace()


def new_trace() -> str:
    """A trace of its own."""
    return secrets.token_hex(16)
