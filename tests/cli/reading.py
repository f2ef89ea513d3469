"""Reads what a child writes, up to a text that must come."""

import os
import re
import select
import time

_ESCAPES = re.compile(r"\x1b\[[0-9;]*m|\r")


class Reader:
    """One side of a child's output."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._fresh = ""

    def expect(self, text: str, seconds: float = 60) -> str:
        """Wait for a text after the last one expected; gives everything up to it."""
        deadline = time.monotonic() + seconds
        while text not in self._fresh:
            assert self._read(deadline), f"no {text!r} in {self._fresh!r}"
        before, _, self._fresh = self._fresh.partition(text)
        return before + text

    def rest(self, seconds: float = 60) -> str:
        """Everything until the child closes its output."""
        deadline = time.monotonic() + seconds
        while self._read(deadline):
            pass
        return self._fresh

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"waited in vain after {self._fresh!r}"
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how Linux tells that nobody holds the other side of a terminal any more
            return False
        self._fresh += _ESCAPES.sub("", data.decode("utf-8", "replace"))
        return bool(data)
