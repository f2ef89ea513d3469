"""The catalogue of agents."""

from litestar import get, post

from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope
from ostler.server.runners import agents as runner_agents
from ostler.wire.agents import Agent, AgentList, InstallAgent, Installed, ModeList, ModelList

_TAGS = ["agents"]


@get("/agents", operation_id="agents.list", tags=_TAGS, role="viewer")
async def list_agents(services: Services, caller: Scope) -> AgentList:
    """Every agent this server can run, and the defaults of new sessions."""
    return AgentList(
        items=tuple(await runner_agents.catalogue(services.runners, caller.tenant)),
        default_agent=services.default_agent,
        default_agent_hint=services.default_agent_hint,
        default_instructions=services.settings.default_instructions,
    )


@get("/agents/{agent:str}", operation_id="agents.get", tags=_TAGS, role="viewer")
async def get_agent(agent: str, services: Services, caller: Scope) -> Agent:
    """One agent."""
    runner_agents.agent_for(services.runners, agent, caller.tenant)
    return await runner_agents.describe_agent(services.runners, agent)


@post(
    "/agents/{agent:str}/install",
    operation_id="agents.install",
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
)
async def install_agent(agent: str, services: Services, data: InstallAgent | None = None) -> Installed:
    """Install an agent, or find that it is there already; with `reinstall` it is installed anew."""
    wanted = data or InstallAgent()
    return await runner_agents.install_agent(services.runners, agent, wanted.version, reinstall=wanted.reinstall)


@get("/agents/{agent:str}/modes", operation_id="agents.modes", tags=_TAGS, role="viewer")
async def agent_modes(agent: str, services: Services, caller: Scope) -> ModeList:
    """What the agent can be told to do."""
    return ModeList(modes=runner_agents.agent_for(services.runners, agent, caller.tenant).modes)


@get("/agents/{agent:str}/models", operation_id="agents.models", tags=_TAGS, role="viewer")
async def agent_models(agent: str, services: Services, caller: Scope) -> ModelList:
    """Which models the agent offers."""
    return ModelList(models=runner_agents.agent_for(services.runners, agent, caller.tenant).models)


HANDLERS = (list_agents, get_agent, install_agent, agent_modes, agent_models)
