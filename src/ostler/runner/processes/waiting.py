"""Bounded waits, and a countdown that stands still while an agent is frozen."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

_SOON = 0.01


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


class Silence:
    """Calls back when a wait lasts long though something is awaited; to begin and end one costs almost nothing."""

    def __init__(self, seconds: float, is_awaited: Callable[[], bool], call: Callable[[], None]) -> None:
        self._seconds = seconds
        self._is_awaited = is_awaited
        self._call = call
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begins(self) -> None:
        """Nothing is heard from now on."""
        self._since = time.monotonic()
        if self._timer is None and self._is_awaited():
            self._look_in(self._seconds)

    def ends(self) -> None:
        """Something was heard; the timer stays, and looks later whether the next wait is a long one."""
        self._since = None

    def cancel(self) -> None:
        """Forget it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._since is None or not self._is_awaited():
            return
        left = self._since + self._seconds - time.monotonic()
        if left > 0:
            self._look_in(left)
        else:
            self._call()


class TurnClock:
    """How long a turn has taken and may still take; stands still while the agent is frozen.

    After a restart the past is replayed to it: set `now` to the time at which something happened, then `catch_up`.
    """

    def __init__(self, limit: float, on_limit: Callable[[], None]) -> None:
        self.now: Callable[[], float] = time.monotonic
        self._limit = limit
        self._on_limit = on_limit
        self._deadline = Countdown()
        self._grace = Countdown()
        self._began: float | None = None
        self._frozen_at: float | None = None

    def start(self) -> None:
        """A turn begins."""
        self._began = self.now()
        self._deadline.start(self._limit, self._on_limit)

    def grace(self, seconds: float, call: Callable[[], None]) -> None:
        """The turn was told to end; give it a last while."""
        self._grace.start(seconds, call)
        if self._frozen_at is not None:
            self._grace.pause()

    def freeze(self) -> None:
        """Stand still."""
        self._frozen_at = self.now() if self._frozen_at is None else self._frozen_at
        self._deadline.pause()
        self._grace.pause()

    def thaw(self) -> None:
        """Go on."""
        if self._frozen_at is not None and self._began is not None:
            self._began += self.now() - self._frozen_at
        self._frozen_at = None
        self._deadline.resume()
        self._grace.resume()

    def stop(self) -> None:
        """The turn is over, or only its grace counts from here."""
        self._began = None
        self._deadline.cancel()
        self._grace.cancel()

    def catch_up(self) -> None:
        """The past has been replayed; count on with what is left of the turn's time."""
        self.now = time.monotonic
        if self._began is None or self._limit <= 0:
            return
        spent = (self.now() if self._frozen_at is None else self._frozen_at) - self._began
        self._deadline.start(max(self._limit - spent, _SOON), self._on_limit)
        if self._frozen_at is not None:
            self._deadline.pause()
