"""All commands that people started on this machine; they end with this process, however that ends."""

import asyncio
import signal
from pathlib import Path

from ostler.base.errors import Unprocessable
from ostler.base.errors.commands import CommandConflict, CommandNotFound
from ostler.base.ids import new_id
from ostler.runner.commands.running import RunningCommand, now
from ostler.runner.processes.ending import end
from ostler.runner.runtimes.runtime import Start
from ostler.runner.session_folders import SessionFolders
from ostler.runner.starting.starter import Starter
from ostler.runner.starting.ways import in_terminal, with_pipes
from ostler.wire.commands import CommandLog, CommandOrder, CommandResult, CommandState, CommandStream

_MOST_ENDED = 100
_CHUNK = 2**16


class LocalCommands:
    """Implements link.commands.Commands."""

    def __init__(self, starter: Starter, sessions: SessionFolders) -> None:
        self._starter = starter
        self._sessions = sessions
        self._commands: dict[str, RunningCommand] = {}
        self._starting = 0
        self._closing = False

    async def launch(self, order: CommandOrder) -> CommandState:
        """Start a command."""
        running = sum(not each.is_over for each in self._commands.values()) + self._starting
        if self._closing or running >= order.limits.most_running:
            raise CommandConflict(reason=f"{running} processes run already. Stop one of them first.")
        self._starting += 1
        try:
            process, master = await self._started(order)
            made = RunningCommand(new_id("prc"), order, process, master)
            self._commands[made.id] = made
        finally:
            self._starting -= 1
        self._forget_old()
        return made.state

    async def _started(self, order: CommandOrder) -> tuple[asyncio.subprocess.Process, int | None]:
        start = Start(
            grant=order.grant,
            argv=order.argv,
            env=order.env,
            home=self._sessions.home(order.session or "commands"),
            cwd=order.cwd,
            workspace=order.workspace,
        )
        try:
            if order.tty:
                return await self._starter.start(start, in_terminal)
            return await self._starter.start(start, with_pipes), None
        except (OSError, ValueError) as error:
            is_there = order.workspace is not None or await asyncio.to_thread(Path(order.cwd).is_dir)
            what = f"command: '{order.argv[0][:200]}'" if is_there else f"cwd: '{order.cwd}'"
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise Unprocessable(reason=f"{what} cannot be used ({why}).") from error

    def _forget_old(self) -> None:
        ended = [each.id for each in self._commands.values() if each.is_over]
        for name in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._commands[name]

    async def complete(self, order: CommandOrder, *, seconds: float, most: int) -> CommandResult:
        """Start a command and wait until it ends."""
        began = now()
        process, _ = await self._started(order)
        if process.stdin is not None:
            process.stdin.close()
        out, err, timed_out = _Beginning(most), _Beginning(most), False
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(process.wait(), out.read(process.stdout), err.read(process.stderr))
        except TimeoutError:
            timed_out = True
        finally:
            await asyncio.shield(end(process, signal.SIGKILL))
        code = process.returncode
        return CommandResult(
            code=code if not timed_out and code is not None and code >= 0 else None,
            stdout=bytes(out.stored),
            stderr=bytes(err.stored),
            stdout_cut=out.is_cut,
            stderr_cut=err.is_cut,
            timed_out=timed_out,
            milliseconds=now() - began,
        )

    def _command(self, command: str) -> RunningCommand:
        if (found := self._commands.get(command)) is None:
            raise CommandNotFound(process=command[:80])
        return found

    async def commands(self) -> tuple[CommandState, ...]:
        """All of them."""
        return tuple(each.state for each in self._commands.values())

    async def command(self, command: str) -> CommandState:
        """One of them."""
        return self._command(command).state

    async def signal_command(self, command: str, number: int, *, wait: float) -> CommandState:
        """Send a signal."""
        found = self._command(command)
        await found.signalled(number, wait)
        return found.state

    async def forget_command(self, command: str) -> None:
        """Forget one that has ended."""
        if not self._command(command).is_over:
            raise CommandConflict(reason=f"The process '{command}' runs. Stop it first.")
        del self._commands[command]

    async def command_log(
        self, command: str, *, since: int, stream: CommandStream | None, tail: int | None, wait: float
    ) -> CommandLog:
        """What it said."""
        return await self._command(command).log(since=since, stream=stream, tail=tail, wait=wait)

    async def type_in(self, command: str, data: bytes) -> None:
        """Write to its input."""
        await self._command(command).type_in(data)

    async def resize_terminal(self, command: str, columns: int, rows: int) -> None:
        """Tell its terminal how large it is."""
        self._command(command).resize(columns, rows)

    async def close(self) -> None:
        """End all of them."""
        self._closing = True
        await asyncio.gather(*(each.close() for each in self._commands.values()))


class _Beginning:
    """The first bytes of a pipe, which is read to its end."""

    def __init__(self, most: int) -> None:
        self.stored = bytearray()
        self.is_cut = False
        self._most = most

    async def read(self, pipe: asyncio.StreamReader | None) -> None:
        while pipe is not None and (data := await pipe.read(_CHUNK)):
            room = self._most - len(self.stored)
            self.stored += data[:room]
            self.is_cut |= len(data) > room
