"""What a message said is whole, however long it is and wherever it was kept meanwhile."""

import random
import re
import tempfile
from pathlib import Path

import pytest

from ostler.agents.collected import Collected
from ostler.wire.parts import ReasoningPart, TextPart

MOST = 2**20
LETTERS = "abcdefghijklmnopqrstuvwxyzäöü\ud800\n "


def pieces(count: int) -> list[str]:
    chance = random.Random(11)
    return ["".join(chance.choices(LETTERS, k=100)) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 100, 3000])
def test_a_text_is_whole(count: int) -> None:
    collected, said = Collected(MOST), pieces(count)
    for number, piece in enumerate(said):
        collected.add(TextPart(text=piece))
        if number % 1000 == 999:  # to look at it changes nothing
            assert collected.whole() == [TextPart(text="".join(said[: number + 1]))]
    assert collected.whole() == ([TextPart(text="".join(said))] if said else [])


def test_texts_and_thoughts_that_take_turns_stay_apart() -> None:
    collected = Collected(MOST)
    for round_ in range(3):
        for piece in pieces(1000):
            collected.add(TextPart(text=piece))
        collected.add(ReasoningPart(text=str(round_), visibility="public"))
    text = TextPart(text="".join(pieces(1000)))
    thoughts = [ReasoningPart(text=str(round_), visibility="public") for round_ in range(3)]
    assert collected.whole() == [text, thoughts[0], text, thoughts[1], text, thoughts[2]]


def test_a_text_that_no_disk_takes_stays_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    collected = Collected(MOST)
    for piece in pieces(3000):
        collected.add(TextPart(text=piece))
    assert collected.whole() == [TextPart(text="".join(pieces(3000)))]


def test_of_a_very_long_text_the_beginning_and_the_end_are_kept() -> None:
    collected, said = Collected(MOST), "".join(pieces(30_000))
    for start in range(0, len(said), 100):
        collected.add(TextPart(text=said[start : start + 100]))
    (part,) = collected.whole()
    assert isinstance(part, TextPart)
    assert MOST * 0.9 < len(part.text) <= MOST
    head, lost, tail = re.split(r"\n\[(\d+) characters cut\]\n", part.text)
    assert (said[: len(head)], said[-len(tail) :]) == (head, tail)
    assert len(head) + int(lost) + len(tail) == len(said)


def test_a_small_bound_is_kept_about() -> None:
    collected, said = Collected(1000), "".join(pieces(1000))
    for start in range(0, len(said), 100):
        collected.add(TextPart(text=said[start : start + 100]))
    (part,) = collected.whole()
    assert isinstance(part, TextPart)
    assert len(part.text) < len(said) / 2
    assert (part.text[:1000], part.text[-1000:]) == (said[:1000], said[-1000:])
