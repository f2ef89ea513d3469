"""What the conformance suite found out about each agent; the results lie beside this file and are written by a tool."""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from ostler.wire.agents import Coverage

FILE = Path(__file__).with_name("coverage.json")
Verdict = Literal["passes", "fails"]


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """One agent as the suite saw it."""

    version: str | None
    coverage: dict[str, Coverage] = msgspec.field(default_factory=dict)
    """Capability -> what follows from the results."""
    results: dict[str, Verdict]
    """Behaviour -> how it went; also for behaviours that the agent does not claim."""


@cache
def examined() -> dict[str, Examined]:
    """All agents that were examined."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Examined])


def coverage_of(agent: str) -> dict[str, Coverage]:
    """Each capability of an agent; empty if the suite never saw it."""
    found = examined().get(agent)
    return found.coverage if found else {}
