"""One agent process under its keeper, seen from the runner: its output, its input, its end."""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from ostler.base.errors import StoreUnavailable
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.base.undo import async_undone_by, undone_by
from ostler.runner.processes.bells import Bells
from ostler.runner.processes.control import Control, Input, keeper_of
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.spool import END, OUTPUT, RUNNING, STDERR, boot
from ostler.runner.processes.stderr import StderrLog
from ostler.runner.processes.survey import noted
from ostler.runner.processes.tree import birth_of, kill_below
from ostler.runner.processes.waiting import finished

log = Log(__name__)
CHUNK_BYTES = 65536
ANSWER_SECONDS = 10.0
KILL_SECONDS = 5.0
_ACKNOWLEDGED_BYTES = 4 * 2**20


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
    ordered: str | None = None
    """Why we ended it, if we did: stop, kill, silent (it had closed its output), orphaned (no server came back)."""

    def __str__(self) -> str:
        if self.exit_code is not None:
            return f"code {self.exit_code}"
        return f"signal {self.signal}" if self.signal is not None else "an unknown code"


class Process:
    """A running agent; `wake` is called when `read` has something to give again."""

    def __init__(self, folder: Path, connection: socket.socket, wake: Callable[[], None], bells: Bells) -> None:
        self._loop = asyncio.get_running_loop()
        self._folder = folder
        self._wake = wake
        self._output: int | None = None
        self.offset = 0
        """How many bytes of its output were read here."""
        self._size = self._acknowledged = 0
        self._eof = False
        self._has_more = True
        """Whether the spool may hold something that was not read."""
        self._dropped_lines = 0
        self._last_words: StderrLog | None = None
        self.keeper = 0
        self.pid = 0
        self._started: asyncio.Future[str | None] = self._loop.create_future()
        self._exited: asyncio.Future[Exit] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._answers: dict[str, asyncio.Future[None]] = {}
        self._control = Control(
            connection, bells, rang=self._on_output, reported=self._on_report, left=self._keeper_left
        )
        self.input = Input(self._control)

    # Start

    @classmethod
    async def start(
        cls,
        nursery: NurseryHandle,
        command: Command,
        folder: Path,
        wake: Callable[[], None],
        *,
        patience: float,
        freeze_after: float = 0.0,
    ) -> Self:
        """Start a process through the nursery, spooled to an empty folder; raises CannotStart.

        When we are gone it works on for `patience` seconds, and `attach` finds it. With `freeze_after` it stands still
        after that time.
        """
        async with nursery.queue:
            for _ in range(2):  # a nursery that dies with the request in its hands is replaced once
                try:
                    process = cls._ask_for(nursery, folder, wake)
                except OSError as error:
                    raise CannotStart(f"no keeper could be started for it ({error.strerror}).") from error
                async with async_undone_by(process._abandon):
                    if await process._launch(command, patience, freeze_after):
                        return process
                process.release()
                nursery.abandon()
        raise CannotStart("no keeper could be started for it.")

    @classmethod
    def _ask_for(cls, nursery: NurseryHandle, folder: Path, wake: Callable[[], None]) -> Self:
        connection, theirs = socket.socketpair()
        with undone_by(connection.close), theirs:
            nursery.fork_keeper(theirs.fileno())
        return cls(folder, connection, wake, nursery.bells)

    async def _launch(self, command: Command, patience: float, freeze_after: float) -> bool:
        """Tell the keeper what to start; False when there is no keeper."""
        request = {"argv": list(command.argv), "env": dict(command.env), "cwd": command.cwd}
        failpoint("spawn.before")
        alone = {"patience": patience, "freeze": freeze_after}
        self._control.order({**request, **alone, "folder": str(self._folder)})
        if not await finished(self._started, ANSWER_SECONDS):
            raise CannotStart(f"its keeper did not answer within {ANSWER_SECONDS:g} seconds.")
        if problem := self._started.result():
            if problem.startswith("folder:"):
                raise StoreUnavailable(reason=f"the agent's spool: {problem.removeprefix('folder:')}")
            raise CannotStart(_explained(problem, command))
        failpoint("spawn.after")
        return self.pid != 0

    async def _abandon(self) -> None:
        """Give up a start at any point of it."""
        self._control.order({"do": "kill"})
        await finished(self._gone, KILL_SECONDS)
        self.release()

    # Another runner's process

    @classmethod
    async def attach(cls, folder: Path, wake: Callable[[], None], bells: Bells, *, thaw: bool = False) -> Self:
        """Go on with a process that an earlier runner started; one that has ended meanwhile tells how.

        With `thaw` it need not stand still any longer because nobody was there.
        """
        try:
            connection = keeper_of(folder)
        except OSError:
            connection, nobody = socket.socketpair()  # as if somebody had answered and left at once
            nobody.close()
        process = cls(folder, connection, wake, bells)
        if not await finished(process._started, ANSWER_SECONDS):
            log.error("keeper.mute", folder=str(folder))
            process._keeper_left()
        elif thaw:
            process._control.order({"do": "wake"})
        return process

    # What the keeper reports

    def _on_output(self) -> None:
        self._has_more = True
        self._wake()

    def _on_report(self, report: dict[str, Any]) -> None:
        match report:
            case {"event": "taken", "id": number}:
                self.input.taken(number)
            case {"event": "hello"}:
                self._on_hello(report)
            case {"event": "failed", "what": what, "message": message}:
                _settle(self._started, f"{what}:{message}")
            case {"event": "eof", "output": size}:
                self._size, self._eof = size, True
                self._on_output()
            case {"event": "exit", "code": code, "signal": number}:
                _settle(self._exited, Exit(exit_code=code, signal=number))
            case {"event": "gone"}:
                self._on_gone()
            case {"event": answer}:
                _settle(self._answers.pop(answer, None), None)

    def _on_hello(self, report: dict[str, Any]) -> None:
        self.pid, self.keeper = report["pid"], report["keeper"]
        self._size, self._eof, self.input.written = report["output"], report["eof"], report["written"]
        if report["exit"] is not None:
            code, number = report["exit"]
            _settle(self._exited, Exit(exit_code=code, signal=number))
        _settle(self._started, None)

    def _keeper_left(self) -> None:
        """The socket closed: normal at the end; before it, the keeper was killed and its tree must follow."""
        self._control.ignore()
        if not self._gone.done() and not (self._folder / END).exists():
            running = noted(self._folder / RUNNING)
            self.pid, self.keeper = running.get("pid", self.pid), running.get("keeper", self.keeper)
            if _is_the_same(running):
                log.warning("keeper.lost", keeper=self.keeper, pid=self.pid)
                kill_below(self.pid)
        _settle(self._started, None)
        self._on_gone()

    def _on_gone(self) -> None:
        end = noted(self._folder / END)
        known = self._exited.result() if self._exited.done() else Exit()
        code, number = end.get("code", known.exit_code), end.get("signal", known.signal)
        self._exit = Exit(exit_code=code, signal=number, ordered=end.get("ordered"))
        self._dropped_lines = end.get("dropped_lines", 0)
        self._last_words = self._last_words or self.stderr
        _settle(self._exited, self._exit)
        _settle(self._gone, None)
        self.input.close()
        for answer in self._answers.values():
            _settle(answer, None)
        self._on_output()

    # Output

    @property
    def is_drained(self) -> bool:
        """Whether everything that is there now was read."""
        return not self._has_more

    def read(self, limit: int = CHUNK_BYTES) -> bytes | None:
        """What stdout has: bytes, b"" at its end, None when there is nothing now (`wake` is called when there is)."""
        chunk = self._read_spool(limit) if self._has_more else b""
        self._has_more = len(chunk) == limit  # whatever comes later is announced
        if chunk:
            self.offset += len(chunk)
            self._acknowledge()
            return chunk
        return b"" if self._gone.done() or (self._eof and self.offset >= self._size) else None

    def _read_spool(self, limit: int) -> bytes:
        try:
            if self._output is None:
                self._output = os.open(self._folder / OUTPUT, os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(self._output, limit, self.offset)
        except FileNotFoundError:
            return b""  # it never came so far

    def _acknowledge(self) -> None:
        if self.offset - self._acknowledged > _ACKNOWLEDGED_BYTES:
            self._acknowledged = self.offset
            self._control.order({"do": "read", "upto": self.offset})

    @property
    def stderr(self) -> StderrLog:
        """What it printed beside its frames."""
        if self._last_words is not None:
            return self._last_words
        return StderrLog.of_file(self._folder / STDERR, dropped_lines=self._dropped_lines)

    # Commands

    def move(self, folder: Path) -> None:
        """Keep its files elsewhere from now on; its keeper holds them open and does not mind."""
        self._folder.rename(folder)
        self._folder = folder

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
        return self._exit if self._gone.done() else self._exited.result()

    async def stop(self, *, grace: float, force: bool = False, why: str = "stop") -> None:
        """End the whole tree: INT, TERM, KILL with a pause after each, or KILL at once; returns when it is gone."""
        if self._gone.done():
            return
        self._control.order({"do": "kill"} if force else {"do": "stop", "grace": grace, "why": why})
        if await finished(self._gone, KILL_SECONDS + (0 if force else 2 * grace)):
            return
        self._control.order({"do": "kill"})
        if not await finished(self._gone, KILL_SECONDS):
            log.error("keeper.stuck", keeper=self.keeper, pid=self.pid)
            kill_below(self.keeper)
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
        self._control.order({"do": verb})
        return await finished(future, ANSWER_SECONDS)

    def release(self) -> None:
        """Let go of it; if it runs, its keeper waits for another runner, as long as its patience lasts."""
        self._control.close()
        if self._output is not None:
            os.close(self._output)
            self._output = None


def _is_the_same(running: dict[str, Any]) -> bool:
    """Whether the agent that was noted is alive, and its number was not given to another process since."""
    births = running.get("births") or [0]
    return running.get("boot") == boot() and births[0] > 0 and birth_of(running.get("pid", 0)) == births[0]


def _settle(future: "asyncio.Future[Any] | None", result: Any) -> None:
    if future is not None and not future.done():
        future.set_result(result)


def _explained(problem: str, command: Command) -> str:
    what, _, message = problem.partition(":")
    if what == "cwd":
        return f"its folder {command.cwd} cannot be entered ({message})."
    return f"{command.argv[0]} cannot be started ({message})."
