"""What a person sees while nothing is said yet: files are fetched, an agent starts; with a clock at a terminal."""

import asyncio
import time
from typing import TextIO

from ostler.cli.terminal.text import cut
from ostler.client import SessionEvent
from ostler.wire.events import Log, QueueUpdated, SessionInfo, SessionStatusChanged

_TICK_SECONDS = 1.0
_PATIENCE_SECONDS = 10.0
_PREPARING = "Preparing the files"
_LONGEST_STEP = 50
_ERASE = "\r\x1b[K"


class Waiting:
    """A line that changes in place at a terminal; elsewhere a line for each step that takes long."""

    def __init__(self, agent: str, screen: TextIO) -> None:
        self._agent = agent
        self._screen = screen
        self._words = f"Starting {agent}"
        self._since = time.monotonic()
        self._shown: str | None = None
        self._over = False

    async def show(self) -> None:
        """Tell how it stands until `end`."""
        tick = _TICK_SECONDS if self._screen.isatty() else _PATIENCE_SECONDS
        while not self._over:
            await asyncio.sleep(tick)
            self._tell()

    def _tell(self) -> None:
        if self._over or (self._shown == self._words and not self._screen.isatty()):
            return
        minutes, seconds = divmod(int(time.monotonic() - self._since), 60)
        line = f"{self._words} {minutes}:{seconds:02}"
        self._screen.write(f"{_ERASE}{line}" if self._screen.isatty() else f"{line}\n")
        self._screen.flush()
        self._shown = self._words

    def note(self, event: SessionEvent, *, is_shown: bool) -> None:
        """Take an event that shows how far things are; one that is shown ends the waiting."""
        if is_shown:
            self._clear()
            self._over = self._over or not isinstance(event, QueueUpdated)  # a prompt waits in the queue for its files
        match event:
            case SessionStatusChanged() if event.data.status in {"queued", "provisioning"}:
                self._words = _PREPARING
            case Log() if self._words.startswith(_PREPARING):
                self._words = f"{_PREPARING} ({cut(event.data.message, _LONGEST_STEP)})"
            case SessionStatusChanged():
                self._words = f"Starting {self._agent}"
            case SessionInfo() if event.data.native_session_id is not None:
                self._words = f"{self._agent} is working"

    def end(self) -> None:
        """Something was said: leave the line to it."""
        self._clear()
        self._over = True

    def _clear(self) -> None:
        if not self._over and self._shown is not None and self._screen.isatty():
            self._screen.write(_ERASE)
            self._screen.flush()
