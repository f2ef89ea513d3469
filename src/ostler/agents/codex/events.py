"""What happens on a notification of Codex: a table of small functions, and one of what is left out and why."""

from collections.abc import Callable, Sequence
from typing import Any, assert_never

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, TurnDone, Unreadable
from ostler.agents.codex import frames, thread
from ostler.agents.codex.asks import plan_approval
from ostler.agents.codex.errors import error_of, retry_of
from ostler.agents.codex.items import SPAWNING, USES, answered, call, changed_files, message
from ostler.agents.codex.state import State
from ostler.wire.events import ErrorData, SessionInfoData, UsageUpdatedData
from ostler.wire.parts import TextPart
from ostler.wire.running import Draft

Outputs = Sequence[Output]
_ALL = 100
"""So many percent of a limit are all of it."""


# Items


def _item_started(state: State, frame: frames.ItemFrame) -> Outputs:
    handle = STARTS.get(type(frame.item))
    return handle(state, frame.thread_id, frame.item) if handle else ()


def _user_message(state: State, thread_id: str, _: thread.UserMessage) -> Outputs:
    if thread_id == state.thread:
        state.unread = state.unread[1:]
    return ()


def _item_completed(state: State, frame: frames.ItemFrame) -> Outputs:
    handle = ENDS.get(type(frame.item))
    return handle(state, frame.thread_id, frame.item) if handle else ()


def _message_started(state: State, thread_id: str, item: thread.AgentMessage | thread.PlanText) -> Outputs:
    return [say.opened(message(state.place(thread_id, item.id)))]


def _message_completed(state: State, thread_id: str, item: thread.AgentMessage | thread.PlanText) -> Outputs:
    if isinstance(item, thread.PlanText) and thread_id == state.thread:
        state.plan = item.text
    return [say.closed(message(state.place(thread_id, item.id), TextPart(text=item.text)), "completed")]


def _compacted(_: State, __: str, ___: thread.Compaction) -> Outputs:
    return [say.notice("The conversation was summarised to make room.", "compaction", "info")]


def _call_started(state: State, thread_id: str, item: thread.ToolItem) -> Outputs:
    if isinstance(item, thread.SubAgentActivity) and item.kind not in SPAWNING:
        return ()  # the sub-agent's own items tell it
    place = state.place(thread_id, item.id)
    state.open[item.id] = item
    if isinstance(item, thread.Command):
        state.commands[item.id] = thread_id
    _remember_agents(state, item, place.item_id)
    return [say.opened(call(place, item))]


def _call_completed(state: State, thread_id: str, item: thread.ToolItem) -> Outputs:
    if isinstance(item, thread.SubAgentActivity) and item.kind not in SPAWNING:
        return ()
    place = state.place(thread_id, item.id)
    state.open.pop(item.id, None)
    state.commands.pop(item.id, None)
    _remember_agents(state, item, place.item_id)
    drafts = answered(place, item)
    if isinstance(item, thread.FileChange) and item.status == "completed":
        drafts += changed_files(place, item, state.spec.cwd)
    return [*drafts, *state.finished()]


def _remember_agents(state: State, item: thread.ToolItem, item_id: str) -> None:
    match item:
        case thread.CollabCall(tool="spawnAgent"):
            state.spawning = item_id
            for thread_id in item.receiver_thread_ids:
                state.adopt(thread_id, item_id)
        case thread.SubAgentActivity(kind="started"):
            state.adopt(item.agent_thread_id, item_id)
        case _:
            pass


def _thought(state: State, thread_id: str, item: thread.Reasoning) -> Outputs:
    text = "\n\n".join(item.summary or item.content)
    if not text and item.id not in state.thinking:
        return ()  # providers that keep their reasoning send empty ones
    state.thinking.discard(item.id)
    return [say.closed(message(state.place(thread_id, item.id), say.thought(text)), "completed")]


