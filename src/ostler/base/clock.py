"""Time as an argument: wall clock for records, monotonic clock for waits."""

import functools
import time
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

    def __init__(self) -> None:
        self._second = -1
        self._shown = ""

    def now(self) -> str:
        """The wall clock in RFC 3339, UTC, milliseconds."""
        second, fraction = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:  # every event is stamped, and most within a second that is known
            self._second, self._shown = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._shown}.{fraction // 1_000_000:03d}Z"

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()
