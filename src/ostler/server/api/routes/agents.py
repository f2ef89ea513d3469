"""The catalogue of agents."""

from litestar import get, post

from ostler.base.errors import UnsupportedAgent
from ostler.server.api.services import Services
from ostler.wire.agents import Agent, AgentList, InstallAgent, Installed, ModeList, ModelList

_TAGS = ["agents"]


async def find_agent(services: Services, name: str) -> Agent:
    """An agent by its id or another name of it."""
    catalogue = await services.runner.catalogue()
    for agent in catalogue:
        if name in {agent.id, agent.type, *agent.aliases}:
            return agent
    raise UnsupportedAgent(agent=name, known=", ".join(agent.id for agent in catalogue))


async def full_name(services: Services, name: str | None) -> str | None:
    """The id of the agent that a filter names; a name that no agent has any more stays as it is."""
    for agent in await services.runner.catalogue() if name else ():
        if name in {agent.type, *agent.aliases}:
            return agent.id
    return name


@get("/agents", operation_id="agents.list", tags=_TAGS, role="viewer")
async def list_agents(services: Services) -> AgentList:
    """Every agent this server can run, and the defaults of new sessions."""
    return AgentList(
        items=tuple(await services.runner.catalogue()),
        default_agent=services.settings.default_agent,
        default_instructions=services.settings.default_instructions,
    )


@get("/agents/{agent:str}", operation_id="agents.get", tags=_TAGS, role="viewer")
async def get_agent(agent: str, services: Services) -> Agent:
    """One agent."""
    return await find_agent(services, agent)


@post("/agents/{agent:str}/install", operation_id="agents.install", tags=_TAGS, status_code=200, role="admin")
async def install_agent(agent: str, services: Services, data: InstallAgent | None = None) -> Installed:
    """Install an agent, or find that it is there already."""
    return await services.runner.install(agent, data.version if data else None)


@get("/agents/{agent:str}/modes", operation_id="agents.modes", tags=_TAGS, role="viewer")
async def agent_modes(agent: str, services: Services) -> ModeList:
    """What the agent can be told to do."""
    return ModeList(modes=(await find_agent(services, agent)).modes)


@get("/agents/{agent:str}/models", operation_id="agents.models", tags=_TAGS, role="viewer")
async def agent_models(agent: str, services: Services) -> ModelList:
    """Which models the agent offers."""
    return ModelList(models=(await find_agent(services, agent)).models)


HANDLERS = (list_agents, get_agent, install_agent, agent_modes, agent_models)
