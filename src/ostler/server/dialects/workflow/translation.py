"""Executions and sessions: the same thing in two languages."""

import re
from typing import Any

import msgspec

from ostler.base.context import unwrapped
from ostler.base.errors import InvalidRequest, Unprocessable
from ostler.server.dialects.workflow.bodies import (
    CreateExecution,
    Execution,
    ExecutionInput,
    ExecutionStatus,
    ModelChoice,
)
from ostler.server.dialects.workflow.status import execution_status
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.settings import settings_shown
from ostler.server.store.records import SessionRecord
from ostler.wire.agents import Agent, Limit
from ostler.wire.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.sessions import CreateSession, Message, SendMessage, TurnLimits

ORG_LABEL = "org"
STATE_KEYS = ("messages", "status", "currentTurn")
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Json = dict[str, Any]


def refused(field: str, reason: str) -> InvalidRequest:
    """Something in the request cannot be."""
    return InvalidRequest(reason=f"{field}: {reason}.", errors={field: [reason]})


def checked_org(org: str) -> str:
    """The name of an organisation, if it can be one."""
    if not _SLUG.fullmatch(org):
        raise refused("org", f"'{org[:80]}' is not a name of letters, digits, dots and dashes")
    return org


def org_of(labels: dict[str, str], tenant: str) -> str:
    """Whose an execution is: its tenant's, unless it was begun for another name."""
    return labels.get(ORG_LABEL, tenant)


def create_session(org: str, wanted: CreateExecution, agent: Agent, hint: str = "", *, own: str) -> CreateSession:
    """The session for an execution of an organisation, or of the tenant's `own`; `hint` is what helps who named no
    agent and is refused something."""
    task = wanted.input
    if not task.user_prompt.strip():
        raise refused("input.userPrompt", "must not be empty")
    refuse_without_effect(task, agent, hint)
    return CreateSession(
        agent=agent.id,
        model=_model(task.model, agent),
        instructions=task.system_prompt or None,
        variant=task.config.thinking,
        permission_mode=task.config.permission_mode,
        limits=TurnLimits(
            max_turns=task.config.max_turns,
            max_tokens=task.config.max_tokens,
        ),
        temperature=task.config.temperature,
        tools=task.tools or None,
        cwd=task.working_directory,
        labels={} if org == own else {ORG_LABEL: org},
    )


def _model(wanted: ModelChoice | None, agent: Agent) -> str | None:
    if wanted is None:
        return None
    prefix = f"{wanted.provider}/"
    is_named = any(model.id.startswith(prefix) for model in agent.models)
    return f"{prefix}{wanted.model_id}" if is_named else wanted.model_id


def ignored_provider(wanted: ModelChoice | None, agent: Agent) -> str | None:
    """The provider of a model, if the agent does not name its models by provider."""
    return wanted.provider if wanted is not None and _model(wanted, agent) == wanted.model_id else None


def refuse_without_effect(task: ExecutionInput, agent: Agent, hint: str) -> None:
    """Raise for everything that was asked for and the agent does not declare that it obeys, by the client's names."""
    config, errors = task.config, dict[str, list[str]]()
    limits: dict[Limit, float | None] = {
        "maxTurns": config.max_turns,
        "maxTokens": config.max_tokens,
        "temperature": config.temperature,
    }
    for name, value in limits.items():
        if value is not None and name not in agent.limits:
            errors[f"input.config.{name}"] = [f"has no effect on agent '{agent.id}'"]
    if unknown := [name[:50] for name in task.tools if name not in agent.tools]:
        known = f"has {', '.join(agent.tools)}" if agent.tools else "decides itself which tools it has"
        errors["input.tools"] = [f"{', '.join(map(repr, unknown))} cannot be chosen: agent '{agent.id}' {known}"]
    if config.thinking is not None and config.thinking not in (offered := _variants(agent)):
        efforts = ", ".join(sorted(offered)) or "none"
        errors["input.config.thinking"] = [
            f"'{config.thinking[:50]}' is not one that agent '{agent.id}' has ({efforts})"
        ]
    if errors:
        reasons = "; ".join(f"{field}: {reasons[0]}" for field, reasons in errors.items())
        raise Unprocessable(reason=f"{reasons}. {hint or 'Leave it out, or choose another agent.'}", errors=errors)


def _variants(agent: Agent) -> set[str]:
    return {variant for model in agent.models for variant in model.variants}


def first_prompt(wanted: CreateExecution) -> SendMessage:
    """What the agent hears first."""
    return SendMessage(message=wanted.input.user_prompt)


def status_of(state: SessionState, *, is_ending: bool = False) -> ExecutionStatus:
    """Where an execution stands; one that is being ended does not wait for anybody."""
    if is_ending and not state.ended:
        return "CANCELLED"
    begun, works = state.turn_count > 0, state.turn is not None
    return execution_status(state.status, has_begun=begun, works=works, asks=bool(state.asks))


def execution_view(
    record: SessionRecord, state: SessionState, updated_at: str, *, org: str, is_ending: bool
) -> Execution:
    """A session as an execution."""
    return Execution(
        id=record.id,
        kind="agent",
        status=status_of(state, is_ending=is_ending),
        org=org,
        agent=record.agent,
        created_at=record.created_at,
        updated_at=updated_at,
        current_turn=state.turn_count,
        title=state.title,
        model=settings_shown(record, state).model,
        working_directory=record.cwd,
        completed_at=state.ended_at,
        error=state.error,
    )


def history(messages: list[Message]) -> list[Json]:
    """The conversation as the state `messages` holds it."""
    shown = ({"role": _role(message), "content": _content(message)} for message in messages)
    return [found for found in shown if found["role"] and found["content"]]


def _role(message: Message) -> str | None:
    match message.item.kind:
        case "message":
            return "user" if message.item.role == "user" else "assistant"
        case "tool_call":
            return "assistant"
        case "tool_result":
            return "tool"
        case _:
            return None


def _content(message: Message) -> list[Json]:
    found = (_piece(message, part) for part in message.item.content)
    return [piece for piece in found if piece is not None]


def _piece(message: Message, part: Any) -> Json | None:
    match part:
        case TextPart(text=text) if unwrapped(text) is None:
            return {"type": "text", "text": text}
        case ReasoningPart(text=text):
            return {"type": "thinking", "thinking": text}
        case ToolCallPart():
            return {"type": "toolCall", "id": message.item.item_id, "name": part.name, "arguments": _decoded(part)}
        case ToolResultPart():
            error = message.item.status == "failed"
            call = message.item.parent_id or part.call_id
            return {"type": "toolResult", "id": call, "content": part.output, "isError": error}
        case _:
            return None


def _decoded(part: ToolCallPart) -> Any:
    try:
        return msgspec.json.decode(part.arguments)
    except msgspec.DecodeError:
        return part.arguments
