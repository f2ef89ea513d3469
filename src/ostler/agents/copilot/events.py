"""Copilot's session events: one small function for each that matters, one reason for each that does not."""

from collections.abc import Callable, Sequence
from typing import Any

from ostler.agents import say
from ostler.agents.adapter import Output, Unreadable
from ostler.agents.copilot import frames
from ostler.agents.copilot.turn import Turn
from ostler.wire.events import SessionInfoData
from ostler.wire.running import Draft

Agent = str | None
Handler = Callable[[Turn, Agent, Any], Sequence[Output]]


def translate(turn: Turn, event: frames.Event) -> Sequence[Output]:
    """What one event means."""
    found = EVENTS.get(event.type)
    if found is None:
        if event.type in SILENT:
            return ()
        raise Unreadable(f"Unknown event '{event.type}'", "$.params.event.type")
    kind, handler = found
    return handler(turn, event.agent_id, say.read(event.data, kind, "$.params.event.data"))


def _retry(turn: Turn, agent: Agent, data: frames.TurnRetry) -> Sequence[Output]:
    message = f"The model call failed ({data.reason or 'unknown reason'}); trying again."
    return *turn.talk.give_up(agent), say.notice(message, "retry")


def _call_over(turn: Turn, agent: Agent, _: frames.Empty) -> Sequence[Output]:
    """A message that is still open was cut off by an interrupt or an error."""
    return turn.talk.give_up(agent)


def _spawned(turn: Turn, agent: Agent, data: frames.SubagentStarted) -> Sequence[Output]:
    if agent is not None:
        turn.talk.spawn(agent, data.tool_call_id)
    return ()


def _question(turn: Turn, _: Agent, data: frames.UserInputRequested) -> Sequence[Output]:
    turn.expect(data.question, data.tool_call_id)
    return ()


def _plan(turn: Turn, _: Agent, data: frames.ExitPlanRequested) -> Sequence[Output]:
    turn.expect("", data.tool_call_id)
    return ()


def _todos(turn: Turn, _: Agent, __: frames.Empty) -> Sequence[Output]:
    turn.todos_changed = True
    return ()


def _usage(turn: Turn, _: Agent, data: frames.Usage) -> Sequence[Output]:
    return (turn.count(data),)


def _context(turn: Turn, agent: Agent, data: frames.ContextUse) -> Sequence[Output]:
    if agent is None:
        turn.fill(data)
    return ()


def _call_failure(turn: Turn, _: Agent, data: frames.CallFailure) -> Sequence[Output]:
    turn.hear(data)
    return ()


def _error(turn: Turn, agent: Agent, data: frames.SessionError) -> Sequence[Output]:
    """An error of a sub-agent fails its tool call, not the turn."""
    return (turn.fail(data) if agent is None else say.notice(data.message, data.error_type or None),)


def _info(_: Turn, __: Agent, data: frames.Information) -> Sequence[Output]:
    return () if data.info_type in SILENT_INFO else (say.notice(data.message, data.info_type or None, "info"),)


def _warning(_: Turn, __: Agent, data: frames.Warned) -> Sequence[Output]:
    return (say.notice(data.message, data.warning_type or None),)


def _compacted(_: Turn, __: Agent, data: frames.Compacted) -> Sequence[Output]:
    if data.success:
        return (say.notice("The conversation was summarised to make room.", "compaction", "info"),)
    return (say.notice(f"The conversation could not be summarised: {data.error}", "compaction"),)


def _mcp(_: Turn, __: Agent, data: frames.McpStatus) -> Sequence[Output]:
    if data.status != "failed":
        return ()
    return (say.notice(f"MCP server '{data.server_name}' failed: {data.error}", "mcp_server_failed"),)


def _model(_: Turn, agent: Agent, data: frames.ModelChange) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(model=data.new_model)),) if agent is None else ()


def _mode(_: Turn, agent: Agent, data: frames.ModeChange) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(mode=data.new_mode)),) if agent is None else ()


def _idle(turn: Turn, agent: Agent, data: frames.Idle) -> Sequence[Output]:
    """Comes once, when background commands and sub-agents are done as well."""
    return (turn.end(data),) if agent is None else ()