ItemHandler = Callable[[State, str, Any], Outputs]
STARTS: dict[type[thread.ThreadItem], ItemHandler] = {
    **dict.fromkeys(USES, _call_started),
    thread.AgentMessage: _message_started,
    thread.PlanText: _message_started,
    thread.UserMessage: _user_message,
}
"""Reasoning opens when it says something; our own messages and what clients or hooks hand in are not shown."""
ENDS: dict[type[thread.ThreadItem], ItemHandler] = {
    **dict.fromkeys(USES, _call_completed),
    thread.AgentMessage: _message_completed,
    thread.PlanText: _message_completed,
    thread.Reasoning: _thought,
    thread.Compaction: _compacted,
}


def _text(state: State, frame: frames.DeltaFrame) -> Outputs:
    return [say.grown(state.name("itm", frame.item_id), TextPart(text=frame.delta), frame.item_id)]


def _thinking(state: State, frame: frames.DeltaFrame) -> Outputs:
    delta = say.grown(state.name("itm", frame.item_id), say.thought(frame.delta), frame.item_id)
    if frame.item_id in state.thinking:
        return [delta]
    state.thinking.add(frame.item_id)
    return [say.opened(message(state.place(frame.thread_id, frame.item_id))), delta]


def _next_thought(state: State, frame: frames.SummaryPart) -> Outputs:
    if frame.item_id not in state.thinking:
        return ()
    return [say.grown(state.name("itm", frame.item_id), say.thought("\n\n"), frame.item_id)]


def _output(state: State, frame: frames.DeltaFrame) -> Outputs:
    return [say.printed(frame.delta, state.name("itm", frame.item_id))]


# Turns


def _turn_started(state: State, frame: frames.TurnFrame) -> Outputs:
    state.turns[frame.thread_id] = frame.turn.id
    return state.stop_turns() if state.is_interrupted else ()


def _turn_completed(state: State, frame: frames.TurnFrame) -> Outputs:
    known = state.turns.pop(frame.thread_id, None)
    if frame.thread_id != state.thread or known != frame.turn.id:
        return ()  # a sub-agent's
    match frame.turn.status:
        case "completed" | "inProgress":
            return _completed(state, frame.turn.id)
        case "interrupted":
            failed = TurnDone(outcome="failed", stop_reason="auth")
            stopped = TurnDone(outcome="interrupted", stop_reason="interrupted")
            return state.finish(failed if state.has_failed else stopped)
        case "failed":
            return [*_failure(state, frame.turn.error), TurnDone(outcome="failed", stop_reason="error")]
        case _:
            assert_never(frame.turn.status)


def _completed(state: State, turn_id: str) -> Outputs:
    plan, state.plan = state.plan, None
    if plan is None or not state.planning or state.is_interrupted:
        return [TurnDone(outcome="completed", stop_reason="end_turn")]
    ask = plan_approval(state.name("que", f"plan_{turn_id}"), state.thread, plan)
    state.asks[ask.ask_id] = ask
    return [ask.requested]


def _failure(state: State, error: frames.TurnError | None) -> Outputs:
    if state.has_failed:
        return ()  # reported already, when it happened
    reason = error or frames.TurnError(message="Codex failed without a reason.")
    return [Draft("error", error_of(reason, state.limits.values()))]


def _error(state: State, frame: frames.ErrorFrame) -> Outputs:
    if frame.will_retry and frame.thread_id == state.thread and (known := error_of(frame.error)).code == "auth":
        return _locked_out(state, known)  # what is refused once is refused again
    if frame.will_retry:
        return [say.notice(retry_of(frame.error), "retry")]
    if frame.thread_id != state.thread:
        return [say.notice(f"A sub-agent failed: {frame.error.message}", "subagent")]
    if state.has_failed:
        return ()
    state.has_failed = True
    return [Draft("error", error_of(frame.error, state.limits.values()))]


def _locked_out(state: State, error: ErrorData) -> Outputs:
    if state.has_failed:
        return ()
    state.has_failed = state.is_interrupted = True
    why = str((error.details or {}).get("more") or error.message)  # the message only says that it tries again
    return [Draft("error", msgspec.structs.replace(error, message=why)), *state.stop_turns()]


