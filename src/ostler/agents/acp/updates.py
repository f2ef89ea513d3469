"""What an ACP agent does in a turn: one small function for each kind of `session/update`."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.acp import frames, session
from ostler.agents.acp.state import AcpState, mode_is, params
from ostler.agents.acp.tools import parent_of, shown
from ostler.agents.adapter import Offered, Output
from ostler.agents.jsonrpc import Incoming
from ostler.wire.agents import Command
from ostler.wire.events import SessionInfoData
from ostler.wire.parts import TextPart
from ostler.wire.running import Draft

_REPLAYED = (frames.UserMessageChunk, frames.AgentMessageChunk, frames.AgentThoughtChunk, frames.ToolCall, frames.Plan)


def updated(state: AcpState, message: Incoming) -> Sequence[Output]:
    """One `session/update`; before the first prompt it tells old history again."""
    update = params(message, frames.SessionUpdate).update
    if not state.talks and isinstance(update, _REPLAYED):
        state.tells_history = True
        return ()
    return UPDATES[type(update)](state, update)


def _message(state: AcpState, update: frames.AgentMessageChunk) -> Sequence[Output]:
    usage = state.spent.call(update.meta)
    parent = state.tools.item_of(parent_of(update.meta))
    if isinstance(update.content, frames.Image):
        return *state.messages.show(update.content, update.message_id, parent), *usage
    text = shown(update.content)
    marker = state.profile.mode_marker
    if marker is not None and text.startswith(marker):
        return (mode_is(text.removeprefix(marker).strip()),)
    return *state.messages.say(TextPart(text=text), update.message_id, parent), *usage


def _thought(state: AcpState, update: frames.AgentThoughtChunk) -> Sequence[Output]:
    text = shown(update.content)
    if text.startswith(state.profile.hidden_thoughts):
        return ()
    parent = state.tools.item_of(parent_of(update.meta))
    return state.messages.say(say.thought(text), update.message_id, parent)


def _tool_call(state: AcpState, update: frames.ToolCallStarted) -> Sequence[Output]:
    return *state.messages.close(), *state.tools.take(update, begins=True)


def _tool_update(state: AcpState, update: frames.ToolCallUpdated) -> Sequence[Output]:
    return *state.messages.close(), *state.tools.take(update)


def _plan(_: AcpState, update: frames.Plan) -> Sequence[Output]:
    return (say.plan(say.step(one.content, one.status, one.priority) for one in update.entries),)


def _commands(_: AcpState, update: frames.Commands) -> Sequence[Output]:
    offered = (
        Command(name=one.name, description=one.description or "", hint=(one.input.hint if one.input else None) or "")
        for one in update.available_commands
    )
    return (Offered(commands=tuple(offered)),)


def _current_mode(_: AcpState, update: frames.CurrentMode) -> Sequence[Output]:
    return (mode_is(update.current_mode_id),)


def _config(state: AcpState, update: frames.ConfigOptions) -> Sequence[Output]:
    before = state.opened
    state.opened = msgspec.structs.replace(before, config_options=update.config_options)
    model = session.current_model(state.opened)
    return () if model == session.current_model(before) else (Draft("session.info", SessionInfoData(model=model)),)


def _info(_: AcpState, update: frames.SessionInfo) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(title=update.title)),) if update.title else ()


def _usage(state: AcpState, update: frames.Usage) -> Sequence[Output]:
    return state.spent.context(update)


def _unused(_: AcpState, __: Any) -> Sequence[Output]:
    return ()


UPDATES: dict[type[frames.Frame], Callable[[AcpState, Any], Sequence[Output]]] = {
    frames.UserMessageChunk: _unused,  # we know what the person said
    frames.AgentMessageChunk: _message,
    frames.AgentThoughtChunk: _thought,
    frames.ToolCallStarted: _tool_call,
    frames.ToolCallUpdated: _tool_update,
    frames.Plan: _plan,
    frames.Commands: _commands,
    frames.CurrentMode: _current_mode,
    frames.ConfigOptions: _config,
    frames.SessionInfo: _info,
    frames.Usage: _usage,
}
