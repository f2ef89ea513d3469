"""What Copilot waits for: permissions, questions and plan approvals."""

from typing import Any, Literal

import msgspec

from ostler.agents.asks import Waiting, approves, asked, permission_asked, plan_asked, wishes
from ostler.agents.copilot import frames
from ostler.wire.events import Question, QuestionData, QuestionOption
from ostler.wire.parts import ToolCallPart
from ostler.wire.running import Draft, PermissionAnswer, QuestionAnswer

_DECLINED = "The user declined to answer."
_REJECTED = "The user rejected this."


class Ask(Waiting, frozen=True, kw_only=True):
    """Something that waits for a human."""

    kind: Literal["permission", "question", "plan"]
    native: str | int
    """Copilot's id of it."""


def permission(ask_id: str, asked: frames.PermissionRequested, call: ToolCallPart | None, item_id: str | None) -> Ask:
    """May it do this, once?"""
    wanted = asked.permission_request
    arguments = call.arguments if call is not None else bytes(wanted.args).decode()
    metadata: dict[str, Any] = {"input": msgspec.json.decode(arguments), "always": _pattern(wanted)}
    if wanted.diff:
        metadata["diff"] = wanted.diff.lstrip("\n")
    if wanted.intention:
        metadata["explanation"] = wanted.intention
    tool = call.name if call is not None else wanted.tool_name or wanted.kind
    subject = _subject(wanted)
    data = permission_asked(ask_id, tool if subject is None else f"{tool}: {subject}", tool, item_id, metadata)
    return Ask(kind="permission", native=asked.request_id, data=data)


def _subject(wanted: frames.PermissionRequest) -> str | None:
    return wanted.full_command_text or wanted.file_name or wanted.path or wanted.url or wanted.fact


def _pattern(wanted: frames.PermissionRequest) -> str:
    """What "always" would cover: the commands as Copilot itself would remember them, or one file, address or tool."""
    if wanted.commands:
        return f"{wanted.kind}({', '.join(command.identifier for command in wanted.commands)})"
    if wanted.server_name:
        return f"{wanted.server_name}({wanted.tool_name})"
    subject = _subject(wanted) or wanted.tool_name
    return wanted.kind if subject is None else f"{wanted.kind}({subject})"


def question(ask_id: str, native: str | int, request: frames.UserInputRequest, item_id: str | None) -> Ask:
    """The model's question; it has one at a time."""
    one = Question(
        question=request.question,
        options=tuple(QuestionOption(label=choice) for choice in request.choices or ()),
        multi_select=False,
        free_text=request.allow_freeform is not False,
    )
    return Ask(kind="question", native=native, data=asked(ask_id, (one,), item_id))


def plan_approval(ask_id: str, native: str | int, request: frames.ExitPlanRequest, item_id: str | None) -> Ask:
    """May it leave plan mode?"""
    plan = request.plan_content or request.summary
    return Ask(kind="plan", native=native, data=plan_asked(ask_id, plan, item_id))


def settled(ask: Ask, *, allowed: bool) -> Draft:
    """Copilot decided a permission without us."""
    metadata = {**(ask.data.metadata or {}), "reason": "withdrawn"}
    status = "accept" if allowed else "reject"
    return Draft("permission.resolved", msgspec.structs.replace(ask.data, status=status, metadata=metadata))


def decision(answer: PermissionAnswer) -> dict[str, Any]:
    """A permission's answer as Copilot reads it; never more than once."""
    return {"kind": "approve-once"} if answer.allow else {"kind": "reject", "feedback": answer.message or _REJECTED}


def reply(ask: Ask, answer: QuestionAnswer) -> dict[str, Any]:
    """The answer to a question or a plan as Copilot reads it."""
    if ask.kind == "plan":
        return _plan_reply(answer)
    if answer.answers is None:
        words = _DECLINED if answer.message is None else f"{_DECLINED} {answer.message}"
        return {"answer": words, "wasFreeform": True}
    chosen = [text for picked in answer.answers for text in picked]
    options = ask.data.options if isinstance(ask.data, QuestionData) else ()
    return {"answer": ", ".join(chosen), "wasFreeform": any(text not in options for text in chosen)}


def _plan_reply(answer: QuestionAnswer) -> dict[str, Any]:
    """Anything but an approval is a wish for another plan."""
    if approves(answer):
        return {"approved": True, "selectedAction": "interactive"}
    return {"approved": False, "feedback": "\n".join(wishes(answer)) or _REJECTED}
