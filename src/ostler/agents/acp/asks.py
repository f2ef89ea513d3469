"""What an ACP agent asks of a person: permissions, plans, questions and forms, and how each is answered on the wire."""

from typing import Any, Literal, assert_never

import msgspec

from ostler.agents.acp.frames import Elicitation, PermissionOption, RequestPermission
from ostler.agents.acp.tools import Call, diff_text
from ostler.agents.adapter import Unreadable
from ostler.agents.asks import APPROVE, REJECT, Waiting, asked, permission_asked, plan_asked
from ostler.wire.events import Question, QuestionOption
from ostler.wire.running import Answer, PermissionAnswer, QuestionAnswer

PLAN_TOOLS = frozenset({"exit_plan_mode", "ExitPlanMode"})
_CUSTOM = "_custom"
_SUBJECTS = ("command", "file_path", "path", "url", "query")
_YES, _NO = "Yes", "No"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One property of a form and the question it became."""

    name: str
    type: str
    labels: dict[str, Any] = msgspec.field(default_factory=dict)
    """What a person picks -> what the form wants."""
    custom: str | None = None
    """The property that takes an answer in the person's own words."""


class Ask(Waiting, frozen=True, kw_only=True):
    """An open ask: the request to answer, and what was shown to people."""

    kind: Literal["permission", "plan", "answers", "form", "page"]
    request_id: int | str
    options: tuple[PermissionOption, ...] = ()
    fields: tuple[Field, ...] = ()


# From the wire


def is_plan(call: Call) -> bool:
    """Whether a permission request is really about leaving plan mode."""
    return call.kind == "switch_mode" or call.name in PLAN_TOOLS


def permission(number: str, call: Call, request: RequestPermission, request_id: int | str) -> Ask:
    """May this go on, once?"""
    arguments = msgspec.json.decode(call.arguments)
    command = arguments.get("command") if isinstance(arguments, dict) else None
    metadata = {"input": arguments, "always": call.tool if command is None else f"{call.tool}({command})"}
    if call.diffs:
        metadata["diff"] = "".join(map(diff_text, call.diffs))
    data = permission_asked(f"per_{number}", _action(call, arguments), call.tool, call.item_id, metadata)
    return Ask(kind="permission", request_id=request_id, data=data, options=request.options)


def plan(number: str, call: Call, request: RequestPermission, request_id: int | str) -> Ask:
    """May the agent carry out its plan?"""
    arguments = msgspec.json.decode(call.arguments)
    stated = arguments.get("plan") if isinstance(arguments, dict) else None
    text = stated or call.text or call.title
    data = plan_asked(f"que_{number}", text, call.item_id)
    return Ask(kind="plan", request_id=request_id, data=data, options=request.options)


def answers_wanted(request: RequestPermission) -> list[dict[str, Any]] | None:
    """The questions inside a permission request, an extension of Qwen Code."""
    meta = request.tool_call.meta or {}
    if meta.get("qwenInteractionKind") != "user_question":
        return None
    found = meta.get("qwenQuestions")
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise Unreadable("A question ask without questions", "$.params.toolCall._meta.qwenQuestions")
    return found


def questions(
    number: str, call: Call, request: RequestPermission, request_id: int | str, wanted: list[dict[str, Any]]
) -> Ask:
    """The model's questions; a person may always answer in their own words."""
    shown = tuple(
        Question(
            question=str(one.get("question", "")),
            options=tuple(
                QuestionOption(label=str(option.get("label", "")), description=option.get("description"))
                for option in one.get("options") or ()
            ),
            multi_select=bool(one.get("multiSelect")),
            free_text=True,
            header=one.get("header"),
        )
        for one in wanted
    )
    data = asked(f"que_{number}", shown, call.item_id, {"kind": "questions"})
    return Ask(kind="answers", request_id=request_id, data=data, options=request.options)


def elicitation(number: str, item_id: str | None, request: Elicitation, request_id: int | str) -> Ask:
    """A form, or a page that the person should visit."""
    if request.mode == "url":
        page = Question(
            question=f"{request.message}\n{request.url or ''}",
            options=(QuestionOption(label="Done"),),
            multi_select=False,
            free_text=False,
        )
        data = asked(f"que_{number}", (page,), item_id, {"kind": "page", "url": request.url})
        return Ask(kind="page", request_id=request_id, data=data)
    properties = (request.requested_schema or {}).get("properties")
    if not isinstance(properties, dict) or not properties:
        raise Unreadable("A form without fields", "$.params.requestedSchema.properties")
    wanted = {name: spec for name, spec in properties.items() if not _is_custom(name, properties)}
    fields = tuple(_field(name, spec, properties) for name, spec in wanted.items())
    shown = tuple(
        _form_question(field, properties[field.name], request.message, alone=len(fields) == 1) for field in fields
    )
    data = asked(f"que_{number}", shown, item_id, {"kind": "form"})
    return Ask(kind="form", request_id=request_id, data=data, fields=fields)


