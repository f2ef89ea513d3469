"""The handshake with an ACP agent, from the greeting until prompts can be sent."""

from collections.abc import Callable, Sequence

import msgspec

from ostler.agents import say
from ostler.agents.acp import session
from ostler.agents.acp.errors import described
from ostler.agents.acp.frames import Initialized, SessionOpened
from ostler.agents.acp.state import AcpState, result
from ostler.agents.adapter import Output, Ready, StartFailed
from ostler.agents.jsonrpc import Incoming

_ECHO = "_ostler/echo"
"""An extension that no agent has, so each refuses it at once."""


def _initialized(state: AcpState, message: Incoming) -> Sequence[Output]:
    if message.error is not None:
        return (StartFailed(described(message.error).message),)
    answer = result(message, Initialized)
    if answer.protocol_version != session.VERSION:
        reason = f"The agent speaks version {answer.protocol_version} of ACP; Ostler speaks {session.VERSION}."
        return (StartFailed(reason),)
    state.can = answer.agent_capabilities
    state.version = answer.agent_info.version if answer.agent_info else None
    warnings = [
        say.notice(f"The agent cannot use MCP servers over HTTP, so '{name}' is left out.", "mcp_unsupported")
        for name in session.unreachable(state.spec, state.can)
    ]
    return *warnings, state.rpc.request(*session.opening(state.spec, state.can))


def _session_opened(state: AcpState, message: Incoming) -> Sequence[Output]:
    if message.error is not None:
        return (StartFailed(described(message.error).message),)
    empty = bytes(message.result) == b"null"
    opened = SessionOpened() if empty else result(message, SessionOpened)
    state.opened = opened
    state.session_id = opened.session_id or state.spec.resume
    if state.resumed and state.profile.late_history:
        return (_is_history_over(state),)
    return _wish(state)


def _is_history_over(state: AcpState) -> Output:
    """Ask something that means nothing: the answer stands behind what the agent was about to send."""
    state.tells_history = False
    return state.rpc.request(_ECHO, {})


def _echoed(state: AcpState, _: Incoming) -> Sequence[Output]:
    return (_is_history_over(state),) if state.tells_history else _wish(state)


def _wish(state: AcpState) -> Sequence[Output]:
    try:
        requests = session.wishes(state.profile, state.spec, state.opened)
    except session.Unmet as error:
        return (StartFailed(str(error)),)
    state.unset = len(requests)
    if not requests:
        return (_ready(state),)
    return tuple(state.rpc.request(method, {"sessionId": state.session_id, **more}) for method, more in requests)


def _session_resumed(state: AcpState, message: Incoming) -> Sequence[Output]:
    if message.error is None:
        state.resumed = True
        return _session_opened(state, message)
    reason = described(message.error).message
    lost = say.notice(f"The agent could not go on with its old session and began a new one: {reason}", "resume_failed")
    fresh = msgspec.structs.replace(state.spec, resume=None)
    return lost, state.rpc.request(*session.opening(fresh, state.can))


def _set(state: AcpState, message: Incoming) -> Sequence[Output]:
    state.unset -= 1
    if message.error is not None:
        return (StartFailed(described(message.error).message),)
    return () if state.unset else (_ready(state),)


def _ready(state: AcpState) -> Ready:
    wanted = session.wanted_mode(state.profile, state.spec, state.opened)
    return Ready(
        native_session_id=state.session_id,
        resumed=state.resumed,
        agent_version=state.version,
        model=state.spec.model or session.current_model(state.opened),
        mode=wanted or session.current_mode(state.opened),
        models=session.models_of(state.opened),
        modes=session.modes_of(state.opened),
    )


ANSWERS: dict[str, Callable[[AcpState, Incoming], Sequence[Output]]] = {
    "initialize": _initialized,
    "session/new": _session_opened,
    "session/load": _session_resumed,
    "session/resume": _session_resumed,
    _ECHO: _echoed,
    "session/set_mode": _set,
    "session/set_model": _set,
    "session/set_config_option": _set,
}
