"""The daemon API's words and ours."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import get_args

import msgspec

from ostler.base.casing import camel
from ostler.base.errors import (
    AgentNotInstalled,
    AgentStartFailed,
    InstallFailed,
    InvalidRequest,
    OstlerError,
    VersionNotOffered,
)
from ostler.server.dialects.acp.config import options_of
from ostler.server.dialects.daemon.bodies import (
    DaemonAgent,
    DaemonAttachment,
    DaemonCreateSession,
    DaemonError,
    DaemonErrorType,
    DaemonMessage,
    DaemonModel,
    DaemonServerStatus,
    DaemonSession,
    DaemonSessionCreated,
    LocalMcp,
    RemoteMcp,
)
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.settings import settings_shown
from ostler.server.store.records import SessionRecord
from ostler.wire.agents import Agent, Model
from ostler.wire.events import PermissionMode
from ostler.wire.parts import FileInput, ImageInput, InputPart, TextInput
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer
from ostler.wire.sessions import CreateSession, SendMessage

_NAMES = frozenset({"claude", "codex", "opencode", "amp", "pi"})
"""How the daemon API's specification calls agents."""
_DEFAULT_MODE = "build"
_IN_FOLDER = ("sh", "-c", 'cd "$0" && exec "$@"')
"""Before a folder and a command: no agent is asked for the folder of a tool server."""


def agent_name(agent: Agent) -> str:
    """What the daemon API calls an agent."""
    return next((name for name in (agent.id, *agent.aliases) if name in _NAMES), agent.id)


def create_session(
    key: str, wanted: DaemonCreateSession, agent: Agent, instructions: str | None = None
) -> CreateSession:
    """Our request for the daemon's; `instructions` are those of its skills."""
    return CreateSession(
        agent=agent.id,
        instructions=instructions,
        key=key,
        title=wanted.title,
        model=wanted.model,
        variant=wanted.variant,
        mode=_mode(wanted.agent_mode, agent),
        permission_mode=_permission_mode(wanted.permission_mode),
        env=_login(wanted.token, agent),
        cwd=wanted.directory,
        mcp_servers={
            name: _mcp_server(name, server)
            for name, server in (wanted.mcp or {}).items()
            if server.enabled is not False
        },
    )


def reworded(error: OstlerError, session: str | None, names: Mapping[str, str]) -> OstlerError:
    """An error with the names that this API has: `names` are those of agents, `session` is what its client calls it."""
    fields, errors = dict(error.fields), error.errors
    if fields.get("agent") in names:
        fields["agent"] = names[fields["agent"]]
    if session is not None and "session" in fields:
        fields["session"] = session
    if errors is not None and "key" in errors:
        errors = {"session": errors["key"]}
        fields["reason"] = fields["reason"].replace("key '", "session '", 1)
    return error if (fields, errors) == (error.fields, error.errors) else type(error)(errors=errors, **fields)


def unhealthy(session: str, agent: str, kind: DaemonErrorType, message: str) -> DaemonSessionCreated:
    """Nothing was created, and this is why."""
    problem = DaemonError(type=kind, message=message, agent=agent, session_id=session)
    return DaemonSessionCreated(healthy=False, error=problem)


def install_error(error: InstallFailed | AgentNotInstalled) -> DaemonErrorType:
    """What kind of error it is that an agent cannot be installed."""
    match error:
        case AgentNotInstalled():
            return "agentNotInstalled"
        case VersionNotOffered():
            return "versionNotOffered"
        case _:
            return "installFailed"


def start_error(error: AgentStartFailed) -> DaemonErrorType:
    """What kind of error it is that an agent does not start."""
    return "startFailed" if error.fields.get("exit_code") is None else "processExited"


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field}: {reason}.", errors={field: [reason]})


def _mode(wanted: str | None, agent: Agent) -> str | None:
    offered = [mode.id for mode in agent.modes]
    if wanted is not None and offered and wanted not in offered:
        if wanted == _DEFAULT_MODE:  # what every agent does when it is told nothing
            return None
        raise _refused("agentMode", f"'{wanted}' is not one of {', '.join(offered)}")
    return wanted if offered else None


