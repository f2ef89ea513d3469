"""What time it is, and how long something took."""

import functools
import time
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
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


class Histogram:
    """Counts seconds; what is above the last bound has a class of its own."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` are in order; each is the longest time of its class."""
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        """All of them together."""

    def observe(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """For each bound how many took no longer; the last is all."""
        found: list[tuple[str, float]] = []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            found.append((bound, count + (found[-1][1] if found else 0)))
        return found


def later(at: str, seconds: float) -> str:
    """So many seconds after a time that a clock gave."""
    then = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
