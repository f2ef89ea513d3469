"""Where the lines that a comment is about stand now; lines move while an agent works."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_MOST_LETTERS = 500
"""Of a quoted line; what is longer is cut."""
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+\d")
Lines = Mapping[int, str]
"""Lines of a file by their numbers, which begin at 1; perhaps not all of them."""


class Quote(NamedTuple):
    """Some lines of a file, and those around them."""

    lines: tuple[str, ...]
    before: str | None = None
    after: str | None = None


def lines_of(text: str) -> dict[int, str]:
    """All lines of a file."""
    found = text.split("\n")
    return {number: _cut(line) for number, line in enumerate(found, 1) if line or number < len(found)}


def old_lines(diff: str) -> dict[int, str]:
    """The lines of the old side that a unified diff shows."""
    found: dict[int, str] = {}
    number = 0
    for line in diff.split("\n"):
        if hunk := _HUNK.match(line):
            number = int(hunk[1])
        elif number and line[:1] in {"-", " "}:
            found[number] = _cut(line[1:])
            number += 1
    return found


def _cut(line: str) -> str:
    return line.rstrip("\r")[:_MOST_LETTERS]


def quoted(lines: Lines, start: int, end: int) -> Quote:
    """These lines, as far as they are there."""
    shown = tuple(lines[number] for number in range(start, end + 1) if number in lines)
    return Quote(shown, lines.get(start - 1), lines.get(end + 1))


def given_quote(lines: tuple[str, ...]) -> Quote:
    """Lines as somebody saw them."""
    return Quote(tuple(_cut(line) for line in lines))


def place_of(quote: Quote, lines: Lines, start: int) -> int | None:
    """The number of the first quoted line now; None if they are gone, or nobody can tell which ones they are.

    Where the same lines stand more than once, those count that have the same neighbours, and then the nearest ones.
    """
    last = len(quote.lines) - 1
    begins = [number for number, line in lines.items() if line == quote.lines[0]]
    found = {at: here for at in begins if (here := quoted(lines, at, at + last)).lines == quote.lines}
    if not found:
        return None
    best = max(found, key=lambda at: (_likeness(found[at], quote), -abs(at - start)))
    is_certain = len(found) == 1 or best == start or _likeness(found[best], quote) > 0
    return best if is_certain else None


def _likeness(here: Quote, quote: Quote) -> int:
    return (here.before == quote.before) + (here.after == quote.after)
