"""Work that takes note of what was asked of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from ostler.server.engine.protocol import NotDone, Retry, Work
from ostler.server.store.records import Job
from tests.support.patience import stretched

QUICK = Retry(first=0.05, longest=0.1, within=3600)


class Notes:
    """Does jobs of one kind; those named in `failing` fail so often before."""

    def __init__(self, failing: dict[str, int] | None = None, reason: str | Exception = "no") -> None:
        self.done: list[str] = []
        self.tried: list[str] = []
        self.bodies: list[bytes] = []
        self._failing = failing or {}
        self._error = NotDone(reason) if isinstance(reason, str) else reason

    def work(self, retry: Retry = QUICK, seconds: float = 60.0) -> Work:
        return Work(run=self._run, retry=retry, seconds=seconds)

    async def _run(self, job: Job) -> None:
        self.tried.append(job.key)
        await asyncio.sleep(0)
        if self.tried.count(job.key) <= self._failing.get(job.key, 0):
            raise self._error
        self.bodies.append(job.body)
        self.done.append(job.key)


async def until_gone(find: Callable[[str], Awaitable[Job | None]], *keys: str) -> None:
    """Wait until no job with these keys is left."""
    began = time.monotonic()
    while any([await find(key) is not None for key in keys]):
        assert time.monotonic() - began < stretched(60), f"still there: {keys}"
        await asyncio.sleep(0.02)
