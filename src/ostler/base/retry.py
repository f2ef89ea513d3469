"""How long to wait before something that failed is tried again."""

import os
import time
from collections.abc import Callable, Iterator
from itertools import count

_MOST_DOUBLINGS = 32


def _chance() -> float:
    return int.from_bytes(os.urandom(4)) / 2**32  # `random` would slow the start of every command


def delays(
    first: float,
    longest: float,
    *,
    tries: int | None = None,
    within: float | None = None,
    chance: Callable[[], float] = _chance,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[float]:
    """Seconds to wait after each try that failed; none are left after the last.

    Each is anything up to a bound that doubles from `first` to `longest`: many that failed together must not come back
    together. The time of `within` begins when the first is asked for.
    """
    began = monotonic()
    for failed in count(1) if tries is None else range(1, tries):
        if within is not None and monotonic() - began >= within:
            return
        yield delay_after(failed, first, longest, chance=chance)


def delay_after(failed: int, first: float, longest: float, *, chance: Callable[[], float] = _chance) -> float:
    """Seconds to wait after so many tries that failed."""
    return chance() * min(longest, first * 2.0 ** min(failed - 1, _MOST_DOUBLINGS))
