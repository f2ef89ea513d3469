"""Whether answers fit the questions that an agent asked."""

from ostler.base.errors import Unprocessable
from ostler.wire.events import Question, QuestionData, QuestionOption

Answers = tuple[tuple[str, ...], ...]
_MOST_SHOWN = 80


def questions_of(asked: QuestionData) -> tuple[Question, ...]:
    """All questions of an ask; one that has only a prompt is one question."""
    options = tuple(QuestionOption(label=label) for label in asked.options)
    only = Question(question=asked.prompt, options=options, multi_select=False, free_text=not options)
    return asked.questions or (only,)


def check_answers(asked: QuestionData, answers: Answers) -> None:
    """Raise Unprocessable, with the place and what could be answered there."""
    questions = questions_of(asked)
    if len(answers) != len(questions):
        raise _refused("answers", f"there are {len(questions)} questions and {len(answers)} answers")
    for index, (question, chosen) in enumerate(zip(questions, answers, strict=True)):
        if (fault := _fault(question, chosen)) is not None:
            raise _refused(f"answers[{index}]", fault)


def _fault(question: Question, chosen: tuple[str, ...]) -> str | None:
    labels = [option.label for option in question.options]
    unknown = [] if question.free_text else [text for text in chosen if text not in labels]
    if unknown:
        return f"{_quoted(unknown)} is not on offer; choose from {_quoted(labels)}"
    if question.multi_select or len(chosen) == 1:
        return None
    offer = f" of {_quoted(labels)}" if labels else " text"
    return f"only one{offer} can be answered, not {_quoted(chosen)}" if chosen else f"choose one{offer}"


def _quoted(texts: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"'{text[:_MOST_SHOWN]}'" for text in texts)


def _refused(field: str, reason: str) -> Unprocessable:
    return Unprocessable(reason=f"{field}: {reason}.", errors={field: [reason]})
