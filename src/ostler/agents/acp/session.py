"""How a session with an ACP agent is opened: what we say first, and which mode, model and variant we then ask for."""

from typing import Any

from ostler import __version__
from ostler.agents.acp.frames import AgentCapabilities, ConfigOption, SessionOpened
from ostler.agents.acp.profile import Profile
from ostler.wire.agents import Mode, Model
from ostler.wire.events import PermissionMode
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer
from ostler.wire.running import AgentSpec

VERSION = 1
GREETING: dict[str, Any] = {
    "protocolVersion": VERSION,
    # no file system and no terminals of ours: an agent that works in its own workspace needs none
    "clientCapabilities": {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
        "elicitation": {"form": {}, "url": {}},
    },
    "clientInfo": {"name": "ostler", "title": "Ostler", "version": __version__},
}
_GUESSES: dict[PermissionMode, tuple[str, ...]] = {
    "default": ("default", "ask", "always-ask", "manual"),
    "plan": ("plan",),
    "bypass": ("yolo", "bypassPermissions", "bypass", "always-approve", "full-access"),
}
"""What agents we know nothing about may call our permission modes."""

Request = tuple[str, dict[str, Any]]


class Unmet(Exception):
    """The agent does not offer what the session needs."""


def opening(spec: AgentSpec, can: AgentCapabilities) -> Request:
    """A new session, or the old one again; `session/resume` repeats no history."""
    params: dict[str, Any] = {"cwd": spec.cwd, "mcpServers": _mcp_servers(spec, can)}
    if spec.resume is not None and can.session_capabilities.resume is not None:
        return "session/resume", {"sessionId": spec.resume, **params}
    if spec.resume is not None and can.load_session:
        return "session/load", {"sessionId": spec.resume, **params}
    return "session/new", params


def unreachable(spec: AgentSpec, can: AgentCapabilities) -> list[str]:
    """The session's MCP servers that this agent cannot use."""
    return [name for name, server in spec.mcp_servers.items() if not _reaches(server, can)]


def _mcp_servers(spec: AgentSpec, can: AgentCapabilities) -> list[dict[str, Any]]:
    return [_mcp_server(name, server) for name, server in spec.mcp_servers.items() if _reaches(server, can)]


def _reaches(server: McpServer, can: AgentCapabilities) -> bool:
    return isinstance(server, StdioMcpServer) or can.mcp_capabilities.http


def _mcp_server(name: str, server: McpServer) -> dict[str, Any]:
    match server:
        case StdioMcpServer():
            return {"name": name, "command": server.command, "args": list(server.args), "env": _pairs(server.env)}
        case HttpMcpServer():
            return {"type": "http", "name": name, "url": server.url, "headers": _pairs(server.headers)}


def _pairs(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


# What the agent offers


def modes_of(opened: SessionOpened) -> tuple[Mode, ...]:
    """All modes on offer."""
    if opened.modes is not None:
        offers = opened.modes.available_modes
        return tuple(Mode(id=one.id, name=one.name or one.id, description=one.description or "") for one in offers)
    option = _option(opened, "mode")
    return tuple(
        Mode(id=one.value, name=one.name or one.value, description=one.description or "")
        for one in (option.choices if option else ())
        if one.value is not None
    )


def models_of(opened: SessionOpened) -> tuple[Model, ...]:
    """All models on offer, with the efforts that can be chosen."""
    efforts = _option(opened, "thought_level")
    variants = tuple(one.value for one in efforts.choices if one.value) if efforts else ()
    option = _option(opened, "model")
    if option is not None:
        pairs = [(one.value, one.name) for one in option.choices if one.value is not None]
    else:
        pairs = [(one.model_id, one.name) for one in opened.models.available_models] if opened.models else []
    return tuple(Model(id=value, name=name or value, variants=variants) for value, name in pairs)


def current_mode(opened: SessionOpened) -> str | None:
    """The mode it is in."""
    if opened.modes is not None:
        return opened.modes.current_mode_id
    return _current(_option(opened, "mode"))


def current_model(opened: SessionOpened) -> str | None:
    """The model it uses."""
    option = _option(opened, "model")
    if option is not None:
        return _current(option)
    return opened.models.current_model_id if opened.models else None


def _current(option: ConfigOption | None) -> str | None:
    return option.current_value if option and isinstance(option.current_value, str) else None


def _option(opened: SessionOpened, category: str) -> ConfigOption | None:
    return next((one for one in opened.config_options or () if category in (one.category, one.id)), None)


# What we ask for


def wishes(profile: Profile, spec: AgentSpec, opened: SessionOpened) -> list[Request]:
    """The requests that bring the session to the wanted mode, model and variant; raises Unmet."""
    requests: list[Request] = []
    if (mode := wanted_mode(profile, spec, opened)) is not None and mode != current_mode(opened):
        requests.append(_set(opened, "mode", mode, "session/set_mode", "modeId"))
    if spec.model is not None and not profile.model_at_start and spec.model != current_model(opened):
        _check("model", spec.model, tuple(model.id for model in models_of(opened)))
        requests.append(_set(opened, "model", spec.model, "session/set_model", "modelId"))
    if spec.variant is not None:
        efforts = _option(opened, "thought_level")
        _check("variant", spec.variant, tuple(one.value or "" for one in efforts.choices) if efforts else ())
        requests.append(_set(opened, "thought_level", spec.variant, "session/set_config_option", "value"))
    return requests


def wanted_mode(profile: Profile, spec: AgentSpec, opened: SessionOpened) -> str | None:
    """The agent's own mode: as asked for, unless the session may only plan."""
    offered = tuple(mode.id for mode in modes_of(opened))
    if spec.mode is not None and spec.permission_mode != "plan":
        _check("mode", spec.mode, offered)
        return spec.mode
    if profile.permission_modes is not None:
        names: tuple[str, ...] = (profile.permission_modes[spec.permission_mode],)
    else:
        names = _GUESSES[spec.permission_mode]
    found = next((name for name in names if name in offered), None)
    if found is None and spec.permission_mode == "plan":
        _check("mode", "plan", offered)
    return found


def _set(opened: SessionOpened, category: str, value: str, method: str, field: str) -> Request:
    option = _option(opened, category)
    if option is not None and not (category == "mode" and opened.modes is not None):
        return "session/set_config_option", {"configId": option.id, "value": value}
    return method, {field: value}


def _check(what: str, value: str, possible: tuple[str, ...]) -> None:
    if value not in possible:
        offer = f"Possible: {', '.join(possible)}." if possible else "It offers none."
        raise Unmet(f"The agent has no {what} '{value}'. {offer}")
