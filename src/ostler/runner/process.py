"""One agent process under its keeper, seen from the runner: pipes, exit, stop, freeze."""

import asyncio
import fcntl
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Self

import msgspec

from ostler.base.logs import Log
from ostler.runner.keeper import descendants, send_signal
from ostler.runner.nursery import NurseryHandle
from ostler.runner.stderr import StderrLog
from ostler.runner.stdin import Stdin
from ostler.runner.waiting import finished

log = Log(__name__)
CHUNK_BYTES = 65536
# Larger pipes are not faster, and an unprivileged user may only have 64 MiB of them in all.
PIPE_BYTES = 256 * 1024
ANSWER_SECONDS = 10.0
KILL_SECONDS = 5.0


class CannotStart(Exception):
    """The process could not be started; the message says why, in plain words."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What to start, where, and with which variables (these and no others)."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How the main process ended: a code or a signal, neither when its keeper was killed before it could tell."""

    exit_code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.exit_code is not None:
            return f"code {self.exit_code}"
        return f"signal {self.signal}" if self.signal is not None else "an unknown code"


class Process:
    """A running agent; `wake` is called when `read` has something to give again."""

    def __init__(self, control: socket.socket, pipes: Sequence[int], wake: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._control = control
        self._received = b""
        self.stdin = Stdin(pipes[0])
        self.stderr = StderrLog()
        self._stdout, self._stderr = pipes[1], pipes[2]
        self._open = {self._stdout, self._stderr}
        self._keeper = 0
        self.pid = 0
        self._started: asyncio.Future[str | None] = self._loop.create_future()
        self._exited: asyncio.Future[Exit] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._answers: dict[str, asyncio.Future[None]] = {}
        os.set_blocking(self._stdout, False)
        os.set_blocking(self._stderr, False)
        self._loop.add_reader(self._control, self._on_control)
        self._loop.add_reader(self._stderr, self._on_stderr)

    @classmethod
    async def start(cls, nursery: NurseryHandle, command: Command, wake: Callable[[], None]) -> Self:
        """Start a process through the nursery; raises CannotStart."""
        async with nursery.queue:
            for _ in range(2):  # a nursery that dies with the request in its hands is replaced once
                try:
                    process = cls._ask_for(nursery, wake)
                except OSError as error:
                    raise CannotStart(f"no keeper could be started for it ({error.strerror}).") from error
                try:
                    if await process._launch(command):
                        return process
                except BaseException:
                    await asyncio.shield(process._abandon())
                    raise
                process.release()
                nursery.abandon()
        raise CannotStart("no keeper could be started for it.")

    @classmethod
    def _ask_for(cls, nursery: NurseryHandle, wake: Callable[[], None]) -> Self:
        with ExitStack() as theirs, ExitStack() as ours:
            control, their_control = socket.socketpair()
            ours.callback(control.close)
            theirs.callback(their_control.close)
            stdin, our_stdin = _pipe(theirs, ours)
            our_stdout, stdout = _pipe(ours, theirs)
            our_stderr, stderr = _pipe(ours, theirs)
            with suppress(OSError):
                fcntl.fcntl(our_stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            nursery.fork_keeper((stdin, stdout, stderr, their_control.fileno()))
            control.setblocking(False)
            process = cls(control, (our_stdin, our_stdout, our_stderr), wake)
            ours.pop_all()
            return process

    async def _launch(self, command: Command) -> bool:
        """Tell the keeper what to start; False when there is no keeper."""
        request = {"argv": list(command.argv), "env": dict(command.env), "cwd": command.cwd}
        try:
            await self._loop.sock_sendall(self._control, json.dumps(request).encode() + b"\n")
        except OSError:
            return False
        if not await finished(self._started, ANSWER_SECONDS):
            raise CannotStart(f"its keeper did not answer within {ANSWER_SECONDS:g} seconds.")
        if problem := self._started.result():
            raise CannotStart(_explained(problem, command))
        return self.pid != 0

    async def _abandon(self) -> None:
        """Give up a start at any point of it; a keeper that hears nothing more kills its tree and leaves."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        await finished(self._gone, KILL_SECONDS)
        self.release()

    # What the keeper reports

    def _on_control(self) -> None:
        try:
            chunk = self._control.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._keeper_left()
            return
        *lines, self._received = (self._received + chunk).split(b"\n")
        for line in lines:
            self._on_report(json.loads(line))

    def _on_report(self, report: dict[str, Any]) -> None:
        match report:
            case {"event": "started", "pid": pid, "keeper": keeper}:
                self.pid, self._keeper = pid, keeper
                _settle(self._started, None)
            case {"event": "failed", "what": what, "message": message}:
                _settle(self._started, f"{what}:{message}")
            case {"event": "exit", "code": code, "signal": number}:
                _settle(self._exited, Exit(exit_code=code, signal=number))
            case {"event": "gone"}:
                self._on_gone()
            case {"event": answer}:
                _settle(self._answers.pop(answer, None), None)

    def _keeper_left(self) -> None:
        """The control socket closed: normal at the end; before it, the keeper was killed and its tree must follow."""
        self._loop.remove_reader(self._control)
        _settle(self._started, None)
        if not self._gone.done() and self.pid:
            log.warning("keeper.lost", keeper=self._keeper, pid=self.pid)
            _kill_below(self.pid)
        self._on_gone()

    def _on_gone(self) -> None:
        self._on_stderr()
        self.stdin.close()
        _settle(self._exited, Exit())
        _settle(self._gone, None)
        for answer in self._answers.values():
            _settle(answer, None)
        self._wake()

    # Pipes

    def read(self) -> bytes | None:
        """What stdout has: bytes, b"" at its end, None when there is nothing now (`wake` is called when there is)."""
        if self._stdout not in self._open:
            return b""
        try:
            chunk = os.read(self._stdout, CHUNK_BYTES)
        except BlockingIOError:
            if self._gone.done():
                return b""
            self._loop.add_reader(self._stdout, self._on_stdout)
            return None
        if not chunk:
            self._close_pipe(self._stdout)
        return chunk

    def _on_stdout(self) -> None:
        self._loop.remove_reader(self._stdout)
        self._wake()

    def _on_stderr(self) -> None:
        if self._stderr not in self._open:
            return
        try:
            chunk = os.read(self._stderr, CHUNK_BYTES)
        except BlockingIOError:
            return
        if chunk:
            self.stderr.feed(chunk)
        else:
            self._close_pipe(self._stderr)

    def _close_pipe(self, pipe: int) -> None:
        if pipe in self._open:
            self._open.discard(pipe)
            self._loop.remove_reader(pipe)
            os.close(pipe)

    # Commands

    @property
    def is_gone(self) -> bool:
        """Whether nothing of the process tree is alive."""
        return self._gone.done()

    async def wait_exit(self, timeout: float) -> bool:
        """Wait for the main process to end; False when the time is up."""
        return await finished(self._exited, timeout)

    @property
    def exit(self) -> Exit:
        """How it ended; only after it has."""
        return self._exited.result()

    async def stop(self, *, grace: float, force: bool = False) -> None:
        """End the whole tree: INT, TERM, KILL with a pause after each, or KILL at once; returns when it is gone."""
        if self._gone.done():
            return
        self._order({"do": "kill"} if force else {"do": "stop", "grace": grace})
        if await finished(self._gone, KILL_SECONDS + (0 if force else 2 * grace)):
            return
        self._order({"do": "kill"})
        if not await finished(self._gone, KILL_SECONDS):
            log.error("keeper.stuck", keeper=self._keeper, pid=self.pid)
            _kill_below(self._keeper)
            self._keeper_left()

    async def freeze(self) -> bool:
        """Stop the whole tree where it stands; False if the keeper did not answer."""
        return await self._ask("freeze", "frozen")

    async def thaw(self) -> bool:
        """Let it go on; False if the keeper did not answer."""
        return await self._ask("thaw", "thawed")

    async def _ask(self, verb: str, answer: str) -> bool:
        if self._gone.done():
            return True
        future = self._answers.setdefault(answer, self._loop.create_future())
        self._order({"do": verb})
        return await finished(future, ANSWER_SECONDS)

    def _order(self, order: dict[str, Any]) -> None:
        with suppress(OSError):  # a keeper that does not listen is noticed by the bounded wait that follows
            self._control.send(json.dumps(order).encode() + b"\n")

    def release(self) -> None:
        """Close everything; a keeper that still runs kills its tree when it sees that."""
        self._loop.remove_reader(self._control)
        self._control.close()
        self.stdin.close()
        self._close_pipe(self._stdout)
        self._close_pipe(self._stderr)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe whose two ends belong to different owners."""
    read_end, write_end = os.pipe()
    reader.callback(os.close, read_end)
    writer.callback(os.close, write_end)
    return read_end, write_end


def _settle(future: "asyncio.Future[Any] | None", result: Any) -> None:
    if future is not None and not future.done():
        future.set_result(result)


def _kill_below(pid: int) -> None:
    for found in (pid, *descendants(pid)):  # all of them are found before the first is killed
        send_signal(found, signal.SIGKILL)


def _explained(problem: str, command: Command) -> str:
    what, _, message = problem.partition(":")
    if what == "cwd":
        return f"its folder {command.cwd} cannot be entered ({message})."
    return f"{command.argv[0]} cannot be started ({message})."
