"""A dialogue whose events are kept, for tests that look at all of them."""

from typing import Any

from ostler.runner.execution.dialogue import Dialogue
from ostler.wire.running import Draft


class Overheard(Dialogue):
    """Keeps what came out of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kept: list[Draft] = []

    @property
    def drafts(self) -> list[Draft]:
        """All events so far."""
        self._kept += self.take_drafts()
        return self._kept
