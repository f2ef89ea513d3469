"""Text for a terminal: whole lines, and one that still grows."""

from typing import Any

import click


class Lines:
    """Remembers whether the last line is unfinished, and what it is part of."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self.growing: str | None = None
        """The kind of the unfinished line at the end."""

    def line(self, text: str, **style: Any) -> str:
        """A line of its own, ending an unfinished one first."""
        return f"{self.close()}{self._styled(text, **style)}\n"

    def close(self) -> str:
        """End the unfinished line, if there is one."""
        unfinished, self.growing = self.growing, None
        return "\n" if unfinished else ""

    def grow(self, kind: str, text: str, **style: Any) -> str:
        """More text on the same line, as long as it is of the same kind."""
        if not text:
            return ""
        before = "" if self.growing == kind else self.close()
        self.growing = None if text.endswith("\n") else kind
        return before + self._styled(text, **style)

    def _styled(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._colour and style else text