def _action(call: Call, arguments: Any) -> str:
    if isinstance(arguments, dict):
        subject = next((arguments[name] for name in _SUBJECTS if isinstance(arguments.get(name), str)), None)
        if subject is not None:
            return f"{call.tool}: {subject}"
    return f"{call.tool}: {call.title}" if call.title else call.tool


# Forms


def _is_custom(name: str, properties: dict[str, Any]) -> bool:
    return name.endswith(_CUSTOM) and name.removesuffix(_CUSTOM) in properties


def _field(name: str, spec: Any, properties: dict[str, Any]) -> Field:
    spec = spec if isinstance(spec, dict) else {}
    custom = f"{name}{_CUSTOM}"
    kind = str(spec.get("type", "string"))
    return Field(name=name, type=kind, labels=_labels(kind, spec), custom=custom if custom in properties else None)


def _labels(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    if kind == "boolean":
        return {_YES: True, _NO: False}
    source = spec.get("items") if kind == "array" else spec
    if not isinstance(source, dict):
        return {}
    titled = source.get("oneOf") or source.get("anyOf")
    if isinstance(titled, list):
        return {str(one.get("title") or one.get("const")): one.get("const") for one in titled if isinstance(one, dict)}
    values = source.get("enum") or ()
    names = source.get("enumNames") or values
    return {str(name): value for name, value in zip(names, values, strict=False)}


def _form_question(field: Field, spec: Any, message: str, *, alone: bool) -> Question:
    spec = spec if isinstance(spec, dict) else {}
    title = spec.get("title")
    text = spec.get("description") or (message if alone else title) or field.name
    return Question(
        question=str(text),
        options=tuple(QuestionOption(label=label) for label in field.labels),
        multi_select=field.type == "array",
        free_text=not field.labels or field.custom is not None,
        header=str(title) if title else None,
    )


def _filled(fields: tuple[Field, ...], answers: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for field, given in zip(fields, answers, strict=False):
        own = [one for one in given if field.labels and one not in field.labels]
        picked = [_value(field, one) for one in given if one not in own]
        if field.type == "array":
            content[field.name] = picked
        elif picked:
            content[field.name] = picked[0]
        if own:
            content[field.custom or field.name] = ", ".join(own)
    return content


def _value(field: Field, given: str) -> Any:
    if given in field.labels:
        return field.labels[given]
    try:
        match field.type:
            case "integer":
                return int(given)
            case "number":
                return float(given)
            case _:
                return given
    except ValueError:
        return given  # the agent knows best how to complain


# To the wire


def allowed(ask: Ask, answer: Answer) -> bool:
    """Whether a person said yes to a permission or a plan."""
    match answer:
        case PermissionAnswer():
            return answer.allow
        case QuestionAnswer():
            return ask.kind == "plan" and answer.answers is not None and _first(answer) == APPROVE
        case _:
            assert_never(answer)


def reason(ask: Ask, answer: Answer) -> str | None:
    """Why a person said no, as far as they told; ACP has no place for it in the answer."""
    if answer.withdrawn or allowed(ask, answer) or ask.kind not in {"permission", "plan"}:
        return None
    own = _first(answer) if isinstance(answer, QuestionAnswer) else None
    return answer.message or (own if own != REJECT else None)


def result(ask: Ask, answer: Answer) -> dict[str, Any]:
    """The response to the agent's request."""
    match ask.kind:
        case "permission" | "plan":
            return _outcome(ask, answer, yes=allowed(ask, answer))
        case "answers":
            given = answer.answers if isinstance(answer, QuestionAnswer) else None
            texts = {str(place): ", ".join(one) for place, one in enumerate(given or ())}
            outcome = _outcome(ask, answer, yes=given is not None)
            return outcome if given is None else {**outcome, "answers": texts}
        case "form" | "page":
            if answer.withdrawn:
                return {"action": "cancel"}
            if not isinstance(answer, QuestionAnswer) or answer.answers is None:
                return {"action": "decline"}
            return {"action": "accept", "content": _filled(ask.fields, answer.answers)}
        case _:
            assert_never(ask.kind)


def once(options: tuple[PermissionOption, ...], *, yes: bool) -> dict[str, Any]:
    """Yes or no for this once; an agent is never told "always"."""
    kind = "allow_once" if yes else "reject_once"
    picked = next((option.option_id for option in options if option.kind == kind), None)
    if picked is None:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": picked}}


def _outcome(ask: Ask, answer: Answer, *, yes: bool) -> dict[str, Any]:
    return {"outcome": {"outcome": "cancelled"}} if answer.withdrawn else once(ask.options, yes=yes)


def _first(answer: QuestionAnswer) -> str | None:
    return answer.answers[0][0] if answer.answers and answer.answers[0] else None
