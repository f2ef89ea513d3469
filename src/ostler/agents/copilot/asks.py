"""What Copilot waits for: permissions, questions and plan approvals."""

from typing import Any, Literal

import msgspec

from ostler.agents.copilot import frames
from ostler.wire.events import PermissionData, Question, QuestionData, QuestionOption
from ostler.wire.parts import ToolCallPart
from ostler.wire.running import Draft, PermissionAnswer, QuestionAnswer

APPROVE, REJECT = "Approve", "Reject"
_PLAN_PROMPT = "Go on with this plan?"
_DECLINED = "The user declined to answer."
_REJECTED = "The user rejected this."


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a human."""

    kind: Literal["permission", "question", "plan"]
    native: str | int
    """Copilot's id of it."""
    data: PermissionData | QuestionData

    @property
    def ask_id(self) -> str:
        """Ours."""
        return self.data.permission_id if isinstance(self.data, PermissionData) else self.data.question_id

    @property
    def requested(self) -> Draft:
        """It is asked."""
        return Draft("permission.requested" if self.kind == "permission" else "question.requested", self.data)


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
    data = PermissionData(
        permission_id=ask_id,
        action=tool if subject is None else f"{tool}: {subject}",
        status="requested",
        tool=tool,
        item_id=item_id,
        metadata=metadata,
    )
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


def question(ask_id: str, native: str | int, asked: frames.UserInputRequest, item_id: str | None) -> Ask:
    """The model's question; it has one at a time."""
    choices = asked.choices or ()
    one = Question(
        question=asked.question,
        options=tuple(QuestionOption(label=choice) for choice in choices),
        multi_select=False,
        free_text=asked.allow_freeform is not False,
    )
    data = QuestionData(
        question_id=ask_id,
        prompt=asked.question,
        options=choices,
        status="requested",
        questions=(one,),
        item_id=item_id,
    )
    return Ask(kind="question", native=native, data=data)


def plan_approval(ask_id: str, native: str | int, asked: frames.ExitPlanRequest, item_id: str | None) -> Ask:
    """May it leave plan mode?"""
    plan = asked.plan_content or asked.summary
    prompt = f"{_PLAN_PROMPT}\n\n{plan}" if plan else _PLAN_PROMPT
    options = (
        QuestionOption(label=APPROVE, description="Leave plan mode and do it."),
        QuestionOption(label=REJECT, description="Keep planning; say what to change."),
    )
    data = QuestionData(
        question_id=ask_id,
        prompt=prompt,
        options=(APPROVE, REJECT),
        status="requested",
        questions=(Question(question=prompt, options=options, multi_select=False, free_text=True, header="Plan"),),
        item_id=item_id,
        metadata={"kind": "plan", "plan": plan},
    )
    return Ask(kind="plan", native=native, data=data)


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
    chosen = [text for picked in answer.answers or () for text in picked]
    if ask.kind == "plan":
        return _plan_reply(chosen, answer.message)
    if answer.answers is None:
        words = _DECLINED if answer.message is None else f"{_DECLINED} {answer.message}"
        return {"answer": words, "wasFreeform": True}
    options = ask.data.options if isinstance(ask.data, QuestionData) else ()
    return {"answer": ", ".join(chosen), "wasFreeform": any(text not in options for text in chosen)}


def _plan_reply(chosen: list[str], message: str | None) -> dict[str, Any]:
    """Anything but an approval is a wish for another plan."""
    if chosen == [APPROVE]:
        return {"approved": True, "selectedAction": "interactive"}
    wishes = [text for text in (*chosen, message) if text and text != REJECT]
    return {"approved": False, "feedback": "\n".join(wishes) or _REJECTED}
