"""Bounded waits, and a countdown that stands still while an agent is frozen."""

import asyncio
from collections.abc import Callable
from typing import Any


async def finished(future: "asyncio.Future[Any]", timeout: float) -> bool:
    """Wait for something without ever cancelling it; False when the time is up."""
    done, _ = await asyncio.wait({future}, timeout=timeout)
    return bool(done)


class Countdown:
    """Calls back once after some seconds, unless it is cancelled before."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None
        self._call: Callable[[], None] | None = None
        self._left = 0.0

    def start(self, seconds: float, call: Callable[[], None]) -> None:
        """Begin anew; 0 seconds means never."""
        self.cancel()
        if seconds > 0:
            self._call, self._left = call, seconds
            self.resume()

    def pause(self) -> None:
        """Stand still."""
        if self._timer is not None:
            self._left = max(0.0, self._timer.when() - asyncio.get_running_loop().time())
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        """Go on with the time that was left."""
        if self._call is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._left, self._expire, self._call)

    def cancel(self) -> None:
        """Forget it."""
        self.pause()
        self._call = None

    def _expire(self, call: Callable[[], None]) -> None:
        self._timer = self._call = None
        call()
