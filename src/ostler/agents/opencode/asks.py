"""What OpenCode waits for: permissions, questions, and the plan approval that it asks as a question."""

from typing import Any, Literal

from ostler.agents.asks import Waiting, approves, asked, permission_asked, plan_asked
from ostler.agents.opencode import frames
from ostler.agents.opencode.items import tidy
from ostler.wire.events import Question, QuestionOption
from ostler.wire.running import PermissionAnswer, QuestionAnswer


class Ask(Waiting, frozen=True, kw_only=True):
    """Something that waits for a human; `native` is OpenCode's id of it."""

    kind: Literal["permission", "question", "plan"]
    native: str


def permission(ask_id: str, asked: frames.PermissionAsked, call: frames.Tool | None, item_id: str | None) -> Ask:
    """May this be done, once?"""
    metadata: dict[str, Any] = {"input": call.state.input if call else asked.metadata}
    if isinstance(diff := asked.metadata.get("diff"), str):
        metadata["diff"] = tidy(diff)
    if asked.always:
        metadata["always"] = f"{asked.permission}({', '.join(asked.always)})"
    action = f"{asked.permission}: {', '.join(asked.patterns)}" if asked.patterns else asked.permission
    data = permission_asked(ask_id, action, call.tool if call else asked.permission, item_id, metadata)
    return Ask(kind="permission", native=asked.id, data=data)


def question(ask_id: str, request: frames.QuestionAsked, item_id: str | None) -> Ask:
    """The model's questions."""
    questions = tuple(
        Question(
            question=one.question,
            options=tuple(QuestionOption(label=option.label, description=option.description) for option in one.options),
            multi_select=one.multiple,
            free_text=one.custom,
            header=one.header,
        )
        for one in request.questions
    )
    return Ask(kind="question", native=request.id, data=asked(ask_id, questions, item_id))


def plan_approval(ask_id: str, request: frames.QuestionAsked, item_id: str | None, plan: str) -> Ask:
    """May it leave plan mode? It takes only a yes or a no."""
    return Ask(kind="plan", native=request.id, data=plan_asked(ask_id, plan, item_id, own_words=False))


def reply(ask: Ask, answer: PermissionAnswer | QuestionAnswer) -> tuple[str, dict[str, Any] | None]:
    """Path and body of the request that tells OpenCode the decision."""
    if isinstance(answer, PermissionAnswer):
        reason = {"message": answer.message} if answer.message and not answer.allow else {}
        return f"/permission/{ask.native}/reply", {"reply": "once" if answer.allow else "reject", **reason}
    if answer.answers is None:
        return f"/question/{ask.native}/reject", None
    answers: Any = answer.answers
    if ask.kind == "plan":
        answers = [["Yes" if approves(answer) else "No"]]
    return f"/question/{ask.native}/reply", {"answers": answers}