def _permission_mode(wanted: str | None) -> PermissionMode:
    for mode in get_args(PermissionMode):
        if mode == (wanted or "default"):
            return mode  # type: ignore[no-any-return]  # get_args forgets that it is one of the modes
    raise _refused("permissionMode", f"'{wanted}' is not one of {', '.join(get_args(PermissionMode))}")


def _login(token: str | None, agent: Agent) -> dict[str, str]:
    if not token:
        return {}
    if not agent.credential_names:
        raise _refused("token", f"agent '{agent.id}' takes none")
    return {agent.credential_names[0]: token}


def _mcp_server(name: str, server: LocalMcp | RemoteMcp) -> McpServer:
    for field in ("bearer_token_env_var", "env_headers", "oauth"):
        if getattr(server, field, None):
            raise _refused(f"mcp.{name}.{field}", "is not supported")
    if isinstance(server, RemoteMcp):
        return HttpMcpServer(url=server.url, headers=server.headers or {})
    command, *args = (server.command,) if isinstance(server.command, str) else server.command or ("",)
    if not command:
        raise _refused(f"mcp.{name}.command", "is empty")
    command, *args = (*_IN_FOLDER, server.cwd, command, *args) if server.cwd else (command, *args)
    return StdioMcpServer(command=command, args=(*args, *server.args), env=server.env or {})


def prompt(wanted: DaemonMessage) -> SendMessage:
    """Our prompt for the daemon's."""
    if not wanted.attachments:
        return SendMessage(message=wanted.message)
    text = (TextInput(text=wanted.message),) if wanted.message else ()
    return SendMessage(parts=(*text, *map(_part, wanted.attachments)))


def _part(attachment: DaemonAttachment) -> InputPart:
    if (attachment.mime or "").startswith("image/"):
        return ImageInput(path=attachment.path, mime=attachment.mime)
    return FileInput(path=attachment.path)


def agent_view(agent: Agent, started_at: Sequence[datetime], now: datetime, *, config: bool = False) -> DaemonAgent:
    """An agent as the daemon API shows it, with when its programs that run were started."""
    uptime = round((now - min(started_at)).total_seconds() * 1000) if started_at else None
    return DaemonAgent(
        id=agent_name(agent),
        installed=agent.installed,
        credentials_available=bool(agent.credentials_available),
        capabilities={camel(name): value for name, value in msgspec.structs.asdict(agent.capabilities).items()},
        version=agent.version,
        path=agent.path,
        server_status=DaemonServerStatus(status="running" if started_at else "stopped", uptime_ms=uptime),
        config_options=tuple(options_of(agent)) if config else None,
    )


def model_view(model: Model) -> DaemonModel:
    """A model as the daemon API shows it."""
    return DaemonModel(id=model.id, name=model.name, variants=model.variants or None)


def session_view(
    record: SessionRecord, state: SessionState, last: int, updated_at: str, agents: Mapping[str, Agent]
) -> DaemonSession:
    """A session as the daemon API shows it; `agents` are those that are known, by their ids."""
    settings = settings_shown(record, state)
    agent = agents.get(record.agent)
    usual = agent.modes[0].id if agent is not None and agent.modes else "default"
    return DaemonSession(
        session_id=record.key,
        agent=record.agent if agent is None else agent_name(agent),
        agent_mode=settings.mode or usual,
        permission_mode=settings.permission_mode,
        ended=state.ended,
        event_count=last,
        created_at=_milliseconds(record.created_at),
        updated_at=_milliseconds(updated_at),
        directory=settings.cwd,
        model=settings.model,
        variant=settings.variant,
        title=state.title,
        native_session_id=state.native_session_id,
    )


def _milliseconds(time: str) -> int:
    return round(datetime.fromisoformat(time).timestamp() * 1000)
