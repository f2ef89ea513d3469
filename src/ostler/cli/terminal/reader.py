"""Notices that nobody reads standard output any longer, also while there is nothing to write."""

import asyncio
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_reader_gone(react: Callable[[], object]) -> Iterator[None]:
    """Call this once the other end of the pipe is closed; where that cannot be seen, the next write finds it out."""
    if (watched := _watched()) is None:
        yield
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(watched.fileno())
        react()

    loop.add_reader(watched.fileno(), gone)
    try:
        yield
    finally:
        loop.remove_reader(watched.fileno())
        watched.close()


def _watched() -> "select.epoll | None":
    """Becomes readable when the pipe breaks; only Linux has it, and a file has no other end."""
    if sys.platform != "linux":
        return None
    watched = select.epoll()
    try:
        watched.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        watched.close()
        return None
    return watched
