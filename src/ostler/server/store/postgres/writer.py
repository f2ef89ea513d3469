"""The one writer of a server: it commits whatever has piled up since its last commit, in one transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import asyncpg

from ostler.base.errors import OstlerError, StoreUnavailable
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.base.tasks import Outcome, settle
from ostler.server.store.errors import Refused
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.bursts import Lasts, gather
from ostler.server.store.postgres.connecting import FAILURES, connect_serving, passes
from ostler.server.store.postgres.dialect import EVENT_BITS
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.records import Append, AppendResult

log = Log(__name__)
T = TypeVar("T")
Work = Callable[[Transaction], Awaitable[T]]
_FIRST_DELAY, _LONGEST_DELAY = 0.05, 2.0
_MOST_EVENTS = 2 ** (EVENT_BITS - 1)
_MOST_REMEMBERED = 4096


class Job(NamedTuple):
    """Something to write."""

    work: Work[Any]
    append: Append | None
    future: "asyncio.Future[Any]"


class Writer:
    """Runs jobs in the order they were submitted; a job's future is done only after its commit.

    While the database is away, jobs wait for `patience` seconds. A commit whose answer was lost is tried again until it
    is known what became of it: what it wrote is found then, not written twice.
    """

    def __init__(self, address: Address, patience: float) -> None:
        self._address = address
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._connection: asyncpg.Connection | None = None
        self._is_writing = False
        self._is_unsure = False
        """Whether a commit was sent whose answer never came."""
        self._lasts: Lasts = {}
        self._jobs: list[Job] = []
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self.problem: str | None = None
        """Why the last jobs could not be written."""
        self._task = asyncio.create_task(self._run(), name="ostler-writer")

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._jobs and not self._is_writing

    def submit(self, work: Work[T], append: Append | None = None) -> "asyncio.Future[T]":
        """Queue a job; it becomes durable together with its group, or not at all."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.append(Job(work, append, future))
        self._wake.set()
        return future

    async def close(self) -> None:
        """Finish everything submitted so far, as far as the database can be reached."""
        self._closing.set()
        self._wake.set()
        await self._task
        self._drop()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._jobs:
                self._is_writing = True
                settle(await self._written(self._next_group()))
                self._is_writing = False
            if self._closing.is_set():
                return

    def _next_group(self) -> list[Job]:
        """What has piled up, as far as its events can be numbered in one transaction."""
        events = 0
        for count, job in enumerate(self._jobs):
            events += len(job.append.events) if job.append is not None else 0
            if events > _MOST_EVENTS and count:
                break
        else:
            count = len(self._jobs)
        group, self._jobs = self._jobs[:count], self._jobs[count:]
        return group

    async def _written(self, group: list[Job]) -> list[Outcome]:
        waits = delays(_FIRST_DELAY, _LONGEST_DELAY, within=self._patience)
        self._is_unsure = False
        while True:
            try:
                outcomes = await self._attempt(group)
            except Exception as error:  # noqa: BLE001 - the edge of a background task: all others would wait for ever
                self._drop()
                self._note(error, group)
                if not passes(error) and len(group) > 1:  # it is about one of them, and the others must not suffer
                    return [outcome for job in group for outcome in await self._written([job])]
                if not passes(error) or self._closing.is_set() or not await self._has_waited(waits):
                    return self._refused(group)
            else:
                self.problem = None
                return outcomes

    async def _has_waited(self, waits: Iterator[float]) -> bool:
        """Wait before the next try; False if there should be none. Who is closed tries once more and then gives up."""
        wait = next(waits, _LONGEST_DELAY if self._is_unsure else None)
        if wait is None:
            return False
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), wait)
        return True

    def _note(self, error: Exception, group: list[Job]) -> None:
        """Say once what is wrong; with a trace if that is no failure of the database."""
        reason = str(error) or type(error).__name__
        if self.problem is None:
            trace = not isinstance(error, FAILURES) and error
            log.error("store.commit_failed", reason=reason, jobs=len(group), exc_info=trace)
        self.problem = reason

    def _refused(self, group: list[Job]) -> list[Outcome]:
        return [(job.future, None, StoreUnavailable(reason=self.problem)) for job in group]

    async def _attempt(self, group: list[Job]) -> list[Outcome]:
        """Write a group in one transaction; nothing of it is there if this fails, or all of it."""
        if self._connection is None:
            self._connection = await connect_serving(self._address)
        outcomes = await self._at_once(self._connection, group)
        if outcomes is None:
            outcomes = await self._in_turn(self._connection, group)
        failpoint("commit.after")
        if len(self._lasts) > _MOST_REMEMBERED:
            self._lasts.clear()
        return outcomes

    async def _at_once(self, connection: asyncpg.Connection, group: list[Job]) -> list[Outcome] | None:
        """Bursts that follow what we know are one statement, which commits itself; None if these could not be."""
        gathered = gather([job.append for job in group], self._lasts)
        if gathered is None:
            return None
        failpoint("commit.before", asyncpg.PostgresConnectionError)
        self._is_unsure = not connection.is_closed()
        base = await gathered.bursts.write(connection, {name: epoch for name, (epoch, _) in gathered.lasts.items()})
        self._is_unsure = False
        if base is None:
            return None
        self._lasts.update(gathered.lasts)
        placed = zip(group, gathered.placed, strict=True)
        return [(job.future, AppendResult(base + place, size), None) for job, (place, size) in placed]

    async def _in_turn(self, connection: asyncpg.Connection, group: list[Job]) -> list[Outcome]:
        """One job after the other in one transaction."""
        whole = connection.transaction()
        await whole.start()
        transaction = Transaction(connection, self._lasts)
        await transaction.begin([job.append for job in group if job.append is not None])
        outcomes = [await _outcome(job, transaction) for job in group]
        await transaction.flush()
        failpoint("commit.before", asyncpg.PostgresConnectionError)
        self._is_unsure = True
        await whole.commit()
        self._is_unsure = False
        return outcomes

    def _drop(self) -> None:
        """Let go of the connection, its open transaction, and what was known by it."""
        self._lasts.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


async def _outcome(job: Job, transaction: Transaction) -> Outcome:
    try:
        return job.future, await job.work(transaction), None
    except (OstlerError, Refused) as error:  # decided before it wrote anything
        return job.future, None, error
