"""What a server asks of its store about webhooks and their calls. All times are seconds since 1970."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ostler.wire.webhooks import WebhookDeliveryState

PAUSED = "paused"
"""Why a webhook is stopped that a person paused."""


class WebhookRow(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook."""

    id: str
    project: str
    body: bytes
    """What was asked for, with its secret, as JSON."""
    position: int
    """Up to here the log of the project was looked through."""
    stopped: str | None = None
    """Why no calls are made; None if they are."""
    failing_since: float | None = None
    created_at: str


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call."""

    id: str
    webhook_id: str
    number: int
    """Calls of one chain are made in this order."""
    chain: str | None
    """The session, if its calls are made one after the other."""
    session: str | None
    type: str
    state: WebhookDeliveryState = "waiting"
    tries: int = 0
    due: float = 0.0
    until: float = 0.0
    """So long a server has it to itself, to make it."""
    status: int | None = None
    reason: str | None = None
    at: float
    body: bytes
    """What is sent."""


class Webhooks(Protocol):
    """The webhooks of projects, and their calls."""

    def add(self, new: WebhookRow, most: int) -> "asyncio.Future[bool]":
        """There is one more; False if its project has as many as it may have."""
        ...

    def change(self, row: WebhookRow, *, with_state: bool = True, at_once: bool = False) -> "asyncio.Future[bool]":
        """It has this body, is stopped or goes on, from its position if that is later; False if there is none.

        Not `with_state` it is stopped and failing as before. With `at_once` it is not failing, and calls that wait are
        due.
        """
        ...

    def remove(self, project: str, webhook: str) -> "asyncio.Future[bool]":
        """It is gone with its calls."""
        ...

    def advance(
        self, row: WebhookRow, position: int, calls: Sequence[CallRow], oldest: float
    ) -> "asyncio.Future[bool]":
        """The log was looked through up to here, and these calls are to be made; False if another server was faster.

        Calls from before `oldest` that are over are forgotten.
        """
        ...

    def trim(self, webhook: str, *, most: int, most_bytes: int) -> "asyncio.Future[None]":
        """Of the calls that are over only the newest remain, so many and so many bytes of them."""
        ...

    def call(self, new: CallRow) -> "asyncio.Future[None]":
        """There is one more call, which no event asks for."""
        ...

    def claim(self, webhook: str, now: float, until: float, limit: int) -> "asyncio.Future[list[CallRow]]":
        """Have those calls to itself for a while that are due and the first of their chain, and count the try."""
        ...

    def settle(self, call: CallRow, now: float | None, stopped: str | None) -> "asyncio.Future[None]":
        """What became of a try, unless another server has the call since; `stopped` ends all calls of the webhook.

        A failure counts from `now`; without it the webhook is not called failing.
        """
        ...

    def again(self, call: CallRow) -> "asyncio.Future[None]":
        """Make a call once more, from its first try; one that was delivered holds back no other one."""
        ...

    def let_go(self) -> "asyncio.Future[None]":
        """No server makes a call now: the one that did was killed."""
        ...

    async def all(self, project: str) -> list[WebhookRow]:
        """Those of a project, the oldest first."""
        ...

    async def active(self) -> list[WebhookRow]:
        """Those of all projects that are not stopped."""
        ...

    async def find(self, project: str, webhook: str) -> WebhookRow | None:
        """One of them."""
        ...

    async def next_due(self, webhook: str) -> float | None:
        """When the next call can be made; None if none waits."""
        ...

    async def waiting(self, webhook: str) -> int:
        """How many calls wait."""
        ...

    async def calls(self, webhook: str, limit: int) -> list[CallRow]:
        """The last calls, the newest first."""
        ...

    async def find_call(self, webhook: str, call: str) -> CallRow | None:
        """One of them."""
        ...
