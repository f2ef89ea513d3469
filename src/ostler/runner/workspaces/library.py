"""Workspaces of one runner, for what is built on them: runtimes, setups, delivery, and what the server sees.

    library = await WorkspaceLibrary.open(root, environ=os.environ, options=Options(...))
    workspace = await library.create(Order(source=GitSource(url=..., branch="main")), progress=print)
    entry = await library.entry(workspace.id)               # Launch: entry.command(argv), cwd entry.folder
    snapshot = await library.snapshot(workspace.id, "after turn 1")
    changes = await library.files.diff(workspace.id)        # base -> now; or between snapshots
    readme = await library.files.read(workspace.id, "README.md")
    other = await library.fork(snapshot.id)
    await library.restore(workspace.id, snapshot.id)        # the agent must be stopped
    await library.destroy(workspace.id)                     # returns at once; removal goes on behind
    await library.close()

Everything blocking runs in threads of its own. Errors are classes of base/errors/. What a killed runner left is put
right by `open`; workspaces and snapshots are still there, half-made ones are removed.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from ostler.base.clock import Clock, SystemClock
from ostler.base.logs import Log
from ostler.runner.workspaces.creation import Creation
from ostler.runner.workspaces.file_access import WorkspaceFiles
from ostler.runner.workspaces.git import Progress
from ostler.runner.workspaces.options import Options
from ostler.runner.workspaces.orders import Entry, GitSource, Order, Snapshot
from ostler.runner.workspaces.snapshots import Snapshots
from ostler.runner.workspaces.states import States
from ostler.runner.workspaces.storage import Storage
from ostler.runner.workspaces.threads import WorkspaceThreads
from ostler.wire.workspaces import ChangedBy, GitRefs, Workspace

log = Log(__name__)
_REST_SECONDS = 600.0


class WorkspaceLibrary:
    """All workspaces below one folder; one runner at a time owns it."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.states = States(storage)
        self.threads = WorkspaceThreads(storage)
        self.files = WorkspaceFiles(self.threads, self.states)
        self._creation = Creation(storage)
        self._snapshots = Snapshots(self.states)
        self._resting: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, root: Path, *, environ: Mapping[str, str], options: Options | None = None, clock: Clock | None = None
    ) -> Self:
        """Take over the folder, and put right what a killed runner left."""
        storage = Storage(root, environ=environ, options=options or Options(), clock=clock or SystemClock())
        await asyncio.to_thread(storage.open)
        made = cls(storage)
        made._resting = asyncio.create_task(made._rest_now_and_then())
        return made

    async def close(self) -> None:
        """Break off what is under way and let go of everything; workspaces stay, and agents that stay keep theirs."""
        if self._resting is not None:
            self._resting.cancel()
        await self.threads.close()
        await asyncio.to_thread(self.storage.close)

    async def refs(self, source: GitSource) -> GitRefs:
        """The branches and tags of a remote."""
        return await self.threads.run(lambda _: self.storage.mirrors.refs(source))

    async def create(self, order: Order, *, progress: Progress | None = None) -> Workspace:
        """Make a workspace; `progress` hears lines such as `Receiving objects: 45%` on the event loop."""
        tell = None if progress is None else _on_this_loop(progress)
        return await self.threads.run(lambda stop: self._creation.create(order, tell, stop))

    def get(self, workspace: str) -> Workspace:
        """One workspace; raises WorkspaceLost."""
        self.storage.check_there(workspace)
        return self.storage.record(workspace).workspace

    def all(self) -> list[Workspace]:
        """All workspaces, oldest first."""
        return self.storage.workspaces()

    async def entry(self, workspace: str) -> Entry:
        """How a process gets in; mounts the tree if need be."""
        return await self.threads.alone(workspace, lambda: self.storage.entry(workspace))

    def rest(self, workspace: str) -> None:
        """Unmount a workspace that is not in use; whatever uses it next mounts it again."""
        self.threads.begin(workspace, lambda: self.storage.rest(workspace))

    async def _rest_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_REST_SECONDS / 10)
            try:
                await self.threads.run(lambda _: self.storage.providers.rest_unused(_REST_SECONDS))
            except Exception as error:  # the edge of a background task: the next time may go well
                log.error("workspaces.not_at_rest", exc_info=error)

    async def begin(self, workspace: str) -> None:
        """It is set up: what the agent does from here on is its work."""
        await self.threads.alone(workspace, lambda: self.states.begin(workspace))

    async def destroy(self, workspace: str) -> None:
        """Remove a workspace and its snapshots, whoever is still inside; forks of them stay."""
        await self.threads.last(workspace, lambda: self.storage.destroy(workspace))

    async def snapshot(self, workspace: str, label: str = "", changed_by: ChangedBy = "agent") -> Snapshot:
        """Freeze the state of a workspace; for an exact one the agent is idle or frozen."""
        return await self.threads.alone(workspace, lambda: self._snapshots.take(workspace, label, changed_by))

    async def snapshot_if_changed(self, workspace: str, label: str, since: str) -> Snapshot | None:
        """The same of what a person changed since a tree; None if that is nothing."""
        return await self.threads.alone(workspace, lambda: self._snapshots.take_if_changed(workspace, label, since))

    def snapshots(self, workspace: str) -> list[Snapshot]:
        """The snapshots of a workspace, oldest first."""
        return self.storage.snapshots(workspace)

    async def restore(self, workspace: str, snapshot: str) -> Workspace:
        """Make a workspace what it was; raises WorkspaceBusy while processes are known to be inside."""
        return await self.threads.alone(workspace, lambda: self._snapshots.restore(workspace, snapshot))

    async def fork(self, snapshot: str) -> Workspace:
        """A new workspace that begins as a snapshot."""
        owner = self.storage.owner_of(snapshot)
        return await self.threads.alone(owner, lambda: self._creation.fork(snapshot))


def _on_this_loop(progress: Progress) -> Progress:
    """Let a thread tell the event loop."""
    loop = asyncio.get_running_loop()

    def tell(line: str) -> None:
        loop.call_soon_threadsafe(progress, line)

    return tell
