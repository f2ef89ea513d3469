"""What came out of a turn: questions to its events, and the one way to find them wanting."""

from collections.abc import Sequence
from typing import Any, TypeVar

from ostler.wire.items import Item
from ostler.wire.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.running import Draft

_Found = TypeVar("_Found")


class Unmet(Exception):
    """The agent did not behave; the text says what came instead."""


def expect(holds: object, otherwise: str) -> None:
    """Raise Unmet with the reason, unless it holds."""
    if not holds:
        raise Unmet(otherwise)


def only(found: Sequence[_Found], what: str) -> _Found:
    """The single one of a kind."""
    expect(len(found) == 1, f"there were {len(found)} instead of one: {what}")
    return found[0]


def items(drafts: Sequence[Draft]) -> list[Item]:
    """Completed items in order; a later completion of an item replaces an earlier one."""
    found: dict[str, Item] = {data.item.item_id: data.item for data in of_type(drafts, "item.completed")}
    return list(found.values())


def texts(item: Item) -> str:
    """The text of an item."""
    return "".join(part.text for part in item.content if isinstance(part, TextPart))


def answer_text(drafts: Sequence[Draft]) -> str:
    """All final text of the assistant."""
    return "".join(texts(item) for item in items(drafts) if item.kind == "message" and item.role == "assistant")


def thought(drafts: Sequence[Draft]) -> str:
    """All final reasoning."""
    return "".join(part.text for item in items(drafts) for part in item.content if isinstance(part, ReasoningPart))


def calls(drafts: Sequence[Draft]) -> list[ToolCallPart]:
    """Tool calls."""
    return [part for item in items(drafts) for part in item.content if isinstance(part, ToolCallPart)]


def results(drafts: Sequence[Draft]) -> list[ToolResultPart]:
    """Tool results."""
    return [part for item in items(drafts) for part in item.content if isinstance(part, ToolResultPart)]


def of_type(drafts: Sequence[Draft], kind: str) -> list[Any]:
    """The data of all events of a type."""
    return [draft.data for draft in drafts if draft.type == kind]


def ends(drafts: Sequence[Draft], outcome: str) -> None:
    """The turn ended once, like this."""
    end = only(of_type(drafts, "turn.ended"), "ends of the turn")
    errors = "; ".join(str(data.message) for data in of_type(drafts, "error"))
    why = f" ({errors})" if errors else ""
    expect(end.outcome == outcome, f"the turn is {end.outcome} instead of {outcome}{why}")
