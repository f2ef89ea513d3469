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


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """Whose an upload is; and once its archive is there, what it is and where."""

    project: str
    actor: str
    upload: Upload | None = None
    runner: str | None = None
    """The id of the runner that has it."""


class Uploads:
    """A small object for each ticket, as JSON."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def issue(self, project: str, actor: str) -> tuple[str, float]:
        """A new ticket for sessions of a project, and when it expires."""
        ticket = f"upt_{secrets.token_urlsafe(32)}"
        never_log(ticket)
        await asyncio.to_thread(self._issue, ticket, Ticket(project=project, actor=actor))
        return ticket, time.time() + _SECONDS

    def _issue(self, ticket: str, about: Ticket) -> None:
        for entry in self._objects.entries(_ROOT):
            if entry.age > _SECONDS:
                self._objects.remove(entry.key)
        self._objects.put(f"{_ROOT}/{ticket}", msgspec.json.encode(about))

    async def check(self, ticket: str) -> Ticket:
        """Whose a ticket is; raise unless it is good."""
        if (found := await self._found(ticket)) is None:
            raise NotFound(what="upload", value=ticket[:60], hint="Ask for a new one with POST /api/v1/uploads.")
        return found

    async def fill(self, ticket: str, upload: Upload, runner: str) -> None:
        """The archive of a ticket is there, on a runner."""
        filled = msgspec.structs.replace(await self.check(ticket), upload=upload, runner=runner)
        await asyncio.to_thread(self._objects.put, f"{_ROOT}/{ticket}", msgspec.json.encode(filled))

    async def redeemed(self, order: WorkspaceOrder) -> tuple[WorkspaceOrder, str | None]:
        """The order with the upload's own id instead of a ticket of its project, and the runner that has it."""
        ticket = order.repo.upload
        if order.repo.mode != "upload" or ticket is None or not ticket.startswith("upt_"):
            return order, None
        found = await self._found(ticket)
        if found is None or found.upload is None or found.project != order.scope:
            raise NotFound(
                what="upload", value=ticket[:60], hint="Send its archive first, to the address you were given."
            )
        repo = msgspec.structs.replace(order.repo, upload=found.upload.id)
        return msgspec.structs.replace(order, repo=repo), found.runner

    async def _found(self, ticket: str) -> Ticket | None:
        if not TICKET.fullmatch(ticket):
            return None
        body = await asyncio.to_thread(self._objects.get, f"{_ROOT}/{ticket}")
        try:
            return msgspec.json.decode(body or b"", type=Ticket)
        except ValueError:  # none, or of a server that did not say whose it is
            return None
