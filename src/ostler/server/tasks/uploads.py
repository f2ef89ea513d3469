"""Tickets for uploads: an address that is its own permission, and what came in by it."""

import re
import secrets
import time
from pathlib import Path

import msgspec

from ostler.base import private
from ostler.base.errors import NotFound
from ostler.base.logs import never_log
from ostler.wire.workspaces import Upload, WorkspaceOrder

TICKET = re.compile(r"upt_[A-Za-z0-9_-]{43}")
_SECONDS = 24 * 3600.0


class _Filled(Upload, frozen=True, kw_only=True):
    """What a ticket's file says: the upload, and where it is."""

    runner: str | None = None
    """The id of the runner that has it; an older server wrote none."""


class Uploads:
    """A small file for each ticket: empty until its archive is there, then the upload as JSON."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def issue(self) -> tuple[str, float]:
        """A new ticket, and when it expires."""
        private.make_folder(self._folder)
        self._sweep()
        ticket = f"upt_{secrets.token_urlsafe(32)}"
        never_log(ticket)
        private.write_file(self._folder / ticket, b"")
        return ticket, time.time() + _SECONDS

    def check(self, ticket: str) -> None:
        """Raise unless this ticket is good."""
        if self._file(ticket) is None:
            hint = "Ask for a new one with POST /api/v1/uploads, and send it to the same server."
            raise NotFound(what="upload", value=ticket[:60], hint=hint)

    def fill(self, ticket: str, upload: Upload, runner: str) -> None:
        """The archive of a ticket is there, on a runner."""
        self.check(ticket)
        filled = _Filled(**msgspec.structs.asdict(upload), runner=runner)
        private.write_file(self._folder / ticket, msgspec.json.encode(filled))

    def redeemed(self, order: WorkspaceOrder) -> tuple[WorkspaceOrder, str | None]:
        """The order with the upload's own id instead of a ticket, and the runner that has it."""
        ticket = order.repo.upload
        if order.repo.mode != "upload" or ticket is None or not ticket.startswith("upt_"):
            return order, None
        file = self._file(ticket)
        content = file.read_bytes() if file is not None else b""
        try:
            upload = msgspec.json.decode(content, type=_Filled)
        except ValueError:  # it was never sent, or the disk was full
            raise NotFound(
                what="upload", value=ticket[:60], hint="Send its archive first, to the address you were given."
            ) from None
        return msgspec.structs.replace(order, repo=msgspec.structs.replace(order.repo, upload=upload.id)), upload.runner

    def _file(self, ticket: str) -> Path | None:
        file = self._folder / ticket if TICKET.fullmatch(ticket) else None
        return file if file is not None and file.exists() else None

    def _sweep(self) -> None:
        limit = time.time() - _SECONDS
        for file in self._folder.iterdir():
            if file.stat().st_mtime < limit:
                file.unlink(missing_ok=True)