# The rest


def _steps(state: State, frame: frames.PlanFrame) -> Outputs:
    if frame.thread_id != state.thread:
        return ()
    statuses = {"inProgress": "in_progress"}
    return [say.plan(say.step(step.step, statuses.get(step.status, step.status)) for step in frame.plan)]


def _usage(state: State, frame: frames.UsageFrame) -> Outputs:
    usage = frame.token_usage
    state.totals[frame.thread_id] = usage.total
    if state.thread not in state.turns:
        return ()  # a resumed thread tells what it used before
    context = usage if frame.thread_id == state.thread else None
    data = UsageUpdatedData(
        input_tokens=_spent(state, "input_tokens"),
        output_tokens=_spent(state, "output_tokens"),
        cached_input_tokens=_spent(state, "cached_input_tokens"),
        reasoning_tokens=_spent(state, "reasoning_output_tokens"),
        context_used=context.last.total_tokens if context else None,
        context_window=context.model_context_window if context else None,
    )
    return [Draft("usage.updated", data)]


def _spent(state: State, field: str) -> int:
    """Tokens of all threads since the prompt."""
    nothing = frames.Tokens()
    return sum(
        getattr(total, field) - getattr(state.base.get(at, nothing), field) for at, total in state.totals.items()
    )


def _named(state: State, frame: frames.NameFrame) -> Outputs:
    if frame.thread_id != state.thread or not frame.thread_name:
        return ()
    return [Draft("session.info", SessionInfoData(title=frame.thread_name))]


def _rerouted(_: State, frame: frames.ReroutedFrame) -> Outputs:
    return [say.notice(f"{frame.to_model} answers instead of {frame.from_model}.", "model_rerouted")]


def _warned(_: State, frame: thread.Message) -> Outputs:
    return [say.notice(frame.message, "agent")]


def _misconfigured(_: State, frame: frames.ConfigWarning) -> Outputs:
    if "bubblewrap" in frame.summary:
        return ()  # about a sandbox that we never use
    return [say.notice(frame.summary, "config")]


def _mcp_status(_: State, frame: frames.McpStatus) -> Outputs:
    if frame.status != "failed":
        return ()
    return [say.notice(f"The MCP server '{frame.name}' did not start: {frame.error or 'no reason given'}", "mcp")]


def _limits(state: State, frame: frames.RateLimitsFrame) -> Outputs:
    """Remember what is reached, for the error that follows; absent limits did not change."""
    for name in ("primary", "secondary"):
        window: frames.LimitWindow | None = getattr(frame.rate_limits, name)
        if window is not None:
            state.limits.pop(name, None)
            if window.used_percent >= _ALL and window.resets_at is not None:
                state.limits[name] = window.resets_at
    return ()


def _resolved(state: State, frame: frames.Resolved) -> Outputs:
    """Answered asks are forgotten when they are answered, so one that is left was taken back."""
    left = [ask for ask in state.asks.values() if ask.request_id == frame.request_id]
    for ask in left:
        del state.asks[ask.ask_id]
    return [ask.withdrawn for ask in left]


class Notification(msgspec.Struct, frozen=True):
    """How a kind of notification is read, and what is done with it."""

    decoder: msgspec.json.Decoder[Any]
    handle: Callable[[State, Any], Outputs]


def _on(kind: type[thread.Frame], handle: Callable[[State, Any], Outputs]) -> Notification:
    return Notification(msgspec.json.Decoder(kind), handle)


