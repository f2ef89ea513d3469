"""The runners that this server knows, the way to each while it is linked, and the agents that they have."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from ostler.base.clock import Clock
from ostler.base.errors import UnsupportedAgent
from ostler.base.errors.runners import RunnerNotFound, RunnerUnavailable
from ostler.base.logs import Log
from ostler.link.protocol import Runner
from ostler.link.workspaces import Workspaces
from ostler.wire.agents import Agent
from ostler.wire.runners import RunnerAbout

log = Log(__name__)


class RunnerStatus(NamedTuple):
    """A runner as it is now."""

    about: RunnerAbout
    linked: bool
    last_beat: str | None
    """When it was heard last; None for one that was never linked to this process."""
    used: int
    """How many of its slots sessions have."""
    draining: bool


class _Link(NamedTuple):
    """The way to a runner."""

    runner: Runner
    workspaces: Workspaces
    drop: Callable[[], Awaitable[None]] | None


class _Known:
    """One runner. Implements link.protocol.Registry: nobody asks it only to learn the name of an agent."""

    def __init__(self, about: RunnerAbout) -> None:
        self.about = about
        self.link: _Link | None = None
        self.agents: dict[str, Agent] = {}
        self.last_beat: str | None = None
        self.draining = False

    async def offered(self, agents: Sequence[Agent]) -> None:
        """Take what it reports."""
        self.agents.update({agent.id: agent for agent in agents})


class Runners:
    """Every runner of this process: the one that is part of it, and those that dialled in."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._linking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    # Links

    async def linked(
        self,
        about: RunnerAbout,
        runner: Runner,
        workspaces: Workspaces,
        drop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """A runner has dialled in: take its catalogue, go on with its sessions; returns when it may take work.

        An older link of the same id is dropped first, by its own `drop`: that closes it, so that nobody waits for it.
        """
        known = self._known.get(about.id)
        if known is not None and known.link is not None and known.link.drop is not None:
            await known.link.drop()
        async with self._linking[about.id]:
            known = self._known.setdefault(about.id, _Known(about))
            if known.link is not None:
                await self._lose(known)
            known.about = about
            await runner.register(known)
            known.link = _Link(runner, workspaces, drop)
            known.last_beat = self._clock.now()
        log.info("runner.linked", runner_id=about.id, name=about.name)

    async def unlinked(self, runner_id: str, runner: Runner | None = None) -> None:
        """Its link is gone; its sessions wait for it. With `runner` nothing happens if a newer link has its place."""
        async with self._linking[runner_id]:
            known = self._known.get(runner_id)
            if known is not None and known.link is not None and runner in {None, known.link.runner}:
                await self._lose(known)

    async def _lose(self, known: _Known) -> None:
        known.link = None
        log.warning("runner.unlinked", runner_id=known.about.id, name=known.about.name)

    def beat(self, runner_id: str) -> None:
        """It was heard just now."""
        if (known := self._known.get(runner_id)) is not None:
            known.last_beat = self._clock.now()

    def drain(self, runner_id: str, on: bool) -> None:
        """Place no more sessions there, or place them again."""
        self._find(runner_id).draining = on

    # What is known of them

    def list(self) -> tuple[RunnerStatus, ...]:
        """Every runner, in the order they were linked first."""
        return tuple(map(self._status, self._known.values()))

    def describe(self, id_or_name: str) -> RunnerStatus:
        """One runner."""
        return self._status(self._find(id_or_name))

    def _status(self, known: _Known) -> RunnerStatus:
        return RunnerStatus(known.about, known.link is not None, known.last_beat, 0, known.draining)

    def _find(self, id_or_name: str) -> _Known:
        if (known := self._known.get(id_or_name)) is not None:
            return known
        for each in self._known.values():
            if each.about.name == id_or_name:
                return each
        raise RunnerNotFound(runner=id_or_name, known=", ".join(self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the runners."""
        return tuple(known.about.name for known in self._known.values())

    # The way to one

    def runner(self, runner_id: str) -> Runner:
        """Where the agents of a session run."""
        return self._link(runner_id).runner

    def workspaces(self, runner_id: str) -> Workspaces:
        """Where the files of a session are."""
        return self._link(runner_id).workspaces

    def _link(self, runner_id: str) -> _Link:
        known = self._known.get(runner_id)
        if known is None or known.link is None:
            raise RunnerUnavailable(runner=known.about.name if known is not None else runner_id)
        return known.link

    # Agents

    def agents(self) -> tuple[Agent, ...]:
        """Every agent, as it was reported last; one that several runners have as the first that has it installed."""
        return tuple(merged(known.agents.values() for known in self._known.values()).values())

    def find(self, name: str) -> Agent:
        """An agent by its id or another name of it, as it was reported last."""
        agents = self.agents()
        for agent in agents:
            if name in {agent.id, *agent.aliases}:
                return agent
        raise UnsupportedAgent(agent=name, known=", ".join(agent.id for agent in agents))

    def full_name(self, name: str | None) -> str | None:
        """The id of the agent that a filter names; a name that no agent has any more stays as it is."""
        return next((agent.id for agent in self.agents() if name in agent.aliases), name)


def merged(catalogues: Iterable[Iterable[Agent]]) -> dict[str, Agent]:
    """The agents of several runners by id."""
    found: dict[str, Agent] = {}
    for catalogue in catalogues:
        for agent in catalogue:
            if agent.id not in found or (agent.installed and not found[agent.id].installed):
                found[agent.id] = agent
    return found
