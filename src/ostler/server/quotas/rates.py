"""How often somebody may ask: a bucket that fills by the clock, and that every request takes one from."""

import time
from collections.abc import Callable, Mapping


class Rates:
    """One bucket for each tenant, project or actor with a limit; a bucket holds what comes in within a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}
        """How full each was, and when."""

    def take(self, limits: Mapping[tuple[str, str], float]) -> tuple[tuple[str, str], float] | None:
        """Take one from each of these, or from none: then which is empty, and in how many seconds it is not."""
        now = self._clock()
        levels = {place: self._level(place, rate, now) for place, rate in limits.items()}
        for place, level in levels.items():
            if level < 1:
                return place, (1 - level) / limits[place]
        for place, level in levels.items():
            self._buckets[place] = (level - 1, now)
        return None

    def _level(self, place: tuple[str, str], rate: float, now: float) -> float:
        most = max(rate, 1.0)
        level, since = self._buckets.get(place, (most, now))
        return min(most, level + (now - since) * rate)
