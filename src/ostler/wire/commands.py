"""Commands that people start on a runner's machine: what a server orders, and what the runner tells."""

from typing import Literal

import msgspec

from ostler.wire.grants import Grant

CommandStream = Literal["stdout", "stderr", "pty"]


class CommandLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may run and be kept at once."""

    most_running: int = 64
    log_bytes: int = 2**20


class CommandOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is to be started."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = {}
    tty: bool = False
    interactive: bool = False
    """Whether its standard input stays open."""
    session: str | None = None
    """Whose home it has."""
    workspace: str | None = None
    """Inside of which it runs."""
    grant: Grant = Grant()
    limits: CommandLimits = CommandLimits()


class CommandState(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was started; times are milliseconds since 1970."""

    id: str
    argv: tuple[str, ...]
    cwd: str
    tty: bool
    interactive: bool
    created_at: int
    pid: int | None = None
    ended_at: int | None = None
    """None while it runs."""
    code: int | None = None
    """None also for one that a signal ended."""


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of what a command said."""

    sequence: int
    stream: CommandStream
    at: int
    data: bytes


class CommandLog(msgspec.Struct, frozen=True, kw_only=True):
    """What a command said, as far as it is kept."""

    entries: tuple[CommandOutput, ...]
    is_over: bool
    """Whether nothing will come any more."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """A command that was waited for, with the beginning of what it said."""

    code: int | None
    stdout: bytes
    stderr: bytes
    stdout_cut: bool
    stderr_cut: bool
    timed_out: bool
    milliseconds: int
