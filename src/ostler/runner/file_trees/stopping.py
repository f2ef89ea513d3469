"""Work in a thread that nobody may want any more: its commands are killed, and its loops end."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock


class Stopped(Exception):
    """Nobody wants this work any more."""


class Stop:
    """Ends one piece of work from another thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether nobody wants the work any more."""
        return self._requested

    def request(self) -> None:
        """Kill what runs, and whatever would be started from now on."""
        with self._lock:
            self._requested = True
            for child in self._children:
                kill_group(child)

    @contextmanager
    def watching(self, child: subprocess.Popen[bytes]) -> Iterator[None]:
        """Keep a command within reach."""
        with self._lock:
            self._children.add(child)
            if self._requested:
                kill_group(child)
        try:
            yield
        finally:
            with self._lock:
                self._children.discard(child)


_NEVER = Stop()
_current: ContextVar[Stop] = ContextVar("stop", default=_NEVER)


@contextmanager
def under(stop: Stop) -> Iterator[Stop]:
    """What is done in this block, by this thread, can be stopped."""
    token = _current.set(stop)
    try:
        yield stop
    finally:
        _current.reset(token)


def current_stop() -> Stop:
    """What can end the work of this thread."""
    return _current.get()


def check_wanted() -> None:
    """Raise Stopped if nobody wants the work of this thread; loops over files call it."""
    if _current.get().requested:
        raise Stopped


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """End a command and the helpers it started."""
    with suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
