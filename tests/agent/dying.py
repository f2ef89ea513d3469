"""The agent, as a program that dies at one point of one of its starts: `dying.py POINT WHOM NUMBER FILE`.

POINT is `unready` (its ready line is not written), `ready` (just after that), or `frame` (in the middle of the first
line after it). WHOM is `pid` or `keeper`; FILE counts the starts.
"""

import os
import runpy
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

Write = Callable[[int, bytes | memoryview], int]


def dying(write: Write, point: str, whom: str) -> Write:
    """A way to write that ends at a point."""
    written = 0

    def written_or_dead(descriptor: int, data: bytes | memoryview) -> int:
        nonlocal written
        if descriptor != 1:
            return write(descriptor, data)
        written += 1
        if point == "unready" and written == 1:
            _die(whom)
        if point == "frame" and written == 2:
            write(1, bytes(data)[: len(bytes(data)) // 2])
            _die(whom)
        done = write(1, data)
        if point == "ready" and written == 1:
            _die(whom)
        return done

    return written_or_dead


def _die(whom: str) -> None:
    os.kill(os.getppid() if whom == "keeper" else os.getpid(), signal.SIGKILL)
    time.sleep(60)


if __name__ == "__main__":
    point, whom, number, file = sys.argv[1:]
    with Path(file).open("a+") as starts:
        starts.write("x")
        starts.flush()
        starts.seek(0)
        if len(starts.read()) == int(number):
            os.write = dying(os.write, point, whom)  # type: ignore[assignment]  # the point of this program
    runpy.run_module("ostler.agent", run_name="__main__")
