"""What follows from the results of the suite: which capabilities an agent has, and which of them Ostler converts."""

from collections.abc import Mapping
from typing import Literal

from ostler.agents.adapter import Adapter
from ostler.conformance.behaviours import BEHAVIOURS
from ostler.conformance.rows import row_of
from ostler.wire.agents import Capabilities, Coverage


def shown(adapter: Adapter) -> dict[str, list[str]]:
    """Capability -> the behaviours that show it with this agent."""
    left_out = row_of(adapter).without
    found: dict[str, list[str]] = {}
    for behaviour in BEHAVIOURS:
        if behaviour.id not in left_out:
            found.setdefault(behaviour.capability, []).append(behaviour.id)
    return found


def coverage_from(adapter: Adapter, results: Mapping[str, str]) -> dict[str, Coverage]:
    """Every capability; one without a behaviour is taken as declared."""
    info, behaviours = adapter.info, shown(adapter)
    return {
        name: _covered(
            all(results.get(each) == "passes" for each in behaviours[name])
            if name in behaviours
            else getattr(info.capabilities, name),
            native=name in info.unconverted,
        )
        for name in Capabilities.__struct_fields__
    }


Stability = Literal["stable", "experimental"]


def stability_from(adapter: Adapter, results: Mapping[str, str]) -> Stability:
    """An agent is stable when at least four of five behaviours pass."""
    behaviours = [each for capability in shown(adapter).values() for each in capability]
    passing = sum(results.get(each) == "passes" for each in behaviours)
    return "stable" if passing >= 0.8 * len(behaviours) else "experimental"


def _covered(works: bool, *, native: bool) -> Coverage:
    if works:
        return "converted"
    return "native" if native else "none"
