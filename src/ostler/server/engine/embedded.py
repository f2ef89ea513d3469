"""The engine that needs nothing but the store: each server does jobs that it took, in its own process."""

import asyncio
from collections.abc import Mapping

from ostler.base.errors import StoreUnavailable
from ostler.base.logs import Log
from ostler.base.retry import delay_after, delays
from ostler.base.tasks import Background
from ostler.server.engine.attempts import attempt
from ostler.server.engine.protocol import Work
from ostler.server.store.protocol import Jobs
from ostler.server.store.records import Job, NewJob

log = Log(__name__)
_MOST = 64
_LEASE_SECONDS = 15.0
"""A job of a server that was killed is taken by another so long after."""
_LOOK_SECONDS = 30.0
"""So often a server looks for jobs that others have left."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_STOP_SECONDS = 5.0
_FEWEST_TRIES = 8
"""So often a job is tried in vain, however old it is: the server may have been off for days."""


class EmbeddedEngine:
    """Implements Engine; with several servers on one store each job is done by whoever took it first."""

    def __init__(self, jobs: Jobs, owner: str) -> None:
        self._jobs = jobs
        self._owner = owner
        self._works: Mapping[str, Work] = {}
        self._woken = asyncio.Event()
        self._background = Background(log, "engine.crashed")
        self._running: dict[str, asyncio.Task[None]] = {}

    async def start(self, works: Mapping[str, Work]) -> None:
        """Do what is due from now on."""
        self._works = works
        self._background.spawn(self._serve())

    def wake(self) -> None:
        """There may be something to do."""
        self._woken.set()

    async def run(self, new: NewJob) -> None:
        """Store it; it is found when it is due."""
        await self._jobs.add(new)
        self.wake()

    async def cancel(self, key: str) -> None:
        """Forget it, and break off a try of this server."""
        await self._jobs.finish(key)
        if (running := self._running.get(key)) is not None:
            running.cancel()

    async def close(self) -> None:
        """Leave what is not done to the next server, which need not wait."""
        await self._background.aclose(seconds=_STOP_SECONDS)
        try:
            await self._jobs.release(self._owner)
        except StoreUnavailable as error:  # then it waits until our time is over
            log.warning("engine.not_released", reason=str(error))

    async def _serve(self) -> None:
        pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            self._woken.clear()
            try:
                pause = await self._begin_due()
                pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
            except StoreUnavailable as error:
                pause = next(pauses)
                log.warning("engine.store_away", reason=str(error))
            except Exception:  # one odd job or row must not end the engine of this server
                pause = next(pauses)
                log.error("engine.trouble", exc_info=True)
            await self._wait(pause)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _begin_due(self) -> float:
        """Take what is due and begin with it; gives the seconds until one should look again."""
        if self._running:
            await self._jobs.renew(self._owner, tuple(self._running), seconds=_LEASE_SECONDS)
        longest = _LEASE_SECONDS / 3 if self._running else _LOOK_SECONDS
        room, kinds = _MOST - len(self._running), tuple(self._works)
        wait = await self._jobs.next_due(kinds) if room else None
        if wait is None or wait > 0:
            return min(longest, longest if wait is None else wait)
        taken = await self._jobs.take(self._owner, kinds, room, seconds=_LEASE_SECONDS)
        for job in taken:
            self._begin(job)
        return 0.0 if taken else _FIRST_PAUSE  # else another server was faster

    def _begin(self, job: Job) -> None:
        task = self._background.spawn(self._do(job), job=job.key)
        self._running[job.key] = task
        task.add_done_callback(lambda _: self._ended(job.key))

    def _ended(self, key: str) -> None:
        del self._running[key]
        self.wake()

    async def _do(self, job: Job) -> None:
        work = self._works[job.kind]
        if await attempt(job, work):
            await self._jobs.finish(job.key)
        elif job.age >= work.retry.within and job.tries >= _FEWEST_TRIES:
            log.error("job.given_up", job=job.key, tries=job.tries + 1)
            await self._jobs.finish(job.key)
        else:
            after = delay_after(job.tries + 1, work.retry.first, work.retry.longest)
            await self._jobs.retry(job.key, self._owner, after=after)
