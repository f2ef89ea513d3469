"""The end of a process with everything below it."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress

from ostler.runner.processes.tree import birth_of, descendants, send_signal

GRACE_SECONDS = 2.0


async def end(process: Process, gently: signal.Signals) -> None:
    """End it, gently first; returns when it is gone."""
    below: dict[int, int] = {}
    if process.returncode is None:
        below = {pid: birth_of(pid) for pid in descendants(process.pid)}
        _signal(process, gently)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
    _signal(process, signal.SIGKILL)
    for pid, birth in below.items():  # also what has left the group
        if birth_of(pid) == birth:
            send_signal(pid, signal.SIGKILL)
    await process.wait()


def _signal(process: Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