EVENTS: dict[str, tuple[type[frames.Frame], Handler]] = {
    "assistant.reasoning_delta": (frames.ReasoningDelta, lambda turn, agent, data: turn.talk.think(agent, data)),
    "assistant.message_start": (frames.MessageStart, lambda turn, agent, data: turn.talk.begin(agent, data)),
    "assistant.message_delta": (frames.MessageDelta, lambda turn, agent, data: turn.talk.say(agent, data)),
    "assistant.message": (frames.AssistantMessage, lambda turn, agent, data: turn.talk.finish(agent, data)),
    "assistant.turn_end": (frames.Empty, _call_over),
    "assistant.turn_retry": (frames.TurnRetry, _retry),
    "assistant.usage": (frames.Usage, _usage),
    "tool.execution_start": (frames.ToolStart, lambda turn, agent, data: turn.talk.begin_call(agent, data)),
    "tool.shell_output": (frames.ShellOutput, lambda turn, _, data: turn.talk.output(data)),
    "tool.execution_complete": (frames.ToolComplete, lambda turn, _, data: turn.talk.end_call(data)),
    "subagent.started": (frames.SubagentStarted, _spawned),
    "permission.requested": (frames.PermissionRequested, lambda turn, _, data: turn.request(data)),
    "permission.completed": (frames.PermissionCompleted, lambda turn, _, data: turn.settle(data)),
    "user_input.requested": (frames.UserInputRequested, _question),
    "exit_plan_mode.requested": (frames.ExitPlanRequested, _plan),
    "session.todos_changed": (frames.Empty, _todos),
    "session.usage_info": (frames.ContextUse, _context),
    "model.call_failure": (frames.CallFailure, _call_failure),
    "session.error": (frames.SessionError, _error),
    "session.info": (frames.Information, _info),
    "session.warning": (frames.Warned, _warning),
    "session.compaction_complete": (frames.Compacted, _compacted),
    "session.mcp_server_status_changed": (frames.McpStatus, _mcp),
    "session.model_change": (frames.ModelChange, _model),
    "session.mode_changed": (frames.ModeChange, _mode),
    "session.idle": (frames.Idle, _idle),
}
SILENT_INFO = {
    "model_retry": "assistant.turn_retry says it each time",
    "file_created": "the tool's end says it with the diff",
}


def _because(reason: str, *types: str) -> dict[str, str]:
    return dict.fromkeys(types, reason)


SILENT = {
    **_because("the handshake has it", "session.start", "session.resume"),
    **_because("we sent it", "user.message", "pending_messages.modified", "abort", "session.mode_notice_delivered"),
    **_because("the whole message follows", "assistant.reasoning", "assistant.streaming_delta"),
    **_because("the call follows", "assistant.tool_call_delta", "assistant.intent", "tool.user_requested"),
    **_because("the pieces came before it", "tool.execution_partial_result"),
    **_because("only session.idle ends a turn", "assistant.idle", "assistant.turn_start"),
    **_because("session.idle says it as well", "agent.interrupted", "session.autopilot_stopped"),
    **_because("its tool call says it as well", "subagent.completed", "subagent.failed", "session.task_complete"),
    **_because("the answer was ours", "user_input.completed", "exit_plan_mode.completed", "human_response.recorded"),
    **_because("the first prompt, which names the session already", "session.title_changed"),
    **_because(
        "only for Copilot's own windows",
        "session.background_tasks_changed",
        "session.workspace_file_changed",
        "session.plan_changed",
        "session.context_changed",
        "commands.changed",
        "capabilities.changed",
    ),
    **_because(
        "only for the model",
        "system.message",
        "system.notification",
        "instruction.update",
        "skill.invoked",
        "skill.invoked_ref",
        "skill.context_delivered",
        "skill.context_delivered_ref",
        "tool_search.activated",
        "subagent.configured",
        "subagent.selected",
        "subagent.deselected",
    ),
    **_because(
        "how it is set up",
        "session.skills_loaded",
        "session.custom_agents_updated",
        "session.extensions_loaded",
        "session.tools_updated",
        "session.managed_settings_resolved",
        "session.managed_settings_enforced",
        "session.mcp_servers_loaded",
        "session.mcp_server_tools_loaded",
        "session.mcp_server_removed",
        "session.indexed_search",
        "session.permissions_changed",
        "mcp.tools.list_changed",
        "mcp.resources.list_changed",
        "mcp.prompts.list_changed",
        "sandbox.decision",
    ),
    **_because(
        "how it calls the model",
        "model.call_start",
        "model.call_finished",
        "model.call_final_result",
        "model.log",
        "model.message",
        "model.messages_snapshot",
        "model.model_call_failure",
        "model.model_call_started",
        "model.model_call_success",
        "model.response",
        "model.telemetry",
        "model.tool_execution",
        "model.turn_ended",
        "model.turn_failed",
        "model.turn_retry",
        "model.turn_started",
        "prompt_cache_break",
        "session.compaction_start",
        "session.truncation",
        "session.usage_checkpoint",
        "session.quota_observation",
        "assistant.server_tool_progress",
        "tool.execution_progress",
        "hook.start",
        "hook.end",
        "hook.progress",
        "session.shutdown",
    ),
}
