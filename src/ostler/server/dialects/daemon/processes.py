"""Processes as the daemon API shows them, on every runner of this server."""

import base64
import signal
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from ostler.base.errors import InvalidRequest
from ostler.base.errors.commands import CommandNotFound
from ostler.link.commands import Commands
from ostler.link.workspaces import Workspaces
from ostler.server.dialects.daemon.machine_files import MachineFiles
from ostler.server.sessions.session import SessionCore
from ostler.wire.commands import CommandLimits, CommandLog, CommandOrder, CommandOutput, CommandState, CommandStream
from ostler.wire.grants import Grant
from ostler.wire.struct import Request, Wire
from ostler.wire.texts import Variables

LogStream = Literal["stdout", "stderr", "combined", "pty"]
_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=2**40)]


class DaemonProcessConfig(Request, frozen=True, kw_only=True, rename="camel"):
    """What processes may take; for those that are started from then on, until the server ends."""

    default_run_timeout_ms: _Count = 30_000
    max_concurrent_processes: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 64
    max_input_bytes_per_request: _Count = 65_536
    max_log_bytes_per_process: Annotated[int, msgspec.Meta(ge=1024, le=2**26)] = 2**20
    max_output_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**26)] = 2**20
    max_run_timeout_ms: _Count = 300_000


class DaemonProcessCreate(Request, frozen=True, kw_only=True):
    """A program that is started; no shell looks at its arguments."""

    command: _Word
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: Variables | None = None
    tty: bool | None = None
    interactive: bool | None = None
    """Whether its input stays open; it always does with `tty`."""


class DaemonProcessRun(Request, frozen=True, kw_only=True, rename="camel"):
    """A program that is waited for."""

    command: _Word
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: Variables | None = None
    timeout_ms: _Count | None = None
    max_output_bytes: _Count | None = None


