"""What time it is, and how long something took."""

import functools
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
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


_CALL_CLASSES = (0.001, 0.01, 0.1, 0.5, 1.0, 5.0, 30.0)


class ObjectNumbers:
    """What an object store was asked for since the start; calls come from many threads."""

    def __init__(self) -> None:
        self.times: defaultdict[str, Histogram] = defaultdict(lambda: Histogram(_CALL_CLASSES))
        """How long calls took, by verb; also those that failed."""
        self.failed: Counter[str] = Counter()
        """Calls that failed, by verb."""
        self.read_bytes = 0
        self.written_bytes = 0
        self._lock = threading.Lock()

    @contextmanager
    def timed(self, verb: str) -> Iterator[None]:
        """Count a call as long as the block runs."""
        began, failed = time.monotonic(), 1
        try:
            yield
            failed = 0
        finally:
            with self._lock:
                self.times[verb].observe(time.monotonic() - began)
                self.failed[verb] += failed

    def moved(self, *, read: int = 0, written: int = 0) -> None:
        """So many bytes went to it, or came from it."""
        with self._lock:
            self.read_bytes += read
            self.written_bytes += written


def stamped(at: datetime) -> str:
    """A time as the clock gives it; raises ValueError for one that lies outside of what calendars hold in UTC."""
    try:
        return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError as error:
        raise ValueError(str(error)) from error


def between(start: str, end: str) -> float:
    """How many seconds lie between two times that a clock gave."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def later(at: str, seconds: float) -> str:
    """So many seconds after a time that a clock gave."""
    then = datetime.fromisoformat(at) + timedelta(seconds=seconds)
    return then.isoformat(timespec="milliseconds").replace("+00:00", "Z")
