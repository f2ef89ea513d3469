"""The way to each runner while it is linked, and what all of them have together."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from ostler.base.errors import UnsupportedAgent
from ostler.base.errors.runners import NotPlaced, RunnerNotFound, RunnerRemoved, RunnerUnavailable
from ostler.link.protocol import Runner
from ostler.link.workspaces import Workspaces
from ostler.server.runners.known import KnownRunner, Link
from ostler.wire.agents import Agent, AgentLogin, Installed, LoginOrder
from ostler.wire.running import RunnerStats
from ostler.wire.tasks import RuntimeInfo
from ostler.wire.workspaces import ProviderVerdict

T = TypeVar("T")
ANSWER_SECONDS = 10.0
"""So long one waits for a runner elsewhere when there are others to ask."""


class Ways:
    """Finds the runner that somebody needs."""

    def __init__(self, home: str) -> None:
        """`home` is the id of the runner that is part of this process."""
        self.home = home
        self._known: dict[str, KnownRunner] = {}

    @property
    def known(self) -> tuple[KnownRunner, ...]:
        """Every runner, for whoever chooses one."""
        return tuple(self._known.values())

    def get(self, runner_id: str) -> KnownRunner | None:
        """A runner by its id."""
        return self._known.get(runner_id)

    def find_runner(self, id_or_name: str) -> KnownRunner:
        """A runner by its id or its name."""
        if (known := self._known.get(id_or_name)) is not None:
            return known
        for each in self._known.values():
            if each.about.name == id_or_name:
                return each
        names = ", ".join(dict.fromkeys(known.about.name for known in self._known.values()))
        raise RunnerNotFound(runner=id_or_name, known=names)

    # That of a session

    def is_linked(self, runner_id: str | None) -> bool:
        """Whether it can be reached."""
        known = self._known.get(runner_id) if runner_id is not None else None
        return known is not None and known.link is not None

    def runner(self, runner_id: str | None) -> Runner:
        """Where the agents of a session run, by the runner that it is on."""
        return self._link(runner_id).runner

    def workspaces(self, runner_id: str | None) -> Workspaces:
        """Where the files of a session are, by the runner that it is on."""
        return self._link(runner_id).workspaces

    def _link(self, runner_id: str | None) -> Link:
        if runner_id is None:
            raise NotPlaced
        known = self._known.get(runner_id)
        if known is None or known.is_removed:  # every runner that may dial in is known
            raise RunnerRemoved(runner=known.about.name if known is not None else runner_id)
        if known.link is None:
            raise RunnerUnavailable(runner=known.about.name)
        return known.link

    # All of them

    def any(self) -> str:
        """A runner for what every runner can do, such as asking a repository: the first that may have sessions."""
        linked = [known.about for known in self._known.values() if known.link is not None]
        chosen = next((about for about in linked if about.slots != 0), linked[0] if linked else None)
        if chosen is None:
            raise RunnerUnavailable(runner="any")
        return chosen.id

    async def runtimes(self) -> tuple[RuntimeInfo, ...]:
        """What agents can run in, on any runner that is linked."""
        found: dict[str, RuntimeInfo] = {}
        for each in await self._ask_all(lambda link: link.workspaces.runtimes()):
            for runtime in each:
                if runtime.type not in found or (runtime.available and not found[runtime.type].available):
                    found[runtime.type] = runtime
        return tuple(found.values())

    async def look_at_providers(self, runner_id: str) -> tuple[ProviderVerdict, ...]:
        """How a runner that is linked makes workspaces; that is remembered, also for other servers."""
        found = await self.workspaces(runner_id).providers()
        if (known := self._known.get(runner_id)) is not None:
            known.providers = found
        return found

    async def stats(self) -> RunnerStats:
        """Numbers of all that are linked, together."""
        found = await self._ask_all(lambda link: link.runner.stats())
        return RunnerStats(
            processes=sum(each.processes for each in found),
            frames=_summed(each.frames for each in found),
            unparsed_frames=_summed(each.unparsed_frames for each in found),
        )

    async def _ask_all(self, ask: Callable[[Link], Awaitable[T]]) -> list[T]:
        """The answers of all that are linked; one whose link breaks meanwhile, or that is silent, has none."""
        linked = [(name, known.link) for name, known in self._known.items() if known.link is not None]
        asked = (ask(link) if name == self.home else _in_time(ask(link)) for name, link in linked)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, RunnerUnavailable | TimeoutError):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    # Their agents

    def agents(self) -> tuple[Agent, ...]:
        """Every agent, as it was reported last; one that several runners have as the first that has it installed."""
        return tuple(merged(known.agents.values() for known in self._known.values()).values())

    def find(self, name: str) -> Agent:
        """An agent by its id or another name of it, as it was reported last."""
        agents = self.agents()
        for agent in agents:
            if name in {agent.id, *agent.aliases}:
                return agent
        raise UnsupportedAgent(agent=name[:80], known=", ".join(agent.id for agent in agents))

    def full_name(self, name: str | None) -> str | None:
        """The id of the agent that a filter names; a name that no agent has any more stays as it is."""
        return next((agent.id for agent in self.agents() if name in agent.aliases), name)

    async def catalogue(self) -> list[Agent]:
        """Every agent, looked up anew where a runner is linked."""
        return list(merged(await self._ask_all(lambda link: link.runner.catalogue())).values())

    async def describe_agent(self, name: str) -> Agent:
        """One agent, looked up anew on a runner that has it."""
        return await self._one_with(name).describe(name)

    async def install(self, name: str, version: str | None, *, reinstall: bool = False) -> Installed:
        """Install an agent, or find that it is there already."""
        return await self._one_with(name).install(name, version, reinstall)

    async def login(self, name: str, order: LoginOrder) -> AgentLogin:
        """Look at the login of an agent, or change it, on the runner that has it."""
        return await self._one_with(name).login(self.find(name).id, order)

    def _one_with(self, name: str) -> Runner:
        """The first runner that has an agent installed, or else knows it."""
        agent = self.find(name).id
        linked = [known for known in self._known.values() if known.link is not None and agent in known.agents]
        chosen = next((known for known in linked if known.agents[agent].installed), linked[0] if linked else None)
        return self.runner(chosen.about.id if chosen is not None else self.any())


def merged(catalogues: Iterable[Iterable[Agent]]) -> dict[str, Agent]:
    """The agents of several runners by id."""
    found: dict[str, Agent] = {}
    for catalogue in catalogues:
        for agent in catalogue:
            if agent.id not in found or (agent.installed and not found[agent.id].installed):
                found[agent.id] = agent
    return found


async def _in_time(answer: Awaitable[T]) -> T:
    async with asyncio.timeout(ANSWER_SECONDS):
        return await answer


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
