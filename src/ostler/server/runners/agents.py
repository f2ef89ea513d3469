"""The agents of all runners, and what is asked of the runner that has one."""

from collections import Counter
from collections.abc import Iterable, Mapping

from ostler.base.errors import UnsupportedAgent
from ostler.link.protocol import Runner
from ostler.server.runners.known import is_for
from ostler.server.runners.registry import Runners
from ostler.wire.agents import Agent, AgentLogin, Installed, LoginOrder
from ostler.wire.running import RunnerStats
from ostler.wire.tasks import RuntimeInfo


def all_agents(runners: Runners) -> tuple[Agent, ...]:
    """Every agent, as it was reported last; one that several runners have as the first that has it installed.

    What a tenant's runner says of an agent counts only where no other has it.
    """
    shared = _merged(known.agents.values() for known in runners.known if is_for(known.about, None))
    return tuple({**shared, **_merged(known.agents.values() for known in runners.known), **shared}.values())


def agents_for(runners: Runners, tenant: str) -> tuple[Agent, ...]:
    """The same for a tenant, which hears nothing of runners of others."""
    seen = {agent for known in runners.known if is_for(known.about, tenant) for agent in known.agents}
    return tuple(agent for agent in all_agents(runners) if agent.id in seen)


def agent_named(runners: Runners, name: str) -> Agent:
    """An agent by its id or another name of it, as it was reported last."""
    return _named(all_agents(runners), name, runners)


def agent_for(runners: Runners, name: str, tenant: str) -> Agent:
    """The same for a tenant, which hears nothing of runners of others."""
    return _named(agents_for(runners, tenant), name, runners)


def _named(agents: Iterable[Agent], name: str, runners: Runners) -> Agent:
    for agent in agents:
        if name in {agent.id, *agent.aliases}:
            return agent
    known = ", ".join(_merged(known.agents.values() for known in runners.known if is_for(known.about, None)))
    raise UnsupportedAgent(agent=name[:80], known=known)


def full_name(runners: Runners, name: str | None) -> str | None:
    """The id of the agent that a filter names; a name that no agent has any more stays as it is."""
    return next((agent.id for agent in all_agents(runners) if name in agent.aliases), name)


async def catalogue(runners: Runners, tenant: str) -> list[Agent]:
    """Every agent that a tenant can have, looked up anew where a runner is linked."""
    found = await runners.ask_all(lambda link: link.runner.catalogue(), lambda about: is_for(about, tenant))
    return list(_merged(found).values())


async def describe_agent(runners: Runners, name: str) -> Agent:
    """One agent, looked up anew on a runner that has it."""
    return await _one_with(runners, name).describe(name)


async def install_agent(runners: Runners, name: str, version: str | None, *, reinstall: bool = False) -> Installed:
    """Install an agent, or find that it is there already."""
    return await _one_with(runners, name).install(name, version, reinstall)


async def log_in(runners: Runners, name: str, order: LoginOrder) -> AgentLogin:
    """Look at the login of an agent, or change it, on the runner that has it."""
    return await _one_with(runners, name).login(agent_named(runners, name).id, order)


def _one_with(runners: Runners, name: str) -> Runner:
    """The first runner that has an agent installed, or else knows it; no tenant's: it gets the server's own keys."""
    agent = agent_named(runners, name).id
    shared = [known for known in runners.known if is_for(known.about, None)]
    linked = [known for known in shared if known.link is not None and agent in known.agents]
    chosen = next((known for known in linked if known.agents[agent].installed), linked[0] if linked else None)
    return runners.runner(chosen.about.id if chosen is not None else runners.any())


async def runtimes(runners: Runners, tenant: str) -> tuple[RuntimeInfo, ...]:
    """What agents of a tenant can run in, on any runner that is linked."""
    found: dict[str, RuntimeInfo] = {}
    for each in await runners.ask_all(lambda link: link.workspaces.runtimes(), lambda about: is_for(about, tenant)):
        for runtime in each:
            if runtime.type not in found or (runtime.available and not found[runtime.type].available):
                found[runtime.type] = runtime
    return tuple(found.values())


async def stats(runners: Runners) -> RunnerStats:
    """Numbers of all that are linked, together."""
    found = await runners.ask_all(lambda link: link.runner.stats())
    return RunnerStats(
        processes=sum(each.processes for each in found),
        frames=_summed(each.frames for each in found),
        unparsed_frames=_summed(each.unparsed_frames for each in found),
    )


def _merged(catalogues: Iterable[Iterable[Agent]]) -> dict[str, Agent]:
    """The agents of several runners by id."""
    found: dict[str, Agent] = {}
    for catalogue in catalogues:
        for agent in catalogue:
            if agent.id not in found or (agent.installed and not found[agent.id].installed):
                found[agent.id] = agent
    return found


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
