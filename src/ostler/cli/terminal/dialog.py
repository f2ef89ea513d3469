"""Asks in the terminal: typed lines become a decision; pure, so it does not matter where lines come from."""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from ostler.cli.terminal.text import questions_of
from ostler.wire.events import PermissionData, Question, QuestionData
from ostler.wire.sessions import PermissionReply

DECLINE = "/decline"


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on a permission."""

    ask_id: str
    reply: PermissionReply
    message: str | None = None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """Answers to all questions of an ask."""

    ask_id: str
    answers: tuple[tuple[str, ...], ...]


class Declined(msgspec.Struct, frozen=True, kw_only=True):
    """The person does not want to answer."""

    ask_id: str


Decision = Permit | Answered | Declined


class PermissionDialog:
    """Asks once / always / reject, and for the reason of a rejection."""

    def __init__(self, ask: PermissionData) -> None:
        self.ask_id = ask.permission_id
        self._wants_reason = False
        self._wrong = ""

    def prompt(self) -> str:
        """What to show before the next line."""
        if self._wants_reason:
            return "Reason (Enter for none): "
        return f"{_none_of(self._wrong)}[o]nce, [a]lways or [r]eject? "

    def feed(self, line: str) -> Decision | None:
        """Take a line; None asks on."""
        if self._wants_reason:
            return self._rejected(line)
        word, _, reason = line.strip().partition(" ")
        match word.lower():
            case "o" | "once" | "y" | "yes":
                return Permit(ask_id=self.ask_id, reply="once")
            case "a" | "always":
                return Permit(ask_id=self.ask_id, reply="always")
            case "r" | "reject" | "n" | "no" if reason:
                return self._rejected(reason)
            case "r" | "reject" | "n" | "no":
                self._wants_reason = True
            case _:
                self._wrong = line.strip()
        return None

    def _rejected(self, reason: str) -> Permit:
        return Permit(ask_id=self.ask_id, reply="reject", message=reason.strip() or None)


class QuestionDialog:
    """Asks one question after the other."""

    def __init__(self, ask: QuestionData) -> None:
        self.ask_id = ask.question_id
        self._questions = questions_of(ask)
        self._answers: list[tuple[str, ...]] = []
        self._wrong = ""

    def prompt(self) -> str:
        """What to show before the next line."""
        question = self._questions[len(self._answers)]
        which = f" to question {len(self._answers) + 1}" if len(self._questions) > 1 else ""
        return f"{_none_of(self._wrong)}Your answer{which} ({_ways(question)}): "

    def feed(self, line: str) -> Decision | None:
        """Take a line; None asks on."""
        if line.strip() == DECLINE:
            return Declined(ask_id=self.ask_id)
        chosen = _chosen(self._questions[len(self._answers)], line)
        self._wrong = "" if chosen else line.strip()
        if chosen:
            self._answers.append(chosen)
        if len(self._answers) < len(self._questions):
            return None
        return Answered(ask_id=self.ask_id, answers=tuple(self._answers))


Dialog = PermissionDialog | QuestionDialog


def dialog_for(ask: PermissionData | QuestionData) -> Dialog:
    """The dialog that settles an ask."""
    match ask:
        case PermissionData():
            return PermissionDialog(ask)
        case QuestionData():
            return QuestionDialog(ask)
        case _:
            assert_never(ask)


def _none_of(wrong: str) -> str:
    return f"'{wrong}' is none of the choices. " if wrong else ""


def _ways(question: Question) -> str:
    numbers = "numbers with commas" if question.multi_select else "a number"
    ways = [*([numbers] if question.options else []), *(["your own words"] if question.free_text else []), DECLINE]
    return f"{', '.join(ways[:-1])} or {ways[-1]}"


def _chosen(question: Question, line: str) -> tuple[str, ...]:
    labels = [option.label for option in question.options]
    pieces = [piece.strip() for piece in line.split(",")] if question.multi_select else [line.strip()]
    found = tuple(filter(None, (_label(labels, piece) for piece in pieces)))
    if len(found) == len(pieces):
        return found
    return (line.strip(),) if question.free_text and line.strip() else ()


def _label(labels: Sequence[str], piece: str) -> str | None:
    if piece.isdecimal() and 1 <= int(piece) <= len(labels):
        return labels[int(piece) - 1]
    return next((label for label in labels if label.lower() == piece.lower()), None)
