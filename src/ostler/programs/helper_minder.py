"""Ends the helpers of a server that has ended: `python -I -S helper_minder.py FD NAME=VALUE`.

FD is the read end of a pipe whose other end only the server has; it closes however the server ends. A helper is known
by a variable that it and whatever it starts were given. What is found then is killed, until nothing is found any more.
"""

import os
import signal
import sys
import time
from contextlib import suppress

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SECONDS = 30.0
_PAUSE = 0.05
_CLEAN_LOOKS = 3


def end_all(mark: bytes) -> None:
    """Kill everything that has the mark; one that is just being started shows at the next look."""
    clean = 0
    deadline = time.monotonic() + _SECONDS
    while clean < _CLEAN_LOOKS and time.monotonic() < deadline:
        found = list(_marked(mark))
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        clean = 0 if found else clean + 1
        time.sleep(_PAUSE)


def _marked(mark: bytes) -> "list[int]":
    found: list[int] = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs start-up time
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123 - the same
                if mark in file.read().split(b"\0"):
                    found.append(int(name))
    return found


def main() -> None:
    """Wait for the end of the server, then for that of its helpers."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    while os.read(int(sys.argv[1]), 1):
        pass
    end_all(os.fsencode(sys.argv[2]))


if __name__ == "__main__":
    main()
