"""Asks as interrupts, and what a client resumes with as answers."""

from collections.abc import Container
from typing import Any

import msgspec

from ostler.server.sessions.answers import check_answers
from ostler.wire.events import PermissionData, QuestionData
from ostler.wire.sessions import Ask, PermissionReply

Json = dict[str, Any]
_APPROVAL: Json = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "always": {"type": "boolean", "description": "Allow this for the rest of the session."},
        "message": {"type": "string", "description": "Why not; the agent hears it."},
    },
    "required": ["approved"],
}
_ANSWERS: Json = {
    "type": "object",
    "properties": {
        "answers": {
            "type": "array",
            "description": "For each question the chosen labels, or free text.",
            "items": {"type": "array", "items": {"type": "string"}},
        }
    },
    "required": ["answers"],
}


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a permission."""

    approved: bool
    always: bool = False
    message: str | None = None

    @property
    def reply(self) -> PermissionReply:
        """The decision in our words."""
        if not self.approved:
            return "reject"
        return "always" if self.always else "once"


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to questions; None declines."""

    answers: tuple[tuple[str, ...], ...] | None


def interrupt_of(asked: PermissionData | QuestionData, *, known_calls: Container[str]) -> Json:
    """What a client is told about an ask."""
    call = {"toolCallId": asked.item_id} if asked.item_id is not None and asked.item_id in known_calls else {}
    if isinstance(asked, PermissionData):
        reason = "tool_call" if call else "confirmation"
        named = {"tool": asked.tool} if asked.tool else {}
        fields = {"id": asked.permission_id, "reason": reason, "message": asked.action, **call}
        return {**fields, "responseSchema": _APPROVAL, "metadata": {"kind": "permission", **named}}
    questions = msgspec.to_builtins(asked.questions)
    fields = {"id": asked.question_id, "reason": "input_required", "message": asked.prompt, **call}
    metadata = {"kind": "question", "options": list(asked.options), "questions": questions}
    return {**fields, "responseSchema": _ANSWERS, "metadata": metadata}


def answer_of(ask: Ask, status: str, payload: Any) -> Approval | Answers:
    """What a client resumed with; raises ValueError or Unprocessable if it is no answer to this ask."""
    if ask.kind == "permission":
        return Approval(approved=False) if status == "cancelled" else _approval(payload)
    if status == "cancelled":
        return Answers(answers=None)
    given = {"answers": [[payload]]} if isinstance(payload, str) else payload
    answers = msgspec.convert(given, Answers)
    if answers.answers is not None and ask.question is not None:
        check_answers(ask.question, answers.answers)
    return answers


def _approval(payload: Any) -> Approval:
    return msgspec.convert({"approved": payload} if isinstance(payload, bool) else payload, Approval)
