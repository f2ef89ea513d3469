"""Processes that several sessions use: one for all that would start the same, under a keeper of its own.

A session's own process takes a seat at it and holds that as long as it lives, whatever it dies of. So nobody counts:
the shared process ends by itself when its last seat has been free for a while.
"""

import asyncio
import hashlib
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from ostler.agents.adapter import Adapter, Installation, Launch, of_shared
from ostler.base.errors import AgentStartFailed
from ostler.base.logs import Log
from ostler.base.private import make_folder, write_file
from ostler.base.tasks import Background
from ostler.base.undo import undone_by
from ostler.runner.execution.limits import Limits
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import ANSWER_SECONDS, CannotStart, Process
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import Starter
from ostler.runner.starting.ways import under_keeper
from ostler.wire.running import AgentSpec

log = Log(__name__)
_DOOR, _KEEPER, _SESSIONS = "door", "keeper", "sessions"
_TRIES = 3
_LAST_SECONDS = 2.0


class SharedProcesses:
    """One for each kind of start of the agents that may share; `folder` lies beside the folders of sessions."""

    def __init__(
        self, folder: Path, agents: Collection[str], starter: Starter, nursery: NurseryHandle, limits: Limits
    ) -> None:
        self._folder = folder
        self._agents = agents
        self._starter = starter
        self._nursery = nursery
        self._limits = limits
        self._processes: dict[Path, SharedProcess] = {}
        self._sweeps = Background(log, "shared.not_swept")

    def has(self, adapter: Adapter) -> bool:
        """Whether sessions of an agent share processes."""
        return adapter.info.can_share and adapter.info.id in self._agents

    def placed(self, adapter: Adapter, installation: Installation, spec: AgentSpec) -> AgentSpec:
        """The spec with the process that it shares, if it does: one in a workspace has files that others do not see."""
        if not self.has(adapter) or spec.workspace is not None:
            return spec
        return msgspec.structs.replace(spec, shared=str(self._folder / _key(installation, spec)))

    @asynccontextmanager
    async def seat(self, spec: AgentSpec, launch: Launch) -> AsyncIterator[None]:
        """The shared process is there, and stays until the session has its own seat; raises AgentStartFailed."""
        if spec.shared is None or launch.shared is None:
            yield
            return
        process = self._of(Path(spec.shared))
        seat = await process.seat(spec, launch.shared)
        try:
            yield
        except AgentStartFailed as error:
            raise await process.explained(error) from error
        finally:
            seat.close()

    async def recall(self) -> None:
        """Find those of an earlier server; remove what no session has any more."""
        for folder in self._folder.glob("*"):
            await self._of(folder).attach()
        await self._sweep()

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(process.stop() for process in self._processes.values()))
        await self._sweeps.wait()

    def release(self) -> None:
        """Let go of them all."""
        for process in self._processes.values():
            process.release()

    def _of(self, folder: Path) -> "SharedProcess":
        known = self._processes.get(folder)
        if known is None:
            known = SharedProcess(folder, self._starter, self._nursery, self._limits, self._on_gone)
            self._processes[folder] = known
        return known

    def _on_gone(self) -> None:
        self._sweeps.spawn(self._sweep())

    async def _sweep(self) -> None:
        for folder, process in list(self._processes.items()):
            if await process.forget_unless_needed(self._folder.parent / "sessions"):
                self._processes.pop(folder, None)


