"""Workspaces of one runner: the public surface that sessions, tasks and the file API are built on.

    workspaces = await Workspaces.open(root, environ=os.environ, options=Options(...))
    workspace = await workspaces.create(Order(source=GitSource(url=..., branch="main")), progress=print)
    entry = await workspaces.entry(workspace.id)           # Launch: entry.command(argv), cwd entry.folder
    snapshot = await workspaces.snapshot(workspace.id, "after turn 1")
    changes = await workspaces.diff(workspace.id)           # base -> now; or between snapshots
    data = await workspaces.use_files(workspace.id, lambda files: files.read("README.md").data)
    other = await workspaces.fork(snapshot.id)
    await workspaces.restore(workspace.id, snapshot.id)     # the agent must be stopped
    await workspaces.destroy(workspace.id)                  # returns at once; removal goes on behind
    await workspaces.close()

Everything blocking runs in threads of its own. Errors are classes of base/errors.py. What a killed runner left is put
right by `open`; workspaces and snapshots are still there, half-made ones are removed.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Self, TypeVar

from ostler.base.clock import Clock, SystemClock
from ostler.base.errors import FileMissing, OstlerError, Stopping, WorkspaceLost, WorkspaceNotFound
from ostler.base.logs import Log
from ostler.runner.file_trees.packing import ArchiveForm, pack
from ostler.runner.file_trees.stopping import Stop, under
from ostler.runner.workspaces.files import Files
from ostler.runner.workspaces.git import Progress
from ostler.runner.workspaces.library import House, Options
from ostler.runner.workspaces.model import (
    Difference,
    DiffLimits,
    Entry,
    GitSource,
    Order,
    Refs,
    Snapshot,
    Upload,
    Verdict,
    Workspace,
)

log = Log(__name__)
_Result = TypeVar("_Result")
_THREADS = 16
_CANCEL_SECONDS = 10.0
_CLOSE_SECONDS = 2.0
_REST_SECONDS = 600.0


class Workspaces:
    """All workspaces below one folder; one runner at a time owns it."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ostler-workspace")
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._working: dict[Stop, str] = {}
        """What is under way, and in which workspace; empty for none."""
        self._doomed: set[str] = set()
        self._closing = False
        self._resting: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, root: Path, *, environ: Mapping[str, str], options: Options | None = None, clock: Clock | None = None
    ) -> Self:
        """Take over the folder, and put right what a killed runner left."""
        house = House(root, environ=environ, options=options or Options(), clock=clock or SystemClock())
        await asyncio.to_thread(house.open)
        made = cls(house)
        made._resting = asyncio.create_task(made._rest_now_and_then())
        return made

    async def close(self) -> None:
        """Break off what is under way and let go of everything; workspaces stay, and agents that stay keep theirs."""
        self._closing = True
        if self._resting is not None:
            self._resting.cancel()
        for stop in list(self._working):
            stop.request()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._house.close)

    async def providers(self) -> list[Verdict]:
        """Which snapshot providers work here, best first, and why the others do not."""
        return await self._run(lambda _: self._house.providers.verdicts())

    async def refs(self, source: GitSource) -> Refs:
        """The branches and tags of a remote."""
        return await self._run(lambda _: self._house.mirrors.refs(source))

    async def upload(self, chunks: AsyncIterable[bytes]) -> Upload:
        """Take in an archive for an UploadSource."""
        return await self._house.uploads.receive(chunks)

    async def create(self, order: Order, *, progress: Progress | None = None) -> Workspace:
        """Make a workspace; `progress` hears lines such as `Receiving objects: 45%` on the event loop."""
        tell = None if progress is None else _on_this_loop(progress)
        return await self._run(lambda stop: self._house.create(order, tell, stop))

    def get(self, workspace: str) -> Workspace:
        """One workspace; raises WorkspaceLost."""
        self._house.check_there(workspace)
        return self._house.record(workspace).workspace

    def all(self) -> list[Workspace]:
        """All workspaces, oldest first."""
        return self._house.workspaces()

    async def entry(self, workspace: str) -> Entry:
        """How a process gets in; mounts the tree if need be."""
        return await self._alone(workspace, lambda: self._house.entry(workspace))

    def rest(self, workspace: str) -> None:
        """Nobody uses it for now, so it need not stay mounted; whatever uses it next mounts it again."""
        task = asyncio.ensure_future(self._alone(workspace, lambda: self._house.rest(workspace)))
        self._tasks.add(task)
        task.add_done_callback(self._rested)

    def _rested(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.info("workspace.not_at_rest", reason=str(error))

    async def _rest_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_REST_SECONDS / 10)
            await self._run(lambda _: self._house.providers.rest_unused(_REST_SECONDS))

    async def size(self, workspace: str) -> int:
        """The bytes that a workspace and its snapshots take on disk."""
        return await self._run(lambda _: self._house.size(workspace))

    async def begin(self, workspace: str) -> None:
        """It is set up: what the agent does from here on is its work."""
        await self._alone(workspace, lambda: self._house.begin(workspace))

    async def destroy(self, workspace: str) -> None:
        """Remove a workspace and its snapshots, whoever is still inside; forks of them stay."""
        self._house.record(workspace)
        self._doomed.add(workspace)
        for stop, place in list(self._working.items()):
            if place == workspace:
                stop.request()
        try:
            await self._alone(workspace, lambda: self._house.destroy(workspace), is_last=True)
        finally:
            self._doomed.discard(workspace)
        self._locks.pop(workspace, None)

    async def snapshot(self, workspace: str, label: str = "") -> Snapshot:
        """Freeze the state of a workspace; for an exact one the agent is idle or frozen."""
        return await self._alone(workspace, lambda: self._house.snapshot(workspace, label))

    def snapshots(self, workspace: str) -> list[Snapshot]:
        """The snapshots of a workspace, oldest first."""
        return self._house.snapshots(workspace)

    async def restore(self, workspace: str, snapshot: str) -> Workspace:
        """Make a workspace what it was; raises WorkspaceBusy while processes are known to be inside."""
        return await self._alone(workspace, lambda: self._house.restore(workspace, snapshot))

    async def fork(self, snapshot: str) -> Workspace:
        """A new workspace that begins as a snapshot."""
        owner = self._house.owner_of(snapshot)
        return await self._alone(owner, lambda: self._house.fork(snapshot))

    async def diff(
        self,
        workspace: str,
        *,
        old: str = "base",
        new: str = "now",
        limits: DiffLimits | None = None,
        text: bool = True,
    ) -> Difference:
        """What differs between two states: snapshot ids, `base` or `now`. Ignored files are left out."""
        chosen = limits or DiffLimits()
        return await self._alone(workspace, lambda: self._house.diff(workspace, old, new, chosen, text=text))

    async def patch(self, workspace: str, target: BinaryIO, *, old: str = "base", new: str = "now") -> int:
        """Write the difference as a patch for `git apply`; gives its size, 0 if there is no difference."""
        return await self._alone(workspace, lambda: self._house.patch(workspace, old, new, target))

    async def use_files(self, workspace: str, use: Callable[[Files], _Result]) -> _Result:
        """Work with the files as the agent sees them; `use` runs in a thread."""
        root = await self._alone(workspace, lambda: self._house.open_tree(workspace))
        return await self._run(lambda _: _used(root, use))

    async def use_folder(self, folder: str, use: Callable[[Files], _Result]) -> _Result:
        """The same for a folder of this machine that an agent works in as it is."""
        return await self._run(lambda _: _used(_opened(folder), use))

    async def archive(self, workspace: str, form: ArchiveForm, *, with_git: bool = False) -> AsyncIterator[bytes]:
        """The whole tree as an archive, piece by piece, made as fast as it is taken."""
        root = await self._alone(workspace, lambda: self._house.open_tree(workspace))
        try:
            pieces = pack(root, form, with_git=with_git)
            while (piece := await self._run(lambda _: next(pieces, None))) is not None:
                if piece:
                    yield piece
        finally:
            os.close(root)

    async def with_house(self, workspace: str, work: Callable[[House], _Result]) -> _Result:
        """For delivery: work with what is behind while nothing else changes this workspace."""
        return await self._alone(workspace, lambda: work(self._house))

    async def _alone(self, workspace: str, work: Callable[[], _Result], *, is_last: bool = False) -> _Result:
        """Run work on one workspace, one after the other; once begun it is finished, whoever waits for it.

        Only the end of the workspace or of the server breaks it off.
        """
        self._house.record(workspace)

        async def locked() -> _Result:
            async with self._locks[workspace]:
                if workspace in self._doomed and not is_last:
                    raise WorkspaceNotFound(workspace=workspace)
                return await self._run(lambda _: work(), workspace)

        task = asyncio.create_task(locked())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    def _explained(self, workspace: str, stop: Stop, error: Exception) -> Exception:
        """What a failure comes from, if that is known."""
        if stop.requested:
            return Stopping() if self._closing else WorkspaceNotFound(workspace=workspace)
        if workspace and (missing := self._house.missing(workspace)) is not None:
            return WorkspaceLost(workspace=workspace, missing=missing)
        return error

    async def _run(self, work: Callable[[Stop], _Result], workspace: str = "") -> _Result:
        """Run work in a thread; a cancelled caller stops its commands and waits for it to clean up."""
        if self._closing:
            raise Stopping
        stop = Stop()
        self._working[stop] = workspace
        future = asyncio.get_running_loop().run_in_executor(self._threads, _stoppable, work, stop)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            stop.request()
            await asyncio.wait({future}, timeout=_CANCEL_SECONDS)
            raise
        except OstlerError:
            raise
        except Exception as error:
            raise self._explained(workspace, stop, error) from error
        finally:
            del self._working[stop]


def _stoppable(work: Callable[[Stop], _Result], stop: Stop) -> _Result:
    with under(stop):
        return work(stop)


def _used(root: int, use: Callable[[Files], _Result]) -> _Result:
    with Files(root) as files:
        return use(files)


def _opened(folder: str) -> int:
    try:
        return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FileMissing(what="folder", path=folder) from error


def _on_this_loop(progress: Progress) -> Progress:
    """Let a thread tell the event loop."""
    loop = asyncio.get_running_loop()

    def tell(line: str) -> None:
        loop.call_soon_threadsafe(progress, line)

    return tell
