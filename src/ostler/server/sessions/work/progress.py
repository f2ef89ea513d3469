"""Progress of provisioning as log events: not more than people can read, and never out of order."""

import asyncio
import re

from ostler.server.sessions import drafts
from ostler.server.sessions.session import SessionCore

_PAUSE_SECONDS = 0.25
_MOST_LINES = 2000
_MOST_LENGTH = 2000
_PERCENT = re.compile(r"(?P<what>.*?):? *(?P<number>\d{1,3})%")


class ProgressLog:
    """Gathers lines and appends them together; of a percentage only the newest counts."""

    def __init__(self, session: SessionCore) -> None:
        self._session = session
        self._lines: list[str] = []
        self._count = 0
        self._task: asyncio.Task[None] | None = None

    def tell(self, line: str) -> None:
        """Take a line; called on the event loop."""
        self._count += 1
        if self._count > _MOST_LINES:
            return
        if self._count == _MOST_LINES:
            line = "More lines follow that are not kept."
        line = line if len(line) <= _MOST_LENGTH else f"{line[:_MOST_LENGTH]} (cut)"
        if self._lines and _same_percentage(self._lines[-1], line):
            self._lines[-1] = line
        else:
            self._lines.append(line)
        if self._task is None:
            self._task = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._lines:
            lines, self._lines = self._lines, []
            await self._session.note([drafts.line(line) for line in lines])
            await asyncio.sleep(_PAUSE_SECONDS)
        self._task = None

    async def close(self) -> None:
        """Append what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._lines:
            await self._session.note([drafts.line(line) for line in self._lines])


def _same_percentage(one: str, other: str) -> bool:
    first, second = _PERCENT.match(one), _PERCENT.match(other)
    return first is not None and second is not None and first["what"] == second["what"]
