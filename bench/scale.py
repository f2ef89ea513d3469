"""How much of everything is measured, and how figures of many tries become one."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

Figures = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much of everything."""

    rounds: int
    starts: int
    sessions: int
    live: int
    prompts: int
    burst: int
    bursts: int
    clients: int
    fanout: int
    connections: int
    reads: int
    deletes: int
    stalled: int
    deaf: int
    sleeping: int
    wakes: int
    files: tuple[int, ...]
    steady_seconds: int
    soak_seconds: int


FULL = Scale(
    rounds=3,
    starts=3,
    sessions=1000,
    live=100,
    prompts=200,
    burst=20_000,
    bursts=3,
    clients=50,
    fanout=5000,
    connections=1000,
    reads=30,
    deletes=10,
    stalled=50_000,
    deaf=100,
    sleeping=5000,
    wakes=100,
    files=(10_000, 100_000),
    steady_seconds=10,
    soak_seconds=240,
)
QUICK = Scale(
    rounds=1,
    starts=2,
    sessions=1000,
    live=100,
    prompts=100,
    burst=20_000,
    bursts=1,
    clients=50,
    fanout=3000,
    connections=1000,
    reads=15,
    deletes=5,
    stalled=50_000,
    deaf=100,
    sleeping=5000,
    wakes=40,
    files=(10_000,),
    steady_seconds=5,
    soak_seconds=60,
)


def median(values: Iterable[float]) -> float:
    """The one in the middle."""
    return statistics.median(values)


def p95(values: list[float]) -> float:
    """What 95 of 100 tries stay below."""
    return _percentile(values, 0.95)


def p99(values: list[float]) -> float:
    """What 99 of 100 tries stay below."""
    return _percentile(values, 0.99)


def _percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]
