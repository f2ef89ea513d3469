"""Who sends wrong tokens, and when that is too often."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from ostler.base.errors import TooManyWrongTokens, Unauthorized

_WINDOW_SECONDS = 60.0
_FREE = 5
_DELAY_SECONDS, _LONGEST_DELAY = 0.1, 1.0
_MOST_KNOWN = 10_000
T = TypeVar("T")


class WrongTokens:
    """Counts by address: first answers get slower, then there are none for the rest of a minute.

    An address that has sent the right token before may be a proxy for many: there a right token is always looked at,
    whatever else comes from it. Only addresses that never had one are locked out, and nobody for longer than a minute.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._trusted: OrderedDict[str, None] = OrderedDict()

    def check(self, address: str) -> None:
        """Refuse an address that has only ever been wrong, and that too often."""
        if not self._counts or (place := _place(address)) in self._trusted:
            return
        since, count = self._count(place)
        if count >= self._limit:
            raise self._too_many(since)

    def was_right(self, address: str) -> None:
        """The token was the right one."""
        place = _place(address)
        if place not in self._trusted:
            _put(self._trusted, place, None)

    def was_wrong(self, address: str, reason: str = "The token is wrong.") -> Unauthorized | TooManyWrongTokens:
        """The token was a wrong one; what the client is to be told, and how much later."""
        place = _place(address)
        since, count = self._count(place)
        _put(self._counts, place, (since, count + 1))
        if count >= self._limit:
            return self._too_many(since)
        delay = min(max(0, count - _FREE) * _DELAY_SECONDS, _LONGEST_DELAY)
        return Unauthorized(reason=reason, delay=delay)

    def _count(self, place: str) -> tuple[float, int]:
        now = self._clock()
        since, count = self._counts.get(place, (now, 0))
        return (since, count) if now < since + _WINDOW_SECONDS else (now, 0)

    def _too_many(self, since: float) -> TooManyWrongTokens:
        seconds = max(1, math.ceil(since + _WINDOW_SECONDS - self._clock()))
        return TooManyWrongTokens(limit=self._limit, retry_after=seconds)


def _put(known: "OrderedDict[str, T]", place: str, value: T) -> None:
    known[place] = value
    known.move_to_end(place)
    if len(known) > _MOST_KNOWN:
        known.popitem(last=False)


def _place(address: str) -> str:
    """Whoever has one address of a network of IPv6 has all of them."""
    return str(ipaddress.ip_network((address, 64), strict=False)) if ":" in address else address
