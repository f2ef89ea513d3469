"""What the asks of all agents have in common: how they are shown, and the one about a plan."""

from typing import Any

import msgspec

from ostler.wire.events import PermissionData, Question, QuestionData, QuestionOption
from ostler.wire.running import Answer, Draft, QuestionAnswer

APPROVE, REJECT = "Approve", "Reject"
_PLAN = "plan"
_PLAN_PROMPT = "Go on with this plan?"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a person, as everybody sees it; an agent's own ask adds how it is answered."""

    data: PermissionData | QuestionData

    @property
    def ask_id(self) -> str:
        """Our id of it."""
        return self.data.permission_id if isinstance(self.data, PermissionData) else self.data.question_id

    @property
    def requested(self) -> Draft:
        """It is asked."""
        if isinstance(self.data, QuestionData) and is_plan(self.data):
            return plan_requested(self.data)
        return Draft(f"{self._noun}.requested", self.data)

    @property
    def withdrawn(self) -> Draft:
        """Nobody needs the answer any more."""
        metadata = {**(self.data.metadata or {}), "reason": "withdrawn"}
        status = "reject" if isinstance(self.data, PermissionData) else "rejected"
        return Draft(f"{self._noun}.resolved", msgspec.structs.replace(self.data, status=status, metadata=metadata))

    @property
    def _noun(self) -> str:
        return "permission" if isinstance(self.data, PermissionData) else "question"


def permission_asked(
    ask_id: str, action: str, tool: str | None, item_id: str | None = None, metadata: dict[str, Any] | None = None
) -> PermissionData:
    """May it do this?"""
    return PermissionData(
        permission_id=ask_id, action=action, status="requested", tool=tool, item_id=item_id, metadata=metadata
    )


def asked(
    ask_id: str, questions: tuple[Question, ...], item_id: str | None = None, metadata: dict[str, Any] | None = None
) -> QuestionData:
    """Questions as one ask; the first of them stands for all where there is room for only one."""
    first = questions[0] if questions else None
    return QuestionData(
        question_id=ask_id,
        prompt=first.question if first else "",
        options=tuple(option.label for option in first.options) if first else (),
        status="requested",
        questions=questions,
        item_id=item_id,
        metadata=metadata,
    )


def plan_asked(ask_id: str, plan: str | None, item_id: str | None = None, *, own_words: bool = True) -> QuestionData:
    """May it leave plan mode and do what it proposes?"""
    prompt = f"{_PLAN_PROMPT}\n\n{plan}" if plan else _PLAN_PROMPT
    options = (
        QuestionOption(label=APPROVE, description="Leave plan mode and do it."),
        QuestionOption(
            label=REJECT, description="Keep planning; say what to change." if own_words else "Stay in plan mode."
        ),
    )
    question = Question(question=prompt, options=options, multi_select=False, free_text=own_words, header="Plan")
    return asked(ask_id, (question,), item_id, {"kind": _PLAN, "plan": plan})


def plan_requested(data: QuestionData) -> Draft:
    """The plan is shown; the question is ours, since the agent called a tool or asked for a permission."""
    return Draft("question.requested", data, source="daemon", synthetic=True)


def is_plan(data: QuestionData) -> bool:
    """Whether a question is about a plan."""
    return (data.metadata or {}).get("kind") == _PLAN


def approves(answer: Answer) -> bool:
    """Whether this answer to a plan lets it be carried out."""
    return isinstance(answer, QuestionAnswer) and answer.answers == ((APPROVE,),)


def wishes(answer: Answer) -> list[str]:
    """What a person who did not approve a plan said about it."""
    answers = answer.answers if isinstance(answer, QuestionAnswer) else None
    chosen = [text for picked in answers or () for text in picked]
    return [text for text in (*chosen, answer.message) if text and text != REJECT]
