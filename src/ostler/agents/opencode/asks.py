"""What OpenCode waits for: permissions, questions, and the plan approval that it asks as a question."""

from typing import Any, Literal

import msgspec

from ostler.agents.opencode import frames
from ostler.agents.opencode.items import tidy
from ostler.wire.events import PermissionData, Question, QuestionData, QuestionOption
from ostler.wire.running import Draft, PermissionAnswer, QuestionAnswer

APPROVE, REJECT = "Approve", "Reject"
PLAN_PROMPT = "Go on with this plan?"


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a human; `native` is OpenCode's id of it."""

    kind: Literal["permission", "question", "plan"]
    native: str
    data: PermissionData | QuestionData

    @property
    def ask_id(self) -> str:
        """Our id of it."""
        return self.data.permission_id if isinstance(self.data, PermissionData) else self.data.question_id

    @property
    def requested(self) -> Draft:
        """It is asked."""
        return Draft("permission.requested" if self.kind == "permission" else "question.requested", self.data)


def permission(ask_id: str, asked: frames.PermissionAsked, call: frames.Tool | None, item_id: str | None) -> Ask:
    """May this be done, once?"""
    metadata: dict[str, Any] = {"input": call.state.input if call else asked.metadata}
    if isinstance(diff := asked.metadata.get("diff"), str):
        metadata["diff"] = tidy(diff)
    if asked.always:
        metadata["always"] = f"{asked.permission}({', '.join(asked.always)})"
    data = PermissionData(
        permission_id=ask_id,
        action=": ".join([asked.permission, *[", ".join(asked.patterns)] * bool(asked.patterns)]),
        status="requested",
        tool=call.tool if call else asked.permission,
        item_id=item_id,
        metadata=metadata,
    )
    return Ask(kind="permission", native=asked.id, data=data)


def question(ask_id: str, asked: frames.QuestionAsked, item_id: str | None) -> Ask:
    """The model's questions."""
    questions = tuple(
        Question(
            question=one.question,
            options=tuple(QuestionOption(label=option.label, description=option.description) for option in one.options),
            multi_select=one.multiple,
            free_text=one.custom,
            header=one.header,
        )
        for one in asked.questions
    )
    data = QuestionData(
        question_id=ask_id,
        prompt=questions[0].question if questions else "",
        options=tuple(option.label for option in questions[0].options) if questions else (),
        status="requested",
        questions=questions,
        item_id=item_id,
    )
    return Ask(kind="question", native=asked.id, data=data)


def plan_approval(ask_id: str, asked: frames.QuestionAsked, item_id: str | None, plan: str) -> Ask:
    """May it leave plan mode?"""
    prompt = f"{PLAN_PROMPT}\n\n{plan}" if plan else PLAN_PROMPT
    options = (
        QuestionOption(label=APPROVE, description="Leave plan mode and do it."),
        QuestionOption(label=REJECT, description="Stay in plan mode."),
    )
    data = QuestionData(
        question_id=ask_id,
        prompt=prompt,
        options=(APPROVE, REJECT),
        status="requested",
        questions=(Question(question=prompt, options=options, multi_select=False, free_text=False, header="Plan"),),
        item_id=item_id,
        metadata={"kind": "plan", "plan": plan},
    )
    return Ask(kind="plan", native=asked.id, data=data)


def reply(ask: Ask, answer: PermissionAnswer | QuestionAnswer) -> tuple[str, dict[str, Any] | None]:
    """Path and body of the request that tells OpenCode the decision."""
    if isinstance(answer, PermissionAnswer):
        said = {"message": answer.message} if answer.message and not answer.allow else {}
        return f"/permission/{ask.native}/reply", {"reply": "once" if answer.allow else "reject", **said}
    if answer.answers is None:
        return f"/question/{ask.native}/reject", None
    answers: Any = answer.answers
    if ask.kind == "plan":
        answers = [["Yes" if approves(answer) else "No"]]
    return f"/question/{ask.native}/reply", {"answers": answers}


def approves(answer: QuestionAnswer) -> bool:
    """Whether this answer to a plan lets it be carried out."""
    return answer.answers == ((APPROVE,),)
