"""The engine that hands jobs to Temporal, which says when and where they are done; what they are about stays here."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import msgspec
from temporalio import activity
from temporalio.client import Client
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import Worker

from ostler.base.errors import StoreUnavailable
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.base.tasks import Background
from ostler.server.engine.attempts import attempt
from ostler.server.engine.protocol import Work
from ostler.server.engine.temporal.connecting import Access, Unreachable, connected, queue_of
from ostler.server.engine.temporal.workflow import AGAIN, GIVE_UP, PERFORM, JobOrder, JobWorkflow
from ostler.server.store.protocol import Jobs
from ostler.server.store.records import Job, NewJob

log = Log(__name__)
_BATCH = 100
_STARTED_SECONDS = 15.0
"""Another server starts what a killed one was about to start so long after."""
_KNOWN_SECONDS = 600.0
"""So often a job that is not done is named to Temporal again, which may have lost it."""
_LOOK_SECONDS = 30.0
_CALL_TIME = timedelta(seconds=10)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
_STOP_SECONDS = 5.0


class TemporalEngine:
    """Implements Engine; every server with the same deployment does what Temporal gives it."""

    def __init__(self, jobs: Jobs, owner: str, access: Access, deployment: str) -> None:
        self._jobs = jobs
        self._owner = owner
        self._access = access
        self._deployment = deployment
        self._queue = queue_of(deployment)
        self._works: Mapping[str, Work] = {}
        self._woken = asyncio.Event()
        self._batches = 0
        self._client: Client | None = None
        """Held until the end: one that the interpreter throws away too late aborts the process."""
        self._background = Background(log, "engine.crashed")

    async def start(self, works: Mapping[str, Work]) -> None:
        """Connect beside everything else: nobody waits for Temporal."""
        self._works = works
        logging.getLogger("temporalio").setLevel(logging.WARNING)
        logging.getLogger("temporalio.activity").setLevel(logging.ERROR)  # a try in vain is said by us
        self._background.spawn(self._serve())

    def wake(self) -> None:
        """There may be something to hand over."""
        self._woken.set()

    async def run(self, new: NewJob) -> None:
        """Store it; it is handed over soon."""
        await self._jobs.add(new)
        self.wake()

    async def cancel(self, key: str) -> None:
        """Forget it: Temporal finds nothing to do under this key."""
        await self._jobs.finish(key)

    async def close(self) -> None:
        """Leave what is not done to other servers, or to the next one."""
        await self._background.aclose(seconds=_STOP_SECONDS)

    async def _serve(self) -> None:
        """Connect, and again when the connection turns out to be of no use."""
        pauses, reason = delays(_FIRST_PAUSE, _LONGEST_PAUSE), ""
        while True:
            try:
                client = self._client = await connected(self._access, f"ostler-{self._owner}")
                log.info("engine.connected", address=str(self._access.address), queue=self._queue)
                pauses, reason = delays(_FIRST_PAUSE, _LONGEST_PAUSE), ""
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._worker(client).run())
                    group.create_task(self._hand_over(client))
            except* Unreachable as errors:
                now = str(errors.exceptions[0])
                if now != reason:
                    log.warning("engine.unreachable", reason=now)
                reason = now
            except* Exception as errors:
                log.error("engine.lost", exc_info=errors)
            await asyncio.sleep(next(pauses))

    def _worker(self, client: Client) -> Worker:
        return Worker(
            client,
            task_queue=self._queue,
            workflows=[JobWorkflow],
            activities=[self.perform, self.give_up],
            identity=f"ostler-{self._owner}",
        )

    # What Temporal is told

    async def _hand_over(self, client: Client) -> None:
        """Name every job to Temporal, once and then now and again."""
        pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            self._woken.clear()
            try:
                pause = await self._hand_over_some(client)
                pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE)
            except (StoreUnavailable, RPCError) as error:
                pause = next(pauses)
                log.warning("engine.not_handed_over", reason=str(error))
            try:
                async with asyncio.timeout(pause):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _hand_over_some(self, client: Client) -> float:
        """Start a workflow for each job that Temporal may not know; gives the seconds until one should look again."""
        kinds = tuple(self._works)
        wait = await self._jobs.next_due(kinds, ahead=True)
        if wait is None or wait > 0:
            return min(_LOOK_SECONDS, _LOOK_SECONDS if wait is None else wait)
        self._batches += 1
        batch = f"{self._owner}/{self._batches}"
        jobs = await self._jobs.take(batch, kinds, _BATCH, seconds=_STARTED_SECONDS, ahead=True)
        if not jobs:
            return _FIRST_PAUSE  # another server was faster
        try:
            await asyncio.gather(*(self._start_one(client, job) for job in jobs))
        except RPCError:
            await self._jobs.release(batch)
            raise
        await self._jobs.renew(batch, [job.key for job in jobs], seconds=_KNOWN_SECONDS)
        return 0.0

    async def _start_one(self, client: Client, job: Job) -> None:
        """One that runs already hears that it is asked for again, so it cannot end and miss it."""
        work = self._works[job.kind]
        order = JobOrder(
            key=job.key,
            first=work.retry.first,
            longest=work.retry.longest,
            within=work.retry.within,
            seconds=work.seconds,
        )
        await client.start_workflow(
            JobWorkflow.run,
            order,
            id=f"{self._deployment}/{job.key}",
            task_queue=self._queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            start_signal=AGAIN,
            rpc_timeout=_CALL_TIME,
        )

    # What Temporal asks for

    @activity.defn(name=PERFORM)
    async def perform(self, key: str) -> float:
        """Try to do a job; gives the seconds until it is due, and 0 if nothing is left to do."""
        with _silent(key):
            job = await self._jobs.find(key)
            if job is None:
                return 0.0
            if job.age < 0:
                return -job.age
            if (work := self._works.get(job.kind)) is None:
                raise _Vain("another server has to do this")
            if not await attempt(msgspec.structs.replace(job, tries=activity.info().attempt - 1), work):
                raise _Vain("not done")
            await self._jobs.finish(key)
        return 0.0

    @activity.defn(name=GIVE_UP)
    async def give_up(self, key: str) -> None:
        """Forget a job that was tried for long enough."""
        with _silent(key):
            log.error("job.given_up", job=key)
            await self._jobs.finish(key)


class _Vain(Exception):
    """A try in vain, in words that may stand in Temporal's history."""


@contextmanager
def _silent(key: str) -> Iterator[None]:
    """Let Temporal hear nothing but that it was in vain: why is in our log alone, since it may name an address."""
    try:
        yield
    except _Vain as error:
        raise ApplicationError(str(error), type="NotDone") from None
    except StoreUnavailable as error:
        log.warning("job.failed", job=key, reason=str(error))
        raise ApplicationError("the store is away", type="NotDone") from None
    except Exception as error:
        log.error("job.crashed", job=key, exc_info=error)
        raise ApplicationError("the server failed", type="NotDone") from None
