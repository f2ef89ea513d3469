"""What a server asks of its store about schedules. All times are seconds since 1970."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ostler.wire.schedules import FireState

FIRE = "fire"
"""The kind of the job that begins the task of a fire."""


class ScheduleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule."""

    id: str
    project: str
    name: str
    body: bytes
    """What was asked for, as JSON."""
    due: int | None
    """The next time; None if it is paused or over."""
    created_at: str


class FireRow(msgspec.Struct, frozen=True, kw_only=True):
    """One time of a schedule; there is never a second row for it."""

    schedule: str
    due: int
    state: FireState
    session: str | None = None
    reason: str | None = None
    after: int = 0
    """How much later its task begins."""

    @property
    def key(self) -> str:
        """The key of its job, and of the session that it begins."""
        return f"sch:{self.schedule}:{self.due}"


class FireJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the job of a fire has to know."""

    project: str
    schedule: str
    due: int


class Schedules(Protocol):
    """The schedules of projects, and their fires."""

    def add(self, new: ScheduleRow) -> "asyncio.Future[bool]":
        """There is one more; False if its project has the name."""
        ...

    def change(self, row: ScheduleRow) -> "asyncio.Future[bool]":
        """It has this body and this next time from now on; False if there is none."""
        ...

    def remove(self, project: str, schedule: str) -> "asyncio.Future[bool]":
        """It is gone with its fires."""
        ...

    def fire(self, row: ScheduleRow, due: int | None, fires: Sequence[FireRow], now: float) -> "asyncio.Future[bool]":
        """These times have come, and `due` is the next: in one transaction, with a job for each that waits.

        False, and nothing is changed, if its next time is not the one of the row any more: another server was faster.
        """
        ...

    def settle(self, fire: FireRow) -> "asyncio.Future[None]":
        """What became of a fire."""
        ...

    async def all(self, project: str) -> list[ScheduleRow]:
        """Those of a project, by name."""
        ...

    async def find(self, project: str, id_or_name: str) -> ScheduleRow | None:
        """One of them."""
        ...

    async def due(self, now: int) -> list[ScheduleRow]:
        """Those of all projects whose time has come."""
        ...

    async def next_due(self) -> int | None:
        """The next time of any."""
        ...

    async def fires(self, schedule: str, limit: int) -> list[FireRow]:
        """The last fires and those that wait, the newest first."""
        ...
