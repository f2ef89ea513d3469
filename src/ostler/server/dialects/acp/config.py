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
    state, spec = session.state, session.settings
    return options_of(
        agent,
        permission_mode=spec.permission_mode,
        mode=spec.mode or state.mode,
        model=spec.model or state.model,
        variant=spec.variant or state.variant,
    )


def options_of(
    agent: Agent,
    *,
    permission_mode: PermissionMode = "default",
    mode: str | None = None,
    model: str | None = None,
    variant: str | None = None,
) -> list[Json]:
    """Everything that can be set for an agent; what is not chosen is what it begins with."""
    found = [_select("permission_mode", "Permissions", "_permission_mode", permission_mode, _PERMISSIONS)]
    if agent.modes:
        names = {offered.id: offered.name for offered in agent.modes}
        found.append(_select("mode", "Mode", "mode", mode or agent.modes[0].id, names))
    if agent.models:
        current = model or agent.models[0].id
        found.append(_select("model", "Model", "model", current, {one.id: one.name for one in agent.models}))
        variants = next((one.variants for one in agent.models if one.id == current), ())
        if variants:
            chosen = variant or variants[0]
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
