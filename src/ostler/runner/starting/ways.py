"""How the process of a start is held: by a keeper, by its pipes, in a terminal, or until it has answered."""

import asyncio
import fcntl
import os
import signal
import struct
import tempfile
import termios
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ostler.base.undo import undone_by
from ostler.runner.processes.helpers import marked
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import Command, Process
from ostler.runner.runtimes.runtime import Way

_MOST_OUTPUT = 2**16
_ROWS, _COLUMNS = 50, 500  # an address must not be broken at the edge
_INSIDE = 'exec <"$0" >"$0" 2>&1; exec "$@"'
"""Who leads a session and opens a terminal has it as its controlling one."""


def under_keeper(
    nursery: NurseryHandle, folder: Path, wake: Callable[[], None], *, patience: float, freeze_after: float = 0.0
) -> Way[Process]:
    """Spooled to a folder; it works on for so many seconds without us."""
    return lambda command: Process.start(nursery, command, folder, wake, patience=patience, freeze_after=freeze_after)


async def with_pipes(command: Command) -> asyncio.subprocess.Process:
    """With three pipes, in a session of its own; it ends with us."""
    return await asyncio.create_subprocess_exec(
        *command.argv,
        env=marked(command.env),
        cwd=command.cwd,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )


async def in_terminal(command: Command) -> tuple[asyncio.subprocess.Process, int]:
    """In a terminal of its own, whose other end comes with it."""
    master, slave = os.openpty()
    try:
        with undone_by(lambda: os.close(master)):
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", _INSIDE, os.ttyname(slave), *command.argv),
                env=marked(command.env),
                cwd=command.cwd,
                stdin=slave,  # so that it is open at every moment: without that its end would show
                stdout=slave,
                stderr=slave,
                start_new_session=True,
            )
    finally:
        os.close(slave)
    return process, master


def asked(seconds: float) -> Way[tuple[int | None, bytes]]:
    """Until it ends: its code and what it printed; no code if it cannot be run or does not end in time."""

    async def ask(command: Command) -> tuple[int | None, bytes]:
        with tempfile.TemporaryFile() as output:  # whatever it leaves behind may hold on to a pipe
            try:
                process = await asyncio.create_subprocess_exec(
                    *command.argv,
                    env=marked(command.env),
                    cwd=command.cwd,
                    stdin=DEVNULL,
                    stdout=output,
                    stderr=DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                return None, b""
            code = await _code(process, seconds)
            output.seek(0)
            return code, output.read(_MOST_OUTPUT)

    return ask


async def _code(process: asyncio.subprocess.Process, seconds: float) -> int | None:
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())