class SharedProcess:
    """One of them: its folder has its home, the files of its keeper, its door, and the names of its sessions."""

    def __init__(
        self, folder: Path, starter: Starter, nursery: NurseryHandle, limits: Limits, on_gone: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._starter = starter
        self._nursery = nursery
        self._limits = limits
        self._on_gone = on_gone
        self._process: Process | None = None
        self._alone = asyncio.Lock()
        self._wake = asyncio.Event()

    async def seat(self, spec: AgentSpec, launch: Launch) -> socket.socket:
        """A seat, at a new process if there is none; raises AgentStartFailed."""
        async with self._alone:
            try:
                await asyncio.to_thread(self._note, spec.session_id)
                for _ in range(_TRIES):
                    if (seat := await self._find_seat()) is not None:
                        return seat
                    await self._start(spec, launch)
            except (CannotStart, OSError) as error:
                reason = "it did not answer in time." if isinstance(error, TimeoutError) else str(error)
                raise _failed(spec.agent, f"its shared process: {reason}") from error
            raise _failed(spec.agent, f"its shared process ended {_TRIES} times at once.")

    async def explained(self, error: AgentStartFailed) -> AgentStartFailed:
        """The same, with what the shared process printed last if it has ended."""
        if self._process is None or not await self._process.wait_exit(_LAST_SECONDS):
            return error
        words = f"{error.fields['reason']} Its shared process printed: {self._process.stderr.last_line()}"
        return AgentStartFailed(**{**error.fields, "reason": words})

    async def attach(self) -> None:
        """Go on with the process of an earlier server, if it lives."""
        if (self._folder / _KEEPER).is_dir():
            bells = self._nursery.bells
            self._process = await Process.attach(self._folder / _KEEPER, self._on_wake, bells, thaw=True)

    async def stop(self) -> None:
        """End it."""
        if self._process is not None:
            await self._process.stop(grace=self._limits.stop_grace)
        self.release()

    def release(self) -> None:
        """Let go of it."""
        if self._process is not None:
            self._process.release()
            self._process = None

    async def forget_unless_needed(self, sessions: Path) -> bool:
        """Remove its folder if it has ended and no session that used it is there any more."""
        async with self._alone:
            if self._process is not None and not self._process.is_gone:
                return False
            forgotten = await asyncio.to_thread(self._forget, sessions)
            if forgotten:
                self.release()
            return forgotten

    def _forget(self, sessions: Path) -> bool:
        names = self._folder / _SESSIONS
        if any((sessions / note.name).exists() for note in names.glob("*")):
            return False
        shutil.rmtree(self._folder, ignore_errors=True)
        return True

    def _note(self, session: str) -> None:
        make_folder(self._folder / _SESSIONS)
        write_file(self._folder / _SESSIONS / session, b"")

    async def _find_seat(self) -> socket.socket | None:
        """A seat that was given to us; None when nobody is there, or leaves just now."""
        seat = socket.socket(socket.AF_UNIX)
        with undone_by(seat.close):
            seat.setblocking(False)
            try:
                given = await asyncio.wait_for(_asked(self._folder, seat), ANSWER_SECONDS)
            except (FileNotFoundError, ConnectionError):
                given = False
        if not given:
            seat.close()
        return seat if given else None

    async def _start(self, spec: AgentSpec, launch: Launch) -> None:
        await self.stop()
        spec = of_shared(spec)
        keeper = self._folder / _KEEPER
        await asyncio.to_thread(_make_empty, keeper)
        start = Start(
            grant=spec.grant,
            argv=launch.argv,
            env={**launch.env, **spec.env},
            home=spec.home,
            cwd=spec.cwd,
            files=launch.files,
            links=launch.links,
        )
        limits = self._limits
        held = under_keeper(
            self._nursery, keeper, self._on_wake, patience=limits.patience, freeze_after=limits.freeze_after
        )
        self._process = await self._starter.start(start, held)
        log.info("shared.started", agent=spec.agent, pid=self._process.pid)
        await self._until_open(self._process, spec.agent)

    async def _until_open(self, process: Process, agent: str) -> None:
        """Wait for the line that says that its door is open."""
        async with asyncio.timeout(self._limits.start_timeout):
            while (heard := process.read()) is None:
                self._wake.clear()
                await self._wake.wait()
        if not heard:
            raise _failed(agent, f"its shared process ended at once. It said: {process.stderr.last_line()}")

    def _on_wake(self) -> None:
        self._wake.set()
        if self._process is not None and self._process.is_gone:
            self._on_gone()


async def _asked(folder: Path, seat: socket.socket) -> bool:
    """The way over a descriptor keeps the address short, however long the folder's name."""
    loop = asyncio.get_running_loop()
    place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        await loop.sock_connect(seat, f"/proc/self/fd/{place}/{_DOOR}")
        return bool(await loop.sock_recv(seat, 1))
    finally:
        os.close(place)


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    make_folder(folder)


def _key(installation: Installation, spec: AgentSpec) -> str:
    """All that makes two starts the same; each prompt names its mode and its effort anew."""
    like = msgspec.structs.replace(
        spec, session_id="", start=0, cwd="", home="", mode=None, variant=None, resume=None, continues=None
    )
    alike = msgspec.json.encode((installation.command, like), order="sorted")
    return hashlib.sha256(alike).hexdigest()[:32]


def _failed(agent: str, reason: str) -> AgentStartFailed:
    return AgentStartFailed(agent=agent, reason=reason, exit_code=None, stderr=None)