class DaemonProcess(Wire, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """A process; times are milliseconds since 1970."""

    id: str
    command: str
    args: tuple[str, ...]
    cwd: str
    pid: int | None
    status: Literal["running", "exited"]
    exit_code: int | None
    created_at_ms: int
    exited_at_ms: int | None
    tty: bool
    interactive: bool
    owner: Literal["user"] = "user"


class DaemonProcesses(Wire, frozen=True, kw_only=True):
    """All of them, the oldest first."""

    processes: tuple[DaemonProcess, ...]


class DaemonProcessResult(Wire, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """What came of a run; output beyond the limit is left out."""

    exit_code: int | None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    timed_out: bool
    duration_ms: int


class DaemonProcessLogEntry(Wire, frozen=True, kw_only=True, rename="camel", omit_defaults=False):
    """A piece of what a process said, in base64."""

    sequence: int
    stream: LogStream
    timestamp_ms: int
    data: str
    encoding: Literal["base64"] = "base64"


class DaemonProcessLogs(Wire, frozen=True, kw_only=True, rename="camel"):
    """What is kept of it."""

    process_id: str
    stream: LogStream
    entries: tuple[DaemonProcessLogEntry, ...]


class DaemonProcessInput(Request, frozen=True, kw_only=True):
    """What is typed."""

    data: str
    encoding: Literal["utf8", "utf-8", "text", "base64"] | None = None


class DaemonProcessTyped(Wire, frozen=True, kw_only=True, rename="camel"):
    """How much was typed."""

    bytes_written: int


class DaemonTerminalSize(Request, frozen=True, kw_only=True):
    """How large a terminal is."""

    cols: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    rows: Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class Beginning(msgspec.Struct, frozen=True, kw_only=True):
    """Where a process begins, and for whom."""

    runner: str
    workspaces: Workspaces
    session: SessionCore | None
    grant: Grant

    async def order(self, wanted: DaemonProcessCreate | DaemonProcessRun, limits: CommandLimits) -> CommandOrder:
        """What its runner is asked for; raises if nobody may use the folder."""
        files = MachineFiles(self.workspaces, self.session)
        for field, words in {"command": (wanted.command,), "args": wanted.args}.items():
            if any("\0" in word for word in words):  # a program would see what is before it
                raise InvalidRequest(reason=f"{field}: holds a null character.", errors={field: ["a null character"]})
        cwd, workspace = await self._folder(files, wanted.cwd or "")
        return CommandOrder(
            argv=(wanted.command, *wanted.args),
            cwd=cwd,
            env=dict(wanted.env or {}),
            session=self.session.id if self.session is not None else None,
            workspace=workspace,
            grant=self.grant,
            limits=limits,
        )

    async def _folder(self, files: MachineFiles, cwd: str) -> tuple[str, str | None]:
        """Where it begins, and the workspace that this is in."""
        if not cwd and self.session is None:
            return await files.first_root(), None
        place = await files.find(cwd)
        return place.shown, None if place.place.startswith("/") else place.place


class Processes:
    """Those of the runners that can be reached; each is found again by the runner that its id begins with."""

    def __init__(self, machines: Mapping[str, Workspaces], config: DaemonProcessConfig) -> None:
        """`machines` are the runners by their ids."""
        self._machines = machines
        self._config = config
        self._limits = CommandLimits(
            most_running=config.max_concurrent_processes, log_bytes=config.max_log_bytes_per_process
        )

    async def start(self, wanted: DaemonProcessCreate, at: Beginning) -> DaemonProcess:
        """Start one."""
        order = await at.order(wanted, self._limits)
        order = msgspec.structs.replace(order, tty=bool(wanted.tty), interactive=bool(wanted.interactive or wanted.tty))
        return _shown(at.runner, await at.workspaces.programs.launch(order))

    async def run(self, wanted: DaemonProcessRun, at: Beginning) -> DaemonProcessResult:
        """Start one and wait for its end."""
        most, longest = self._config.max_output_bytes, self._config.max_run_timeout_ms
        timeout = min(wanted.timeout_ms or self._config.default_run_timeout_ms, longest)
        order = await at.order(wanted, self._limits)
        done = await at.workspaces.programs.complete(
            order, seconds=timeout / 1000, most=min(wanted.max_output_bytes or most, most)
        )
        return DaemonProcessResult(
            exit_code=done.code,
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
            stdout_truncated=done.stdout_cut,
            stderr_truncated=done.stderr_cut,
            timed_out=done.timed_out,
            duration_ms=done.milliseconds,
        )

    async def all(self) -> DaemonProcesses:
        """Those of every runner."""
        found: list[DaemonProcess] = []
        for runner, machine in self._machines.items():
            found += [_shown(runner, each) for each in await machine.programs.commands()]
        return DaemonProcesses(processes=tuple(sorted(found, key=lambda each: each.created_at_ms)))

    def of(self, process: str) -> "Handle":
        """One of them; raises CommandNotFound."""
        runner, _, name = process.rpartition(".")
        if (machine := self._machines.get(runner)) is None:
            raise CommandNotFound(process=process[:80])
        return Handle(machine.programs, runner, name)


class Handle:
    """One process."""

    def __init__(self, commands: Commands, runner: str, name: str) -> None:
        self._commands = commands
        self._runner = runner
        self._name = name
        self.id = f"{runner}.{name}"

    async def shown(self) -> DaemonProcess:
        """How it stands."""
        return _shown(self._runner, await self._commands.command(self._name))

    async def signal(self, number: signal.Signals, wait_ms: int) -> DaemonProcess:
        """Send a signal to it and what it started."""
        wait = min(wait_ms, 60_000) / 1000
        return _shown(self._runner, await self._commands.signal_command(self._name, number, wait=wait))

    async def forget(self) -> None:
        """Forget one that has ended."""
        await self._commands.forget_command(self._name)

    async def log(self, since: int, stream: LogStream | None, tail: int | None = None, wait: float = 0) -> CommandLog:
        """What it said."""
        only: CommandStream | None = stream if stream != "combined" else None
        return await self._commands.command_log(self._name, since=since, stream=only, tail=tail, wait=wait)

    async def type_in(self, given: DaemonProcessInput, most: int) -> DaemonProcessTyped:
        """Type something."""
        data = decoded(given)
        if len(data) > most:
            reason = f"data: {len(data)} bytes are more than the {most} of maxInputBytesPerRequest. Send it in pieces."
            raise InvalidRequest(reason=reason, errors={"data": [reason]})
        await self._commands.type_in(self._name, data)
        return DaemonProcessTyped(bytes_written=len(data))

    async def resize(self, size: DaemonTerminalSize) -> DaemonTerminalSize:
        """Tell its terminal how large it is."""
        await self._commands.resize_terminal(self._name, size.cols, size.rows)
        return size


def decoded(given: DaemonProcessInput) -> bytes:
    """The bytes that a client means."""
    if given.encoding != "base64":
        return given.data.encode()
    try:
        return base64.b64decode(given.data, validate=True)
    except ValueError as error:  # also for letters that base64 does not have
        raise InvalidRequest(reason="data: is not base64.", errors={"data": ["is not base64"]}) from error


def log_entry(entry: CommandOutput) -> DaemonProcessLogEntry:
    """A piece as the daemon API shows it."""
    data = base64.b64encode(entry.data).decode()
    return DaemonProcessLogEntry(sequence=entry.sequence, stream=entry.stream, timestamp_ms=entry.at, data=data)


class LogStreamCursor:
    """What a process says, as an event stream that ends with it."""

    def __init__(
        self, handle: Handle, since: int, stream: LogStream | None, tail: int | None, heartbeat: float
    ) -> None:
        self._handle = handle
        self._since = since
        self._stream = stream
        self._tail = tail
        self._heartbeat = heartbeat

    async def next(self) -> bytes | None:
        """The next bytes to write."""
        found = await self._handle.log(self._since, self._stream, self._tail, wait=self._heartbeat)
        self._tail = None
        if found.entries:
            self._since = found.entries[-1].sequence
            shown = ((each.sequence, msgspec.json.encode(log_entry(each))) for each in found.entries)
            return b"".join(b"event: log\nid: %d\ndata: %b\n\n" % each for each in shown)
        return None if found.is_over else b": still here\n\n"


def _shown(runner: str, state: CommandState) -> DaemonProcess:
    command, *args = state.argv
    return DaemonProcess(
        id=f"{runner}.{state.id}",
        command=command,
        args=tuple(args),
        cwd=state.cwd,
        pid=state.pid,
        status="running" if state.ended_at is None else "exited",
        exit_code=state.code,
        created_at_ms=state.created_at,
        exited_at_ms=state.ended_at,
        tty=state.tty,
        interactive=state.interactive,
    )
