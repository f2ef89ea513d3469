"""Removes lines of the audit log that are older than the operator wants to keep them."""

import asyncio
from datetime import datetime, timedelta

from ostler.base.clock import Clock
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.server.store.audit import Audit, NewLine

log = Log(__name__)
_PAUSE_SECONDS = 3600.0
_MOST_AT_ONCE = 10_000


class AuditRetention:
    """Looks at the start and every hour; asks for nothing when lines are kept for ever."""

    def __init__(self, store: Audit, clock: Clock, days: float) -> None:
        """`days` is how long lines are kept; 0 for ever."""
        self._store = store
        self._clock = clock
        self._days = days
        self._looking = asyncio.create_task(self._look()) if days else None

    async def close(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})

    async def _look(self) -> None:
        while True:
            try:
                await self.remove_old()
            except Exception as error:  # the edge of a background task; the next look is in an hour
                log.error("audit.not_removed", exc_info=error)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def remove_old(self) -> None:
        """Remove what is too old now; the newest line of a tenant stays."""
        now = self._clock.now()
        oldest = (datetime.fromisoformat(now) - timedelta(days=self._days)).isoformat(timespec="milliseconds")
        before = oldest.replace("+00:00", "Z")
        for tenant in await self._store.tenants_with_lines_before(before):
            while (last := await self._store.remove_before(before, self._line(tenant, now), most=_MOST_AT_ONCE)) > 0:
                log.info("audit.removed", tenant=tenant, up_to=last)

    def _line(self, tenant: str, now: str) -> NewLine:
        """What tells of it in the log itself."""
        return NewLine(
            tenant=tenant,
            id=new_id("aud"),
            at=now,
            project="",
            actor="server",
            action="audit.removed",
            outcome="done",
            status=0,
        )
