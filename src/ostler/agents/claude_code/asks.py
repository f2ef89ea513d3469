"""What Claude Code waits for: permissions, questions and plan approvals; all arrive as "may this tool run?"."""

from typing import Any, Literal

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Send
from ostler.agents.asks import Waiting, approves, asked, permission_asked, plan_asked, wishes
from ostler.agents.claude_code.frames import AskInput, CanUseTool, PlanInput
from ostler.wire.events import Question, QuestionData, QuestionOption
from ostler.wire.running import PermissionAnswer, QuestionAnswer

_DECLINED = "The user declined to answer."
_REJECTED = "The user rejected this."
_KEEP_PLANNING = "The user rejected the plan. Stay in plan mode and revise it."


class Ask(Waiting, frozen=True, kw_only=True):
    """Something that waits for a human."""

    kind: Literal["permission", "question", "plan"]
    request_id: str
    input: msgspec.Raw


def permission(ask_id: str, item_id: str, request_id: str, wanted: CanUseTool) -> Ask:
    """May this tool run, once?"""
    arguments = msgspec.json.decode(wanted.input)
    metadata = {"input": arguments, "always": _pattern(wanted, arguments)}
    if diff := _proposed(arguments):
        metadata["diff"] = diff
    if wanted.decision_reason:
        metadata["explanation"] = wanted.decision_reason
    action = _action(wanted.tool_name, arguments)
    data = permission_asked(ask_id, action, wanted.tool_name, item_id, metadata)
    return Ask(kind="permission", request_id=request_id, input=wanted.input, data=data)


def question(ask_id: str, item_id: str, request_id: str, wanted: CanUseTool) -> Ask:
    """The model's questions; a person may always answer in their own words."""
    questions = tuple(
        Question(
            question=one.question,
            options=tuple(QuestionOption(label=option.label, description=option.description) for option in one.options),
            multi_select=one.multi_select,
            free_text=True,
            header=one.header,
        )
        for one in say.read(wanted.input, AskInput).questions
    )
    return Ask(kind="question", request_id=request_id, input=wanted.input, data=asked(ask_id, questions, item_id))


def plan_approval(ask_id: str, item_id: str, request_id: str, wanted: CanUseTool, shown: str) -> Ask:
    """May it leave plan mode? `shown` is what it said, for a plan that was never written down."""
    plan = msgspec.json.decode(wanted.input, type=PlanInput).plan or shown
    return Ask(kind="plan", request_id=request_id, input=wanted.input, data=plan_asked(ask_id, plan, item_id))


def reply(ask: Ask, answer: PermissionAnswer | QuestionAnswer) -> Send:
    """The frame that tells Claude Code the decision."""
    if isinstance(answer, PermissionAnswer):
        return allow(ask.request_id, ask.input) if answer.allow else _deny(ask, answer.message or _REJECTED)
    if ask.kind == "plan":
        return _plan_reply(ask, answer)
    if answer.answers is None or not isinstance(ask.data, QuestionData):
        return _deny(ask, answer.message or _DECLINED)
    texts = [one.question for one in ask.data.questions]
    chosen = {text: ", ".join(picked) for text, picked in zip(texts, answer.answers, strict=False)}
    return allow(ask.request_id, {**msgspec.json.decode(ask.input), "answers": chosen})


def _plan_reply(ask: Ask, answer: QuestionAnswer) -> Send:
    """Anything but an approval is a wish for another plan."""
    if approves(answer):
        return allow(ask.request_id, ask.input)
    return _deny(ask, "\n".join([_KEEP_PLANNING, *wishes(answer)]))


def allow(request_id: str, arguments: Any) -> Send:
    """Yes, this once."""
    return respond(request_id, {"behavior": "allow", "updatedInput": arguments})


def _deny(ask: Ask, message: str) -> Send:
    return respond(ask.request_id, {"behavior": "deny", "message": message})


def respond(request_id: str, response: Any) -> Send:
    """The answer to a request of Claude Code."""
    outcome = {"subtype": "success", "request_id": request_id, "response": response}
    return Send(msgspec.json.encode({"type": "control_response", "response": outcome}))


def refuse(request_id: str, error: str) -> Send:
    """We cannot do what Claude Code wants."""
    outcome = {"subtype": "error", "request_id": request_id, "error": error}
    return Send(msgspec.json.encode({"type": "control_response", "response": outcome}))


def _action(tool: str, arguments: dict[str, Any]) -> str:
    subject = next((arguments[name] for name in ("command", "file_path", "url", "query") if name in arguments), None)
    return tool if subject is None else f"{tool}: {subject}"


def _pattern(wanted: CanUseTool, arguments: dict[str, Any]) -> str:
    """What "always" would cover: Claude Code's own proposal, or for a command only this very one."""
    rules = [str(rule) for one in wanted.permission_suggestions or () if one.type == "addRules" for rule in one.rules]
    if rules:
        return ", ".join(rules)
    command = arguments.get("command")
    return wanted.tool_name if command is None else f"{wanted.tool_name}({command})"


def _proposed(arguments: dict[str, Any]) -> str | None:
    """The change that an edit would make, as far as its arguments tell."""
    path, old, new = (arguments.get(name) for name in ("file_path", "old_string", "new_string"))
    if not (isinstance(path, str) and isinstance(old, str) and isinstance(new, str)):
        return None
    return say.diff_of(path, old, new)
