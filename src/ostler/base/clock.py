"""Time as an argument: wall clock for records, monotonic clock for waits."""

import time
from datetime import UTC, datetime
from typing import Protocol


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
