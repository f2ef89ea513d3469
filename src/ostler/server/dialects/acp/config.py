"""What can be set in a session, as the protocol's modes and config options."""

from typing import get_args

from ostler.server.dialects.acp.blocks import Json
from ostler.server.dialects.acp.messages import INVALID_PARAMS, Refusal
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange
from ostler.wire.agents import Agent
from ostler.wire.events import PermissionMode

_PERMISSIONS = {"default": "Ask before risky actions", "plan": "Read only", "bypass": "Allow everything"}


def modes(session: SessionCore, agent: Agent) -> Json | None:
    """The ways of working that the agent offers."""
    if not agent.modes:
        return None
    offered = [{"id": mode.id, "name": mode.name, "description": mode.description} for mode in agent.modes]
    return {"currentModeId": _current_mode(session, agent), "availableModes": offered}


def _current_mode(session: SessionCore, agent: Agent) -> str:
    return session.settings.mode or session.state.mode or agent.modes[0].id


def config_options(session: SessionCore, agent: Agent) -> list[Json]:
    """Everything that can be set, with what is set now."""
    state = session.state
    spec = session.settings
    found = [_select("permission_mode", "Permissions", "_permission_mode", spec.permission_mode, _PERMISSIONS)]
    if agent.modes:
        names = {mode.id: mode.name for mode in agent.modes}
        found.append(_select("mode", "Mode", "mode", _current_mode(session, agent), names))
    if agent.models:
        current = spec.model or state.model or agent.models[0].id
        found.append(_select("model", "Model", "model", current, {model.id: model.name for model in agent.models}))
        variants = next((model.variants for model in agent.models if model.id == current), ())
        if variants:
            chosen = spec.variant or state.variant or variants[0]
            found.append(_select("variant", "Effort", "thought_level", chosen, {name: name for name in variants}))
    return found


def _select(option: str, name: str, category: str, current: str, offered: dict[str, str]) -> Json:
    options = [{"value": value, "name": label} for value, label in {current: current, **offered}.items()]
    return {
        "id": option,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": sorted(options, key=lambda found: [*offered, current].index(found["value"])),
    }


def change_of(option: str, value: str | bool) -> SessionChange:
    """What setting an option changes."""
    if not isinstance(value, str):
        raise Refusal(INVALID_PARAMS, f"value: option '{option}' takes one of its values as text.")
    match option:
        case "mode":
            return SessionChange(mode=value)
        case "model":
            return SessionChange(model=value)
        case "variant":
            return SessionChange(variant=value)
        case "permission_mode":
            return SessionChange(permission_mode=_permission_mode(value))
        case _:
            raise Refusal(INVALID_PARAMS, f"configId: there is no option '{option}'.")


def _permission_mode(value: str) -> PermissionMode:
    for mode in get_args(PermissionMode):
        if mode == value:
            return mode  # type: ignore[no-any-return]  # get_args forgets that it is one of the modes
    raise Refusal(INVALID_PARAMS, f"value: '{value}' is not one of {', '.join(_PERMISSIONS)}.")
