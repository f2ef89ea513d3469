"""How long to wait on this machine: a bound is for what never comes, so it grows with what a known step takes here."""

import os

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
