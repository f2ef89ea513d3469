"""What a server asks of the commands that people start on a runner's machine."""

from typing import Protocol

from ostler.wire.commands import CommandLog, CommandOrder, CommandResult, CommandState, CommandStream


class Commands(Protocol):
    """They end with the runner; what they said is kept within bounds. Raises CommandNotFound for an unknown id."""

    async def launch(self, order: CommandOrder) -> CommandState:
        """Start a command."""

    async def complete(self, order: CommandOrder, *, seconds: float, most: int) -> CommandResult:
        """Start a command and wait until it ends; after so many seconds it is killed. `most` are bytes of a stream."""

    async def commands(self) -> tuple[CommandState, ...]:
        """All of them, the oldest first; those that ended long ago are forgotten."""

    async def command(self, command: str) -> CommandState:
        """One of them."""

    async def signal_command(self, command: str, number: int, *, wait: float) -> CommandState:
        """Send a signal to it and what it has started, and wait for its end so many seconds."""

    async def forget_command(self, command: str) -> None:
        """Forget one that has ended; raises CommandConflict while it runs."""

    async def command_log(
        self, command: str, *, since: int, stream: CommandStream | None, tail: int | None, wait: float
    ) -> CommandLog:
        """What it said behind a number; if that is nothing, wait so many seconds for more."""

    async def type_in(self, command: str, data: bytes) -> None:
        """Write to its input; raises CommandConflict if it has none."""

    async def resize_terminal(self, command: str, columns: int, rows: int) -> None:
        """Tell its terminal how large it is; raises CommandConflict if it has none."""
