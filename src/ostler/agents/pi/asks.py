"""Pi's dialogs as permissions and questions: those of our own extension, and those of any other."""

import shlex
from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from ostler.agents.asks import APPROVE, REJECT, asked, permission_asked, plan_asked, plan_requested
from ostler.agents.pi import frames
from ostler.agents.pi.tools import proposed_diff
from ostler.wire.events import Question, QuestionOption
from ostler.wire.running import Answer, Draft, PermissionAnswer, QuestionAnswer

YES, NO = "Yes", "No"
_ours = msgspec.json.Decoder(frames.OurAsk)
Encode = Callable[[Answer], dict[str, Any]]


class Asks:
    """The dialogs that are open, and how an answer to each looks."""

    def __init__(self, start: int, item_of: Callable[[str], str]) -> None:
        self._start = start
        self._item_of = item_of
        self._open: dict[str, tuple[str, Encode]] = {}

    def ask(self, frame: frames.UiRequest) -> Draft:
        """The event for a dialog that opens."""
        try:
            ours = _ours.decode(frame.title)
        except msgspec.DecodeError:
            return self._foreign(frame)
        match ours.kind:
            case "permission":
                return self._permission(frame, ours)
            case "question":
                return self._question(frame, ours)
            case "plan":
                return self._plan(frame, ours)
            case _:
                assert_never(ours.kind)

    def reply(self, answer: Answer) -> dict[str, Any] | None:
        """What to tell Pi, or None if that dialog is not open."""
        native, encode = self._open.pop(answer.ask_id, (None, None))
        return None if encode is None else {"id": native, **encode(answer)}

    def _keep(self, prefix: str, native: str, encode: Encode) -> str:
        ask_id = f"{prefix}_{self._start}_{native}"
        self._open[ask_id] = (native, encode)
        return ask_id

    def _permission(self, frame: frames.UiRequest, ours: frames.OurAsk) -> Draft:
        given = ours.input if isinstance(ours.input, dict) else {}
        metadata: dict[str, Any] = {"input": ours.input}
        if (diff := proposed_diff(ours.tool_name, given)) is not None:
            metadata["diff"] = diff
        if ours.tool_name == "bash":
            metadata["always"] = f"bash:{given.get('command')}"
        ask_id, item_id = self._keep("per", frame.id, _decision), self._item_of(ours.tool_call_id)
        data = permission_asked(ask_id, _action(ours.tool_name, given), ours.tool_name, item_id, metadata)
        return Draft("permission.requested", data)

    def _question(self, frame: frames.UiRequest, ours: frames.OurAsk) -> Draft:
        question = _question(ours.question, frame.options, multi=ours.multi, free=True)
        return self._asked(frame, question, _answers, self._item_of(ours.tool_call_id))

    def _plan(self, frame: frames.UiRequest, ours: frames.OurAsk) -> Draft:
        ask_id = self._keep("que", frame.id, _approval)
        return plan_requested(plan_asked(ask_id, ours.plan, self._item_of(ours.tool_call_id)))

    def _foreign(self, frame: frames.UiRequest) -> Draft:
        text = "\n\n".join(filter(None, (frame.title, frame.message)))
        if frame.method == "confirm":
            return self._asked(frame, _question(text, (YES, NO)), _confirmation)
        return self._asked(frame, _question(text, frame.options, free=frame.method != "select"), _value)

    def _asked(self, frame: frames.UiRequest, question: Question, encode: Encode, item_id: str | None = None) -> Draft:
        ask_id = self._keep("que", frame.id, encode)
        return Draft("question.requested", asked(ask_id, (question,), item_id))


def _question(text: str, options: tuple[str, ...], *, multi: bool = False, free: bool = False) -> Question:
    offered = tuple(QuestionOption(label=label) for label in options)
    return Question(question=text, options=offered, multi_select=multi, free_text=free)


def _action(tool: str, given: dict[str, Any]) -> str:
    match tool, given:
        case "bash", {"command": str(command)}:
            return command
        case _, {"path": str(path)}:
            return f"{tool} {shlex.quote(path)}"
        case _:
            return tool


# How answers look on the wire


def _chosen(answer: Answer) -> tuple[str, ...]:
    """What was chosen in the first question; nothing if the person declined."""
    if isinstance(answer, QuestionAnswer) and answer.answers:
        return answer.answers[0]
    return ()


def _json(**fields: Any) -> dict[str, Any]:
    present = {name: value for name, value in fields.items() if value is not None}
    return {"value": msgspec.json.encode(present).decode()}


def _decision(answer: Answer) -> dict[str, Any]:
    return _json(allow=isinstance(answer, PermissionAnswer) and answer.allow, message=answer.message)


def _answers(answer: Answer) -> dict[str, Any]:
    return _json(answers=_chosen(answer) or None, message=answer.message)


def _approval(answer: Answer) -> dict[str, Any]:
    chosen = _chosen(answer)
    own_words = ", ".join(label for label in chosen if label not in {APPROVE, REJECT})
    return _json(allow=APPROVE in chosen, message=answer.message or own_words or None)


def _confirmation(answer: Answer) -> dict[str, Any]:
    return {"confirmed": YES in _chosen(answer)}


def _value(answer: Answer) -> dict[str, Any]:
    chosen = _chosen(answer)
    return {"value": chosen[0]} if chosen else {"cancelled": True}
