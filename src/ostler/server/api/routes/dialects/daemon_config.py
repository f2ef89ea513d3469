"""Tools and skills that newer daemon clients keep with a folder, at /v1/config."""

from typing import Annotated

import msgspec
from litestar import delete, get, put
from litestar.datastructures import State
from litestar.params import Parameter, QueryParameter

from ostler.server.api.services import Services
from ostler.server.dialects.daemon.bodies import LocalMcp, RemoteMcp
from ostler.server.dialects.daemon.folder_config import FolderConfig, SkillsConfig
from ostler.server.dialects.daemon.machine_files import MachineFiles

McpConfig = LocalMcp | RemoteMcp
_TAGS = ["daemon"]
Folder = Annotated[str, Parameter(description="An absolute path of a folder that sessions may use.", max_length=4096)]
McpName = Annotated[
    str, QueryParameter(name="mcpName", description="What the server is called.", min_length=1, max_length=128)
]
SkillName = Annotated[
    str, QueryParameter(name="skillName", description="What the entry is called.", min_length=1, max_length=128)
]


_mcp_decoder: msgspec.json.Decoder[McpConfig] = msgspec.json.Decoder(McpConfig)
_skills_decoder = msgspec.json.Decoder(SkillsConfig)


def _mcp(state: State) -> FolderConfig[McpConfig]:
    found: FolderConfig[McpConfig] = state.setdefault("daemon_mcp_config", FolderConfig("mcp.json", _mcp_decoder))
    return found


def _skills(state: State) -> FolderConfig[SkillsConfig]:
    found: FolderConfig[SkillsConfig] = state.setdefault(
        "daemon_skills_config", FolderConfig("skills.json", _skills_decoder)
    )
    return found


def _files(services: Services) -> MachineFiles:
    return MachineFiles(services.runners.workspaces(services.runners.any()), None)


@get("/v1/config/mcp", operation_id="daemon.mcp-config", tags=_TAGS, role="operator", reach="server")
async def get_mcp(services: Services, state: State, directory: Folder, name: McpName) -> McpConfig:
    """An MCP server that is kept with a folder."""
    return await _mcp(state).get(_files(services), directory, name)


@put(
    "/v1/config/mcp",
    operation_id="daemon.set-mcp-config",
    tags=_TAGS,
    status_code=204,
    role="operator",
    reach="server",
)
async def set_mcp(services: Services, state: State, directory: Folder, name: McpName, data: McpConfig) -> None:
    """Keep an MCP server with a folder; no agent gets it by itself."""
    await _mcp(state).put(_files(services), directory, name, data)


@delete("/v1/config/mcp", operation_id="daemon.remove-mcp-config", tags=_TAGS, role="operator", reach="server")
async def remove_mcp(services: Services, state: State, directory: Folder, name: McpName) -> None:
    """Keep it no longer."""
    await _mcp(state).remove(_files(services), directory, name)


@get("/v1/config/skills", operation_id="daemon.skills-config", tags=_TAGS, role="operator", reach="server")
async def get_skills(services: Services, state: State, directory: Folder, name: SkillName) -> SkillsConfig:
    """Sources of skills that are kept with a folder."""
    return await _skills(state).get(_files(services), directory, name)


@put(
    "/v1/config/skills",
    operation_id="daemon.set-skills-config",
    tags=_TAGS,
    status_code=204,
    role="operator",
    reach="server",
)
async def set_skills(services: Services, state: State, directory: Folder, name: SkillName, data: SkillsConfig) -> None:
    """Keep sources of skills with a folder; no agent gets them by itself."""
    await _skills(state).put(_files(services), directory, name, data)


@delete("/v1/config/skills", operation_id="daemon.remove-skills-config", tags=_TAGS, role="operator", reach="server")
async def remove_skills(services: Services, state: State, directory: Folder, name: SkillName) -> None:
    """Keep them no longer."""
    await _skills(state).remove(_files(services), directory, name)


HANDLERS = (get_mcp, set_mcp, remove_mcp, get_skills, set_skills, remove_skills)
"""Handlers of /v1/config."""
