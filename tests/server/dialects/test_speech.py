"""What a finished message still has to say when its pieces said something already."""

import pytest

from ostler.server.dialects.speech import Kind, Speech
from ostler.wire.items import Item
from ostler.wire.parts import ReasoningPart, TextPart


@pytest.mark.parametrize(
    ("pieces", "final", "rest"),
    [
        ((), "Hello.", [("text", "Hello.")]),
        (("Hel", "lo."), "Hello.", []),
        (("Hello.",), "Hello. More.", [("text", " More.")]),
        (("Hello. \n",), "Hello.", []),
        (("Hello,\n\nyou",), "Hello, you there", [("text", "there")]),
        (("One thing",), "Another", [("text", "Another")]),
        (("Hello.",), "", []),
    ],
    ids=["no pieces", "all", "more", "space at the end", "other space and more", "another text", "empty"],
)
def test_only_what_was_not_said_is_left(pieces: tuple[str, ...], final: str, rest: list[tuple[Kind, str]]) -> None:
    speech = Speech()
    for piece in pieces:
        speech.add("itm_1", "text", piece)
    assert speech.rest(_message(TextPart(text=final))) == rest


def test_thoughts_come_first_and_a_forgotten_item_begins_anew() -> None:
    speech = Speech()
    message = _message(TextPart(text="Yes."), ReasoningPart(text="Hm.", visibility="public"))
    speech.add("itm_1", "text", "Yes.")
    assert speech.rest(message) == [("reasoning", "Hm.")]
    speech.forget("itm_1")
    assert speech.rest(message) == [("reasoning", "Hm."), ("text", "Yes.")]


def _message(*content: TextPart | ReasoningPart) -> Item:
    return Item(item_id="itm_1", kind="message", status="completed", content=content, role="assistant")
