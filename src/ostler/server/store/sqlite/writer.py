"""The one writer: a thread that commits whatever has piled up since its last commit, in one transaction."""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ostler.base.errors import OstlerError, StoreUnavailable
from ostler.base.failpoints import failpoint
from ostler.base.logs import Log
from ostler.server.store.errors import Refused
from ostler.server.store.sql.outcomes import Outcome, settle
from ostler.server.store.sqlite.ledger import Ledger

log = Log(__name__)
T = TypeVar("T")
Work = Callable[[Ledger], Any]
Job = tuple[Work, "asyncio.Future[Any]"]


class Writer:
    """Runs jobs in the order they were submitted; a job's future is done only after its commit is on disk.

    Grouping needs no timer: while one commit waits for the disk, the next group gathers.
    """

    def __init__(self, ledger: Ledger, loop: asyncio.AbstractEventLoop) -> None:
        self._ledger = ledger
        self._loop = loop
        self.is_refused = False
        """Whether the disk did not take the last commit."""
        self._submitted: list[Job] = []
        self._groups: queue.SimpleQueue[list[Job] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ostler-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Ledger], T]) -> "asyncio.Future[T]":
        """Queue a job; its SQL becomes durable together with its group, or not at all."""
        future: asyncio.Future[T] = self._loop.create_future()
        if not self._submitted:  # whatever else is ready now comes along, and the thread is woken once
            self._loop.call_soon(self._hand_over)
        self._submitted.append((work, future))
        return future

    def _hand_over(self) -> None:
        if self._submitted:
            self._groups.put(self._submitted)
            self._submitted = []

    async def close(self) -> None:
        """Finish everything submitted so far, then end the thread."""
        self._hand_over()
        self._groups.put(None)
        await self._loop.run_in_executor(None, self._thread.join)
        self._ledger.close()

    def _run(self) -> None:
        while self._write_next():  # what a group held is let go of before the next one is waited for
            continue

    def _write_next(self) -> bool:
        """Wait for a group and commit it; False when there will be no more."""
        first = self._groups.get()
        if first is None:
            return False
        group, ended = self._gather(first)
        self._loop.call_soon_threadsafe(settle, self._commit(group))
        return not ended

    def _gather(self, group: list[Job]) -> tuple[list[Job], bool]:
        while not self._groups.empty():
            more = self._groups.get()
            if more is None:
                return group, True
            group += more
        return group, False

    def _commit(self, group: list[Job]) -> list[Outcome]:
        try:
            outcomes = self._performed(group)
            failpoint("commit.before", sqlite3.OperationalError)
            self._ledger.commit()
        except sqlite3.Error as error:
            log.error("store.commit_failed", reason=str(error), jobs=len(group))
            self._ledger.rollback()
            self.is_refused = True
            return [(future, None, StoreUnavailable(reason=str(error))) for _, future in group]
        self.is_refused = False
        failpoint("commit.after")
        return outcomes

    def _performed(self, group: list[Job]) -> list[Outcome]:
        """Run all jobs; only when one fails is it worth to be able to undo each by itself, and they run again."""
        self._ledger.begin()
        try:
            return [(future, work(self._ledger), None) for work, future in group]
        except (OstlerError, Refused, sqlite3.IntegrityError):
            self._ledger.rollback()
        self._ledger.begin()
        return [self._perform(work, future) for work, future in group]

    def _perform(self, work: Work, future: "asyncio.Future[Any]") -> Outcome:
        """Run one job so that its failure undoes only itself; an error of the database itself ends the group."""
        before = self._ledger.attempt()
        try:
            result = work(self._ledger)
        except (OstlerError, Refused, sqlite3.IntegrityError) as error:
            self._ledger.give_up(before)
            return future, None, error
        finally:
            if self._ledger.in_transaction:
                self._ledger.execute("RELEASE job")
        return future, result, None
