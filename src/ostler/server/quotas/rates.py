"""How often somebody may ask: a bucket that fills by the clock, and that every request takes one from."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ostler.server.store.peers import LetThrough

Place = tuple[str, str]
"""A scope, and who it is."""


class _Bucket(NamedTuple):
    rate: float
    level: float
    since: float


class Rates:
    """One bucket for each tenant, project or actor with a limit; a bucket holds what comes in within a second.

    Implements Tally: several servers of one store tell each other every second what each has let through. Until they
    do, each may let through as much as one; what was too much is owed by all, and paid back before anything else.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[Place, _Bucket] = {}
        self._unsent: Counter[Place] = Counter()
        """What was let through here and the other servers do not know of."""

    def take(self, limits: Mapping[Place, float]) -> tuple[Place, float] | None:
        """Take one from each of these, or from none: then which is empty, and in how many seconds it is not."""
        now = self._clock()
        levels = {place: self._level(place, rate, now) for place, rate in limits.items()}
        for place, level in levels.items():
            if level < 1:
                return place, (1 - level) / limits[place]
        for place, level in levels.items():
            self._buckets[place] = _Bucket(limits[place], level - 1, now)
            self._unsent[place] += 1
        return None

    def let_through(self) -> Sequence[LetThrough]:
        """What was let through here since the others were told last, of every bucket that is not full."""
        now = self._clock()
        for place, bucket in list(self._buckets.items()):
            if not self._unsent[place] and self._level(place, bucket.rate, now) >= _most(bucket.rate):
                del self._buckets[place], self._unsent[place]
        return [LetThrough(*place, bucket.rate, self._unsent[place]) for place, bucket in self._buckets.items()]

    def settle(self, sent: Sequence[LetThrough], levels: Mapping[Place, float]) -> None:
        """The others know of these; the level of each bucket when all that was let through is taken off."""
        now = self._clock()
        for each in sent:
            place = (each.scope, each.id)
            self._unsent[place] -= each.requests
            if place in self._buckets and place in levels:
                self._buckets[place] = self._buckets[place]._replace(
                    level=levels[place] - self._unsent[place], since=now
                )

    def _level(self, place: Place, rate: float, now: float) -> float:
        most = _most(rate)
        known = self._buckets.get(place)
        return min(most, known.level + (now - known.since) * rate) if known is not None else most


def _most(rate: float) -> float:
    return max(rate, 1.0)
