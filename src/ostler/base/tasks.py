"""The owner of background work: what runs beside its caller is held, reported when it fails, and awaited at the end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ostler.base.errors import OstlerError
from ostler.base.logs import Log

T = TypeVar("T")


class Background:
    """Tasks of one owner; `failed` is the name under which an error of one is logged, with these fields.

    `over` is called whenever the last one has ended.
    """

    __slots__ = ("_failed", "_fields", "_log", "_over", "_tasks")

    def __init__(self, log: Log, failed: str, over: Callable[[], object] | None = None, **fields: str) -> None:
        self._log = log
        self._failed = failed
        self._over = over
        self._fields = fields
        self._tasks: dict[asyncio.Task[Any], dict[str, str]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, work: Coroutine[Any, Any, T], **fields: str) -> "asyncio.Task[T]":
        """Run something beside the caller; `fields` are logged as well should it fail."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = fields
        task.add_done_callback(self._ended)
        return task

    async def wait(self) -> None:
        """Wait until all that runs has ended by itself."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def aclose(self, *, seconds: float) -> None:
        """Cancel what runs, also what that begins, and wait until it has ended, but not longer than this."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._tasks and (left := until - loop.time()) > 0:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=left)
        if self._tasks:
            self._log.warning("tasks.still_running", count=len(self._tasks), seconds=seconds, **self._fields)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        fields = self._fields | self._tasks.pop(task)
        self._report(task, fields)
        if self._over is not None and not self._tasks:
            self._over()

    def _report(self, task: "asyncio.Task[Any]", fields: dict[str, str]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, OstlerError):
            self._log.warning(self._failed, reason=str(error), **fields)
        else:
            self._log.error(self._failed, exc_info=error, **fields)


Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]


def settle(outcomes: list[Outcome]) -> None:
    """Give each its result or its error; who was cancelled waits no more."""
    for future, result, error in outcomes:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
