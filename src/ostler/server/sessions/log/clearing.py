"""Removes the events of deleted sessions a little at a time, so that nobody waits for it."""

import asyncio
from collections import deque
from collections.abc import Iterable

from ostler.base.clock import steady_seconds
from ostler.base.errors import StoreUnavailable
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.server.store.protocol import Store

log = Log(__name__)


class Clearing:
    """What is not removed when the server ends is found again at the next start."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._waiting: deque[str] = deque()
        self._task: asyncio.Task[None] | None = None

    def add(self, sessions: Iterable[str]) -> None:
        """Remove the events of these sessions, which nobody can see any more."""
        self._waiting.extend(sessions)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = self._background.spawn(self._run())

    async def _run(self) -> None:
        is_wiped = False
        while self._waiting or not is_wiped:
            began = steady_seconds()
            try:
                if not self._waiting:
                    is_wiped = await self._store.wipe_deleted()
                elif not await self._store.clear_some_events(self._waiting[0]):
                    self._waiting.popleft()
                    is_wiped = False
            except StoreUnavailable as error:
                log.warning("clearing.put_off", sessions=len(self._waiting), error=str(error))
                return
            await asyncio.sleep(steady_seconds() - began)  # half of the writer's time is for those who wait
