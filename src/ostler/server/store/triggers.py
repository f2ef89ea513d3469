"""What a server asks of its store about triggers and what came to them. All times are seconds since 1970."""

import asyncio
from typing import NamedTuple, Protocol

import msgspec

from ostler.wire.triggers import DeliveryState

DELIVERY = "delivery"
"""The kind of the job that acts on a delivery."""


class TriggerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One trigger."""

    id: str
    project: str
    name: str
    body: bytes
    """What was asked for, with its secrets, as JSON."""
    created_at: str


class DeliveryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery."""

    id: str
    trigger_id: str
    name: str
    """What its sender calls it; a trigger has none of them twice."""
    state: DeliveryState
    chain: str | None
    """Deliveries of one chain are acted on in order; None if it stands alone."""
    session: str | None = None
    reason: str | None = None
    duplicates: int = 0
    at: float
    body: bytes
    """What was sent, as JSON."""


class DeliveryJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the job of a delivery has to know."""

    delivery: str


class Begins(msgspec.Struct, frozen=True, kw_only=True):
    """What the store reads in the body of a delivery."""

    begins: float = 0.0


class Taken(NamedTuple):
    """A delivery that is stored, now or before; none if too many wait."""

    row: DeliveryRow | None
    is_new: bool


class Triggers(Protocol):
    """The triggers of projects, and their deliveries."""

    def add(self, new: TriggerRow) -> "asyncio.Future[bool]":
        """There is one more; False if its project has the name."""
        ...

    def change(self, row: TriggerRow) -> "asyncio.Future[bool]":
        """It has this body from now on; False if there is none."""
        ...

    def remove(self, project: str, trigger: str) -> "asyncio.Future[bool]":
        """It is gone with its deliveries."""
        ...

    def take(self, new: DeliveryRow, *, most: int, oldest: float, pause: float = 0.0) -> "asyncio.Future[Taken]":
        """Store a delivery, with a job for it if it waits, in one transaction; one of its name is counted instead.

        Those that are settled and from before `oldest` are forgotten; none is taken while `most` wait. With a `pause`
        its job is due so long after the one before, and its body says when, as `begins`.
        """
        ...

    def trim(self, trigger: str, *, most: int, most_bytes: int) -> "asyncio.Future[None]":
        """Forget the oldest that are settled: at most so many are left, with bodies of at most so many bytes."""
        ...

    def settle(self, row: DeliveryRow) -> "asyncio.Future[None]":
        """What became of a delivery."""
        ...

    async def all(self, project: str) -> list[TriggerRow]:
        """Those of a project, by name."""
        ...

    async def find(self, project: str, id_or_name: str) -> TriggerRow | None:
        """One of them."""
        ...

    async def named(self, trigger: str) -> TriggerRow | None:
        """One by its id, of whatever project."""
        ...

    async def deliveries(self, trigger: str, limit: int) -> list[DeliveryRow]:
        """The last deliveries, the newest first."""
        ...

    async def delivery(self, delivery: str) -> DeliveryRow | None:
        """One of them."""
        ...

    async def waiting(self, row: DeliveryRow) -> list[DeliveryRow]:
        """Those of its chain that wait, in the order they came; none after itself."""
        ...
