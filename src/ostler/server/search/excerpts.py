"""The part of a text where somebody finds what was looked for."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_BEFORE, _LENGTH = 60, 240
_SPACES = re.compile(r"\s+")


class Excerpt(NamedTuple):
    """A part of a text in one line."""

    text: str
    marks: tuple[tuple[int, int], ...]
    """Where what was looked for begins and ends in it."""


def excerpt_of(text: str, phrases: Sequence[str]) -> Excerpt:
    """The part around the first match; the beginning if the index found what cannot be seen, such as another accent."""
    line = _SPACES.sub(" ", text).strip()
    pattern = re.compile("|".join(_found_by(phrase) for phrase in phrases), re.IGNORECASE)
    first = pattern.search(line)
    begin = _word_start(line, max(0, first.start() - _BEFORE)) if first is not None else 0
    part = line[begin : begin + _LENGTH].rstrip()
    before, after = "…" if begin else "", "…" if begin + len(part) < len(line) else ""
    marks = tuple((found.start() + len(before), found.end() + len(before)) for found in pattern.finditer(part))
    return Excerpt(f"{before}{part}{after}", marks)


def _found_by(phrase: str) -> str:
    """The words of a phrase with anything between them that is none, from the beginning of a word on."""
    words = re.findall(r"[^\W_]+", phrase)
    return r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, words))


def _word_start(line: str, place: int) -> int:
    """Where the first whole word after a place begins."""
    if place == 0:
        return 0
    space = line.find(" ", place, place + _BEFORE)
    return space + 1 if space >= 0 else place
