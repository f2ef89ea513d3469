"""What a connection talks to: a process with frames on its pipes, or something made to look like one."""

from typing import Protocol

from ostler.runner.process import Exit
from ostler.runner.stderr import StderrLog


class Input(Protocol):
    """Where frames for the agent go."""

    async def room(self, timeout: float) -> bool:
        """Wait until the agent has taken most of what it was sent; False when it does not in time."""

    def write(self, data: bytes) -> bool:
        """Send in order, later if need be; False when the agent has left far too much untaken."""


class Channel(Protocol):
    """A started agent; whoever started it gave a `wake` that is called when `read` has something to give again."""

    @property
    def stdin(self) -> Input:
        """Where frames for it go."""

    @property
    def stderr(self) -> StderrLog:
        """What it printed beside its frames."""

    @property
    def is_gone(self) -> bool:
        """Whether nothing of its process tree is alive."""

    @property
    def exit(self) -> Exit:
        """How it ended; only after it has."""

    def read(self) -> bytes | None:
        """More frames, b"" at the end, None when there is nothing now."""

    async def wait_exit(self, timeout: float) -> bool:
        """Wait for the main process to end; False when the time is up."""

    async def stop(self, *, grace: float, force: bool = False) -> None:
        """End the whole process tree; returns when it is gone."""

    async def freeze(self) -> bool:
        """Stop the whole tree where it stands; False if that failed."""

    async def thaw(self) -> bool:
        """Let it go on; False if that failed."""

    def release(self) -> None:
        """Close everything."""
