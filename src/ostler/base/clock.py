"""Time as an argument: wall clock for records, monotonic clock for waits."""

import functools
import time
from datetime import UTC, datetime
from typing import Protocol


def steady_seconds() -> float:
    """Seconds since 1970 for what is kept for some time: a clock that is set anew does not make it older or younger.

    It begins with what the wall clock says when it is first asked, and goes on by itself.
    """
    return _beginning() + time.monotonic()


@functools.cache
def _beginning() -> float:
    return time.time() - time.monotonic()


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> str:
        """The wall clock in RFC 3339, UTC, milliseconds."""

    def monotonic(self) -> float:
        """Seconds that never jump."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> str:
        """The wall clock in RFC 3339, UTC, milliseconds."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()
