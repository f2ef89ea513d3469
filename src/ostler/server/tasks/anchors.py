"""Where the lines that a comment is about stand now; lines move while an agent works."""

import re
from typing import NamedTuple

_MOST_LETTERS = 500
"""Of a quoted line; what is longer is cut."""
_MOST_NUMBERS = 1000
"""Lines that stand in more places than these are looked for where they were, and nowhere else."""
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+\d")


class Quote(NamedTuple):
    """Some lines of a file, and those around them."""

    lines: tuple[str, ...]
    before: str | None
    after: str | None


class Lines:
    """Lines of a file by their numbers, which begin at 1; perhaps not all of them."""

    def __init__(self, lines: dict[int, str], *, is_cut: bool = False) -> None:
        """`is_cut`: the file goes on behind them."""
        self._lines = lines
        self.is_cut = is_cut
        self.last = max(lines, default=0)
        self._numbers: dict[str, list[int]] = {}
        for number, line in lines.items():
            self._numbers.setdefault(line, []).append(number)

    @classmethod
    def of_file(cls, text: str, *, is_cut: bool) -> "Lines":
        """All lines of a file, or of its beginning."""
        found = text.split("\n")
        return cls(
            {number: _cut(line) for number, line in enumerate(found, 1) if line or number < len(found)}, is_cut=is_cut
        )

    @classmethod
    def of_old_side(cls, diff: str) -> "Lines":
        """The lines of the old side that a unified diff shows."""
        found: dict[int, str] = {}
        number = 0
        for line in diff.split("\n"):
            if hunk := _HUNK.match(line):
                number = int(hunk[1])
            elif number and line[:1] in {"-", " "}:
                found[number] = _cut(line[1:])
                number += 1
        return cls(found)

    def quoted(self, start: int, end: int) -> Quote:
        """These lines, as far as they are there."""
        lines = self._lines
        shown = tuple(lines[number] for number in range(start, end + 1) if number in lines)
        return Quote(shown, lines.get(start - 1), lines.get(end + 1))

    def place_of(self, quote: Quote, start: int) -> int | None:
        """Where lines are that were quoted with their neighbours; None if nobody can tell that these are the same.

        At another place than before they must have a neighbour of theirs; if they stand more than once, both.
        """
        found = self._found(quote.lines, start)
        if start in found:
            return start
        needed = 1 if len(found) == 1 else 2
        alike = [at for at, here in found.items() if _likeness(here, quote) >= needed]
        return alike[0] if len(alike) == 1 else None

    def place_of_seen(self, seen: tuple[str, ...], start: int) -> int | None:
        """Where lines are that somebody saw a moment ago; None if they are gone, or stand elsewhere more than once."""
        found = self._found(tuple(map(_cut, seen)), start)
        if start in found:
            return start
        return next(iter(found)) if len(found) == 1 else None

    def _found(self, wanted: tuple[str, ...], start: int) -> dict[int, Quote]:
        numbers = self._numbers.get(wanted[0], [])
        looked_at = numbers if len(numbers) <= _MOST_NUMBERS else [start]
        last = len(wanted) - 1
        return {at: here for at in looked_at if (here := self.quoted(at, at + last)).lines == wanted}


def _cut(line: str) -> str:
    return line.rstrip("\r")[:_MOST_LETTERS]


def _likeness(here: Quote, quote: Quote) -> int:
    return (here.before == quote.before) + (here.after == quote.after)
