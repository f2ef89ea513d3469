"""Runs blocking work on workspaces in threads: one piece after the other for each workspace, and stopped in time."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ostler.base.errors import OstlerError, Stopping, WorkspaceLost, WorkspaceNotFound
from ostler.base.logs import Log
from ostler.runner.file_trees.stopping import Stop, Stopped, under
from ostler.runner.workspaces.storage import Storage

log = Log(__name__)
_Result = TypeVar("_Result")
_THREADS = 16
_CANCEL_SECONDS = 10.0
_CLOSE_SECONDS = 2.0


class WorkspaceThreads:
    """The threads of one runner's workspaces."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="ostler-workspace")
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._working: dict[Stop, str] = {}
        """What is under way, and in which workspace; empty for none."""
        self._doomed: set[str] = set()
        self._closing = False

    async def close(self) -> None:
        """Break off what is under way."""
        self._closing = True
        for stop in list(self._working):
            stop.request()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def alone(
        self, workspace: str, work: Callable[[], _Result], *, unwanted: Callable[[_Result], object] | None = None
    ) -> _Result:
        """Run work on one workspace, one after the other; once begun it is finished, whoever waits for it.

        Only the end of the workspace or of the server breaks it off. `unwanted` gets what nobody waits for any more.
        """
        task = self._begin(workspace, work, is_last=False)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_unheard)
            if unwanted is not None:
                task.add_done_callback(lambda done: _has_result(done) and unwanted(done.result()))
            raise

    def begin(self, workspace: str, work: Callable[[], None]) -> None:
        """The same for work that nobody waits for."""
        self._begin(workspace, work, is_last=False).add_done_callback(_noted)

    async def last(self, workspace: str, work: Callable[[], None]) -> None:
        """The same for the work that ends a workspace; what else is under way there is broken off."""
        self._storage.record(workspace)
        self._doomed.add(workspace)
        for stop, place in list(self._working.items()):
            if place == workspace:
                stop.request()
        try:
            await asyncio.shield(self._begin(workspace, work, is_last=True))
        finally:
            self._doomed.discard(workspace)
        self._locks.pop(workspace, None)

    def _begin(self, workspace: str, work: Callable[[], _Result], *, is_last: bool) -> "asyncio.Task[_Result]":
        self._storage.record(workspace)

        async def locked() -> _Result:
            async with self._locks[workspace]:
                if workspace in self._doomed and not is_last:
                    raise WorkspaceNotFound(workspace=workspace)
                return await self.run(lambda _: work(), workspace)

        task = asyncio.create_task(locked())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def run(self, work: Callable[[Stop], _Result], workspace: str = "") -> _Result:
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
            future.add_done_callback(_unheard)
            await asyncio.wait({future}, timeout=_CANCEL_SECONDS)
            raise
        except OstlerError:
            raise
        except Exception as error:  # the edge of a thread
            raise self._explained(workspace, stop, error) from error
        finally:
            del self._working[stop]

    def _explained(self, workspace: str, stop: Stop, error: Exception) -> Exception:
        """What a failure comes from, if that is known."""
        if stop.requested:
            return Stopping() if self._closing else WorkspaceNotFound(workspace=workspace)
        if workspace and (missing := self._storage.missing(workspace)) is not None:
            return WorkspaceLost(workspace=workspace, missing=missing)
        return error


def _stoppable(work: Callable[[Stop], _Result], stop: Stop) -> _Result:
    with under(stop):
        return work(stop)


def _noted(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.info("workspace.not_at_rest", reason=str(error))


def _has_result(future: "asyncio.Future[_Result]") -> bool:
    return not future.cancelled() and future.exception() is None


def _unheard(future: "asyncio.Future[_Result]") -> None:
    """Nobody waits for it any more: that it was stopped, or its workspace removed, is no news."""
    if not future.cancelled() and not isinstance(error := future.exception(), Stopped | WorkspaceNotFound | None):
        log.warning("workspace.work_failed", reason=str(error))
