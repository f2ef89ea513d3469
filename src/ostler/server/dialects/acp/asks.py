"""Asks as requests to the client: a permission, a form, or one choice after the other."""

from typing import Any

import msgspec

from ostler.server.dialects.acp.blocks import Json
from ostler.server.dialects.acp.messages import ElicitationResult, PermissionResult
from ostler.server.sessions.answers import questions_of
from ostler.wire.events import PermissionData, Question, QuestionData
from ostler.wire.sessions import PermissionReply

_REPLIES: dict[str, PermissionReply] = {"allow_once": "once", "allow_always": "always", "reject_once": "reject"}
_NAMES = {"allow_once": "Allow", "allow_always": "Allow for this session", "reject_once": "Reject"}
_DECLINE = "decline"


class Declined(Exception):
    """The person does not want to answer."""


class Withdrawn(Exception):
    """The client gave the request up without a decision."""


def permission_params(session_id: str, asked: PermissionData, call_id: str) -> Json:
    """May the agent do this?"""
    options = [{"optionId": kind, "name": name, "kind": kind} for kind, name in _NAMES.items()]
    call: Json = {"toolCallId": call_id, "title": asked.action, "status": "pending"}
    return {"sessionId": session_id, "toolCall": call, "options": options}


def permission_reply(result: Any) -> PermissionReply:
    """What was decided."""
    option = _chosen(result)
    return _REPLIES.get(option, "reject")


def _chosen(result: Any) -> str:
    try:
        outcome = msgspec.convert(result, PermissionResult).outcome
    except msgspec.ValidationError:
        raise Withdrawn from None
    if outcome.outcome != "selected" or outcome.option_id is None:
        raise Withdrawn
    return outcome.option_id


def can_be_chosen(asked: QuestionData) -> bool:
    """Whether every question has options, so that a client without forms can show them one after the other."""
    return all(question.options for question in questions_of(asked))


def choice_params(session_id: str, asked: QuestionData, index: int) -> Json:
    """One question as a list of choices."""
    question = questions_of(asked)[index]
    options = [
        {"optionId": str(number), "name": option.label, "kind": "allow_once"}
        for number, option in enumerate(question.options)
    ]
    call: Json = {"toolCallId": f"{asked.question_id}_{index}", "title": question.question, "status": "pending"}
    decline = {"optionId": _DECLINE, "name": "Do not answer", "kind": "reject_once"}
    return {"sessionId": session_id, "toolCall": call, "options": [*options, decline]}


def choice_answer(asked: QuestionData, index: int, result: Any) -> tuple[str, ...]:
    """The label that was chosen."""
    chosen, options = _chosen(result), questions_of(asked)[index].options
    if not chosen.isdecimal() or int(chosen) >= len(options):
        raise Declined
    return (options[int(chosen)].label,)


def form_params(session_id: str, asked: QuestionData) -> Json:
    """All questions as one form."""
    questions = questions_of(asked)
    fields = {f"q{index}": _field(question) for index, question in enumerate(questions)}
    schema: Json = {"type": "object", "properties": fields, "required": list(fields)}
    return {"sessionId": session_id, "mode": "form", "message": asked.prompt, "requestedSchema": schema}


def _field(question: Question) -> Json:
    labels = [option.label for option in question.options]
    field: Json = {"title": question.header or question.question, "description": question.question}
    if question.multi_select and labels:
        return {**field, "type": "array", "items": {"type": "string", "enum": labels}}
    if labels and not question.free_text:
        return {**field, "type": "string", "enum": labels}
    hint = f" ({' / '.join(labels)})" if labels else ""
    return {**field, "type": "string", "description": question.question + hint}


def form_answers(asked: QuestionData, result: Any) -> tuple[tuple[str, ...], ...]:
    """What was filled in."""
    try:
        filled = msgspec.convert(result, ElicitationResult)
    except msgspec.ValidationError:
        raise Withdrawn from None
    if filled.action != "accept":
        raise Declined if filled.action == "decline" else Withdrawn
    values = filled.content or {}
    return tuple(_texts(values.get(f"q{index}")) for index in range(len(questions_of(asked))))


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
