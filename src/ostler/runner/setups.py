"""Setup commands of workspaces: run once for a repository, commit and command; the result is kept for the next ones."""

import asyncio
import hashlib
import os
import shutil
from collections import defaultdict, deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ostler.base.errors import SetupFailed, SnapshotNotFound, TimedOut, WorkspaceNotFound
from ostler.base.ids import new_id
from ostler.base.private import make_folder
from ostler.base.undo import async_undone_by
from ostler.link.workspaces import Progress
from ostler.runner.processes.nursery import NurseryHandle
from ostler.runner.processes.process import CannotStart, Process
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import Starter
from ostler.runner.starting.ways import under_keeper
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import Order, UploadSource
from ostler.runner.workspaces.records import read_record, write_record
from ostler.wire.grants import Grant
from ostler.wire.provisioning import SetupOutcome
from ostler.wire.workspaces import Workspace

_MOST_RESULTS = 8
_LINE = 2000
_LAST_LINES = 5
_STOP_SECONDS = 1.0
_DAY = 86400.0
_LABEL = "setup"
_NICENESS = "5"


class SetupResult(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace that was set up, and its state then."""

    workspace: str
    snapshot: str


class Setups:
    """Runs setup commands and keeps what they made, in workspaces of their own."""

    def __init__(
        self, library: WorkspaceLibrary, root: Path, starter: Starter, *, environ: Mapping[str, str], seconds: float
    ) -> None:
        self._library = library
        self._root = root
        self._starter = starter
        self._seconds = seconds
        self._nursery = NurseryHandle(environ)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        shutil.rmtree(root / "running", ignore_errors=True)
        make_folder(root / "kept")

    def workspaces(self) -> set[str]:
        """Those that hold kept results."""
        return {result.workspace for file in self._files() if (result := read_record(file, SetupResult)) is not None}

    async def create(
        self, order: Order, grant: Grant, command: str, progress: Progress
    ) -> tuple[Workspace, SetupOutcome]:
        """A workspace that is set up; of several that want the same, one runs the command and the others wait."""
        fresh = await self._library.create(order, progress=progress)
        file = self._root / "kept" / f"{_key(order, fresh, command)}.json"
        async with async_undone_by(lambda: self._library.destroy(fresh.id)), self._locks[file.name]:
            if (forked := await self._forked(file)) is not None:
                progress("Setup: its kept result is used.")
                await self._library.destroy(fresh.id)
                return forked, "cached"
            await self._run(fresh, grant, command, progress)
            await self._library.begin(fresh.id)
            await self._keep(file, fresh)
        return fresh, "run"

    async def _forked(self, file: Path) -> Workspace | None:
        result = read_record(file, SetupResult)
        if result is None:
            return None
        os.utime(file)
        try:
            return await self._library.fork(result.snapshot)
        except (SnapshotNotFound, WorkspaceNotFound):
            await asyncio.to_thread(file.unlink, missing_ok=True)
            return None

    async def _keep(self, file: Path, workspace: Workspace) -> None:
        """Keep a copy of the workspace apart, so that it outlives the session."""
        made = await self._library.snapshot(workspace.id, _LABEL)
        template = await self._library.fork(made.id)
        state = await self._library.snapshot(template.id, _LABEL)
        write_record(file, SetupResult(workspace=template.id, snapshot=state.id))
        self._library.rest(template.id)
        for old in self._files()[:-_MOST_RESULTS]:
            result = read_record(old, SetupResult)
            old.unlink(missing_ok=True)
            if result is not None:
                await self._library.destroy(result.workspace)

    def _files(self) -> list[Path]:
        return sorted((self._root / "kept").glob("*.json"), key=lambda file: file.stat().st_mtime)

    async def _run(self, workspace: Workspace, grant: Grant, command: str, progress: Progress) -> None:
        place = self._root / "running" / new_id("set")
        make_folder(place / "spool")
        start = Start(
            grant=grant,
            argv=("nice", "-n", _NICENESS, "sh", "-c", f"exec 2>&1\n{command}"),
            home=str(place / "home"),
            cwd=workspace.path,
            workspace=workspace.id,
        )
        try:
            await self._watch(start, place / "spool", progress)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    async def _watch(self, start: Start, spool: Path, progress: Progress) -> None:
        wake = asyncio.Event()
        try:
            process = await self._starter.start(start, under_keeper(self._nursery, spool, wake.set, patience=0))
        except CannotStart as error:
            raise SetupFailed(exit="no start", output=str(error)) from error
        lines = _Lines(progress)
        try:
            async with asyncio.timeout(self._seconds or None):
                await _read_all(process, wake, lines)
        except TimeoutError:
            raise TimedOut(what="The setup command", seconds=self._seconds, hint="Make it faster.") from None
        finally:
            await asyncio.shield(process.stop(grace=_STOP_SECONDS))
            process.release()
        if process.exit.exit_code != 0:
            raise SetupFailed(exit=str(process.exit), output=" / ".join(lines.last) or "none")

    async def close(self) -> None:
        """End what runs."""
        await self._nursery.close()


class _Lines:
    """Passes output on line by line, and remembers the last ones."""

    def __init__(self, progress: Progress) -> None:
        self.last: deque[str] = deque(maxlen=_LAST_LINES)
        self._progress = progress
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-_LINE:]
        for line in lines:
            self._tell(line)

    def end(self) -> None:
        if self._rest:
            self._tell(self._rest)

    def _tell(self, line: bytes) -> None:
        text = line[:_LINE].decode(errors="replace").rstrip()
        if text:
            self.last.append(text)
            self._progress(f"Setup: {text}")


async def _read_all(process: Process, wake: asyncio.Event, lines: _Lines) -> None:
    while True:
        wake.clear()
        chunk = process.read()
        if chunk is None:
            await wake.wait()
        elif chunk:
            lines.feed(chunk)
        else:
            break
    lines.end()
    await process.wait_exit(_DAY)


def _key(order: Order, workspace: Workspace, command: str) -> str:
    upload = order.source.upload if isinstance(order.source, UploadSource) else None
    begun = workspace.commit or upload or workspace.id  # what cannot be told apart is not shared
    inner = [each.path for each in workspace.submodules if each.why_not is None]
    text = msgspec.json.encode([order.scope, workspace.url, begun, command, workspace.provider, *inner])
    return hashlib.sha256(text).hexdigest()[:32]
