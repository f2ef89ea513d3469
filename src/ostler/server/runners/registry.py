"""The runners of this server by name, and the agents that each said it can run."""

from collections.abc import Sequence

from ostler.base.errors import UnsupportedAgent
from ostler.link.protocol import Runner
from ostler.wire.agents import Agent


class Runners:
    """Implements link.protocol.Registry: nobody asks a runner only to learn the name of an agent."""

    def __init__(self) -> None:
        self._runners: dict[str, Runner] = {}
        self._agents: dict[str, Agent] = {}

    async def add(self, name: str, runner: Runner) -> None:
        """Take a runner in; it reports its agents at once."""
        self._runners[name] = runner
        await runner.register(self)

    async def offered(self, agents: Sequence[Agent]) -> None:
        """Take what a runner reports."""
        self._agents.update({agent.id: agent for agent in agents})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runners."""
        return tuple(self._runners)

    def agents(self) -> tuple[Agent, ...]:
        """Every agent, as it was reported last."""
        return tuple(self._agents.values())

    def find(self, name: str) -> Agent:
        """An agent by its id or another name of it, as it was reported last."""
        for agent in self._agents.values():
            if name in {agent.id, *agent.aliases}:
                return agent
        raise UnsupportedAgent(agent=name, known=", ".join(self._agents))

    def full_name(self, name: str | None) -> str | None:
        """The id of the agent that a filter names; a name that no agent has any more stays as it is."""
        return next((agent.id for agent in self._agents.values() if name in agent.aliases), name)
