"""Typed lines become decisions."""

import pytest

from ostler.cli.terminal.dialog import Answered, Decision, Declined, Permit, dialog_for
from ostler.wire.events import PermissionData, Question, QuestionData, QuestionOption

PERMISSION = PermissionData(permission_id="per_1", action="dig", status="requested")


def question(*options: str, multi: bool = False, free: bool = False) -> Question:
    labels = tuple(QuestionOption(label=label) for label in options)
    return Question(question="?", options=labels, multi_select=multi, free_text=free)


def asked(*questions: Question) -> QuestionData:
    return QuestionData(question_id="que_1", prompt="?", options=(), status="requested", questions=questions)


def last(ask: PermissionData | QuestionData, *lines: str) -> Decision | None:
    dialog = dialog_for(ask)
    decisions = [dialog.feed(line) for line in lines]
    assert all(decision is None for decision in decisions[:-1])
    return decisions[-1]


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["o"], Permit(ask_id="per_1", reply="once")),
        (["Yes"], Permit(ask_id="per_1", reply="once")),
        (["a"], Permit(ask_id="per_1", reply="always")),
        (["r", ""], Permit(ask_id="per_1", reply="reject")),
        (["r", " too deep "], Permit(ask_id="per_1", reply="reject", message="too deep")),
        (["no not here"], Permit(ask_id="per_1", reply="reject", message="not here")),
        (["", "maybe", "once"], Permit(ask_id="per_1", reply="once")),
        ([""], None),
    ],
)
def test_a_permission_takes_one_word(lines: list[str], decision: Decision | None) -> None:
    assert last(PERMISSION, *lines) == decision


@pytest.mark.parametrize(
    ("questions", "lines", "answers"),
    [
        ([question("tea", "coffee")], ["2"], (("coffee",),)),
        ([question("tea", "coffee")], ["TEA"], (("tea",),)),
        ([question("tea", "coffee")], ["3", "water", "1"], (("tea",),)),
        ([question("tea", "coffee", free=True)], ["water"], (("water",),)),
        ([question("a", "b", "c", multi=True)], ["1, c"], (("a", "c"),)),
        ([question("a", multi=True, free=True)], ["a, z"], (("a, z",),)),
        ([question(free=True)], ["", "blue"], (("blue",),)),
        ([question("a"), question("b")], ["1", "1"], (("a",), ("b",))),
    ],
)
def test_questions_take_numbers_names_or_words(
    questions: list[Question], lines: list[str], answers: tuple[tuple[str, ...], ...]
) -> None:
    assert last(asked(*questions), *lines) == Answered(ask_id="que_1", answers=answers)


def test_a_question_can_be_declined() -> None:
    assert last(asked(question("a")), "/decline") == Declined(ask_id="que_1")


def test_an_ask_without_a_list_of_questions_is_its_own_question() -> None:
    plain = QuestionData(question_id="que_1", prompt="Tea?", options=("yes", "no"), status="requested")
    assert last(plain, "2") == Answered(ask_id="que_1", answers=(("no",),))
