"""Tickets for uploads: an address that is its own permission, and what came in by it."""

import asyncio
import re
import secrets
import time

import msgspec

from ostler.base.errors import NotFound
from ostler.base.logs import never_log
from ostler.server.objects.protocol import Objects
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.workspaces import Upload

TICKET = re.compile(r"upt_[A-Za-z0-9_-]{43}")
_SECONDS = 24 * 3600.0
_ROOT = "uploads"


class _Filled(Upload, frozen=True, kw_only=True):
    """What a ticket's file says: the upload, and where it is."""

    runner: str | None = None
    """The id of the runner that has it; an older server wrote none."""


class Uploads:
    """A small object for each ticket: empty until its archive is there, then the upload as JSON."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def issue(self) -> tuple[str, float]:
        """A new ticket, and when it expires."""
        ticket = f"upt_{secrets.token_urlsafe(32)}"
        never_log(ticket)
        await asyncio.to_thread(self._issue, ticket)
        return ticket, time.time() + _SECONDS

    def _issue(self, ticket: str) -> None:
        for entry in self._objects.entries(_ROOT):
            if entry.age > _SECONDS:
                self._objects.remove(entry.key)
        self._objects.put(f"{_ROOT}/{ticket}", b"")

    async def check(self, ticket: str) -> None:
        """Raise unless this ticket is good."""
        if await self._found(ticket) is None:
            raise NotFound(what="upload", value=ticket[:60], hint="Ask for a new one with POST /api/v1/uploads.")

    async def fill(self, ticket: str, upload: Upload, runner: str) -> None:
        """The archive of a ticket is there, on a runner."""
        await self.check(ticket)
        filled = _Filled(**msgspec.structs.asdict(upload), runner=runner)
        await asyncio.to_thread(self._objects.put, f"{_ROOT}/{ticket}", msgspec.json.encode(filled))

    async def redeemed(self, order: WorkspaceOrder) -> tuple[WorkspaceOrder, str | None]:
        """The order with the upload's own id instead of a ticket, and the runner that has it."""
        ticket = order.repo.upload
        if order.repo.mode != "upload" or ticket is None or not ticket.startswith("upt_"):
            return order, None
        try:
            upload = msgspec.json.decode(await self._found(ticket) or b"", type=_Filled)
        except ValueError:  # it was never sent
            raise NotFound(
                what="upload", value=ticket[:60], hint="Send its archive first, to the address you were given."
            ) from None
        return msgspec.structs.replace(order, repo=msgspec.structs.replace(order.repo, upload=upload.id)), upload.runner

    async def _found(self, ticket: str) -> bytes | None:
        return await asyncio.to_thread(self._objects.get, f"{_ROOT}/{ticket}") if TICKET.fullmatch(ticket) else None
