"""Lines typed in a terminal, for an event loop."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def typed_lines(descriptor: int) -> Iterator["asyncio.Queue[str | None]"]:
    """A queue of lines; None means that the person closed the input."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    rest = b""

    def readable() -> None:
        nonlocal rest
        data = os.read(descriptor, 65536)
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            lines.put_nowait(line.decode("utf-8", "replace"))
        if not data:
            loop.remove_reader(descriptor)
            lines.put_nowait(None)

    loop.add_reader(descriptor, readable)
    try:
        yield lines
    finally:
        loop.remove_reader(descriptor)