NOTIFICATIONS = {
    "error": _on(frames.ErrorFrame, _error),
    "item/started": _on(frames.ItemFrame, _item_started),
    "item/completed": _on(frames.ItemFrame, _item_completed),
    "item/agentMessage/delta": _on(frames.DeltaFrame, _text),
    "item/plan/delta": _on(frames.DeltaFrame, _text),
    "item/reasoning/summaryTextDelta": _on(frames.DeltaFrame, _thinking),
    "item/reasoning/textDelta": _on(frames.DeltaFrame, _thinking),
    "item/reasoning/summaryPartAdded": _on(frames.SummaryPart, _next_thought),
    "item/commandExecution/outputDelta": _on(frames.DeltaFrame, _output),
    "turn/started": _on(frames.TurnFrame, _turn_started),
    "turn/completed": _on(frames.TurnFrame, _turn_completed),
    "turn/plan/updated": _on(frames.PlanFrame, _steps),
    "thread/tokenUsage/updated": _on(frames.UsageFrame, _usage),
    "thread/name/updated": _on(frames.NameFrame, _named),
    "model/rerouted": _on(frames.ReroutedFrame, _rerouted),
    "warning": _on(thread.Message, _warned),
    "guardianWarning": _on(thread.Message, _warned),
    "configWarning": _on(frames.ConfigWarning, _misconfigured),
    "mcpServer/startupStatus/updated": _on(frames.McpStatus, _mcp_status),
    "account/rateLimits/updated": _on(frames.RateLimitsFrame, _limits),
    "serverRequest/resolved": _on(frames.Resolved, _resolved),
}

_OWN = "the state of Codex's own clients"
_ELSEWHERE = "reported by other notifications"
_UNUSED = "of a function we do not use"
IGNORED = {
    "account/gatewayOAuth/changed": _UNUSED,
    "account/login/completed": _UNUSED,
    "account/updated": _OWN,
    "app/list/updated": _OWN,
    "autoApprovalReview/strictReviewRequired": _UNUSED,
    "command/exec/outputDelta": _UNUSED,
    "deprecationNotice": "for authors of clients",
    "fs/changed": _UNUSED,
    "hook/completed": "hooks are the workspace's own affair",
    "hook/started": "hooks are the workspace's own affair",
    "item/autoApprovalReview/completed": _UNUSED,
    "item/autoApprovalReview/started": _UNUSED,
    "item/commandExecution/terminalInteraction": "what the agent types; its output is reported",
    "item/fileChange/outputDelta": "deprecated",
    "item/fileChange/patchUpdated": "the item has the final patch",
    "item/mcpToolCall/progress": "the item has the result",
    "mcpServer/oauthLogin/completed": _UNUSED,
    "model/safetyBuffering/updated": _OWN,
    "model/verification": _OWN,
    "modelProvider/authRecoveryCompleted": "errors are reported",
    "modelProvider/authRecoveryStarted": "errors are reported",
    "project/changed": _OWN,
    "remoteControl/status/changed": _OWN,
    "skills/changed": _OWN,
    "thread/archived": _OWN,
    "thread/attachment/updated": _OWN,
    "thread/closed": _ELSEWHERE,
    "thread/compacted": "deprecated; an item tells it",
    "thread/deleted": _OWN,
    "thread/environment/connected": _OWN,
    "thread/environment/disconnected": _OWN,
    "thread/goal/cleared": _UNUSED,
    "thread/goal/updated": _UNUSED,
    "thread/prediction/updated": _UNUSED,
    "thread/project/updated": _OWN,
    "thread/queue/changed": "prompts wait in our own queue",
    "thread/readState/changed": _OWN,
    "thread/reverted": _UNUSED,
    "thread/settings/updated": "we set them",
    "thread/started": "the response tells it",
    "thread/status/changed": "turns tell it",
    "thread/unarchived": _OWN,
    "turn/diff/updated": "each item tells its changes",
    "turn/moderationMetadata": _OWN,
}


def on_notification(state: State, method: str, params: msgspec.Raw) -> Outputs:
    """What follows from a notification; Unreadable if nobody expected it."""
    found = NOTIFICATIONS.get(method)
    if found is not None:
        return found.handle(state, say.read(params, found.decoder))
    if method in IGNORED:
        return ()
    raise Unreadable(f"Codex sent '{method}', which is unknown", "$.method")
