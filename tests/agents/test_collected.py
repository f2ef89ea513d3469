"""What a message said is whole, however long it is and wherever it was kept meanwhile."""

import random
import tempfile
from pathlib import Path

import pytest

from ostler.agents.collected import Collected
from ostler.wire.parts import ReasoningPart, TextPart

LETTERS = "abcdefghijklmnopqrstuvwxyzäöü\ud800\n "


def pieces(count: int) -> list[str]:
    chance = random.Random(11)
    return ["".join(chance.choices(LETTERS, k=100)) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 100, 3000])
def test_a_text_is_whole(count: int) -> None:
    collected, said = Collected(), pieces(count)
    for number, piece in enumerate(said):
        collected.add(TextPart(text=piece))
        if number % 1000 == 999:  # to look at it changes nothing
            assert collected.whole() == [TextPart(text="".join(said[: number + 1]))]
    assert collected.whole() == ([TextPart(text="".join(said))] if said else [])


def test_texts_and_thoughts_that_take_turns_stay_apart() -> None:
    collected = Collected()
    for round_ in range(3):
        for piece in pieces(1000):
            collected.add(TextPart(text=piece))
        collected.add(ReasoningPart(text=str(round_), visibility="public"))
    text = TextPart(text="".join(pieces(1000)))
    thoughts = [ReasoningPart(text=str(round_), visibility="public") for round_ in range(3)]
    assert collected.whole() == [text, thoughts[0], text, thoughts[1], text, thoughts[2]]


def test_a_text_that_no_disk_takes_stays_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    collected = Collected()
    for piece in pieces(3000):
        collected.add(TextPart(text=piece))
    assert collected.whole() == [TextPart(text="".join(pieces(3000)))]
