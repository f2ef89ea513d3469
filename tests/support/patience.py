"""Waiting on this machine: a bound is for what never comes, so it grows with what a known step takes here."""

import asyncio
import os
import time
from collections.abc import Callable

NOMINAL_START_SECONDS = 1.0
"""What a server needs to start on an idle machine."""
MOST = 20.0
_slowest = NOMINAL_START_SECONDS


def note_start(seconds: float) -> None:
    """A server took so long to start: a step that is known, measured while the machine is as busy as it is."""
    global _slowest  # noqa: PLW0603 - one machine, one measure
    _slowest = max(_slowest, seconds)


def stretched(seconds: float) -> float:
    """So many seconds of an idle machine, as seconds of this one now."""
    crowd = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return seconds * min(MOST, max(1.0, crowd, _slowest / NOMINAL_START_SECONDS))


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    """Block until something is true; fails the test when it never comes."""
    started = time.monotonic()
    while not condition():
        passed = time.monotonic() - started
        if passed > stretched(seconds):
            raise AssertionError(f"Waited {passed:.0f} seconds in vain: {what}")
        time.sleep(0.01)


async def until(condition: Callable[[], bool], what: str = "a condition", seconds: float = 60.0) -> None:
    """Wait until something is true, and let others work meanwhile; fails the test when it never comes."""
    started = time.monotonic()
    while not condition():
        passed = time.monotonic() - started
        if passed > stretched(seconds):
            raise AssertionError(f"Waited {passed:.0f} seconds in vain: {what}")
        await asyncio.sleep(0.01)
