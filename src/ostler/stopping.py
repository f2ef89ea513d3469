"""How a server or a runner is told to stop, and how long that may take."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping

from ostler.base.logs import Log

log = Log(__name__)
_HARD_STOP_SECONDS = 15.0
"""After this a process that was told to stop ends whatever still hinders it; what is acknowledged is on disk."""


class Leaving:
    """What a Ctrl-C does to agents at work: at a terminal none is ended that was not named once."""

    def __init__(self, at_work: Callable[[], Mapping[str, str]], *, at_terminal: bool) -> None:
        self._at_work = at_work
        self._named: set[str] = set()
        self._at_terminal = at_terminal

    def may_end_agents(self) -> bool:
        """Whether to stop now; otherwise the person was told what a second Ctrl-C would end."""
        busy = self._at_work()
        if not busy:
            if self._at_terminal:
                print("\nStopping.", flush=True)  # below the ^C that the terminal shows
            return True
        asks = self._at_terminal and not busy.keys() <= self._named
        self._named = set(busy)
        agents = "1 agent" if len(busy) == 1 else f"{len(busy)} agents"
        print(f"\n{agents} at work: {', '.join(sorted(busy.values()))}.", flush=True)
        if asks:
            print(f"Ctrl-C again ends them. To stop only the server: kill {os.getpid()}", flush=True)
        else:
            print("Stopping them and the server.", flush=True)
        return not asks


def at_terminal() -> bool:
    """Whether a person sits in front of this process."""
    return sys.stdin is not None and sys.stdin.isatty()  # none where standard input is closed


def stop_signal(may_end_agents: Callable[[], bool]) -> "asyncio.Future[int]":
    """The Ctrl-C or SIGTERM that stops; one after it ends the process at once, keepers clean up behind it."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()

    def on_signal(number: int) -> None:
        if stop.done():
            os._exit(128 + number)
        if number == signal.SIGTERM or may_end_agents():
            stop.set_result(number)
            _end_for_certain(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    return stop


def _end_for_certain(code: int) -> None:
    """Threads cannot be ended, so one that hangs on a disk must not keep the process."""

    def give_up() -> None:
        log.error("process.ended_by_force", seconds=_HARD_STOP_SECONDS)
        os._exit(code)

    timer = threading.Timer(_HARD_STOP_SECONDS, give_up)
    timer.daemon = True
    timer.start()


async def bounded(work: Awaitable[None], seconds: float, what: str) -> None:
    """Wait for clean-up, but not for ever."""
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        log.warning("process.stop_timed_out", what=what, seconds=seconds)
