"""The runner of this machine with what the conformance suite found out about its agents."""

import msgspec

from ostler.agents.coverage import coverage_of
from ostler.runner.local import LocalRunner
from ostler.wire.agents import Agent


class ExaminedRunner(LocalRunner):
    """Adds the results to the catalogue."""

    async def catalogue(self) -> list[Agent]:
        """What can run here."""
        found = await super().catalogue()
        return [msgspec.structs.replace(agent, coverage=coverage_of(agent.id)) for agent in found]
