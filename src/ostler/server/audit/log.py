"""Writes the audit log of this server: lines in order, many at once, and each before its request is answered."""

import asyncio
from contextlib import suppress
from typing import NamedTuple

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import StoreUnavailable
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.retry import delays
from ostler.server.store.audit import Audit, NewLine

log = Log(__name__)
_MOST_TOGETHER, _MOST_WAITING = 200, 10_000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_ANSWER_SECONDS = 10.0
"""How long an answer waits for its line while the database is away; the line is still written later."""
_CLOSE_SECONDS = 3.0
"""How long the end of the server waits for lines."""
_TRIES = 6
"""How often a line is tried that something else than an absent database stands against."""
_SAME_SECONDS = 60.0
_MOST_KINDS = 1000


_SEVERAL = {"actor": "several", "action": "several", "target": "", "client": "", "project": "", "status": 0}
"""What is counted together once there are too many kinds."""


class _Waiting(NamedTuple):
    line: NewLine
    written: "asyncio.Future[None]"


def _done(some: list[_Waiting]) -> None:
    for each in some:
        if not each.written.done():
            each.written.set_result(None)


class AuditLog:
    """Adds lines; refused attempts of the same kind within a minute become two lines, the second with their number."""

    def __init__(self, store: Audit, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._lost = 0
        self._is_closing = False
        self._refused: dict[tuple[str, str, str, int], NewLine | None] = {}
        """By tenant, actor, client and status: what was refused again since a line told of it."""
        self._counting: asyncio.TimerHandle | None = None
        self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Write what waits, as far as the database can be reached."""
        self._tell_again()
        self._is_closing = True
        self._wake.set()
        await asyncio.wait({self._writing}, timeout=_CLOSE_SECONDS)
        self._writing.cancel()
        await asyncio.wait({self._writing})
        if self._waiting:
            await self._write_last()

    async def _write_last(self) -> None:
        """What the writer left: it may have been stored in part, and the store knows that."""
        left, self._waiting = self._waiting, []
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._store.append([each.line for each in left])
        except Exception as error:
            log.error("audit.not_written", lines=len(left), exc_info=error)
        finally:
            _done(left)

    async def written(self, line: NewLine) -> None:
        """Add a line; returns when it is stored."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                await asyncio.shield(self._add(line))

    def noted(self, line: NewLine) -> None:
        """Add a line that nobody waits for."""
        self._add(line)

    def refused(self, line: NewLine) -> None:
        """Add a line for an attempt that was refused, unless one of its kind was a moment ago: those are counted."""
        kind = (line.tenant, line.actor, line.client, line.status)
        if kind not in self._refused and len(self._refused) >= _MOST_KINDS:
            kind, line = (line.tenant, "", "", 0), msgspec.structs.replace(line, **_SEVERAL)
        if kind in self._refused:
            before = self._refused[kind]
            self._refused[kind] = msgspec.structs.replace(line, count=1 if before is None else before.count + 1)
            return
        self._refused[kind] = None
        self._add(line)
        if self._counting is None:
            self._counting = asyncio.get_running_loop().call_later(_SAME_SECONDS, self._tell_again)

    def line(self, **fields: str | int) -> NewLine:
        """A line of now."""
        return msgspec.convert({"id": new_id("aud"), "at": self._clock.now(), **fields}, NewLine)

    def _tell_again(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
            self._counting = None
        refused, self._refused = self._refused, {}
        for line in refused.values():
            if line is not None:
                self._add(line)

    def _add(self, line: NewLine) -> "asyncio.Future[None]":
        written = asyncio.get_running_loop().create_future()
        if len(self._waiting) >= _MOST_WAITING:
            self._lose(_Waiting(line, written))
        else:
            self._waiting.append(_Waiting(line, written))
            self._wake.set()
        return written

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while some := self._waiting[:_MOST_TOGETHER]:
                await self._write_some(some)
                del self._waiting[: len(some)]
                self._tell_of_lost(some[0].line)
            if self._is_closing:
                return

    async def _write_some(self, some: list[_Waiting]) -> None:
        failed = 0
        for pause in delays(_FIRST_PAUSE, _LONGEST_PAUSE):
            try:
                await self._store.append([each.line for each in some])
            except StoreUnavailable as error:
                log.error("audit.not_written", reason=str(error), lines=len(self._waiting))
            except Exception as error:
                log.error("audit.not_written", lines=len(self._waiting), exc_info=error)
                if len(some) > 1:  # one of them may be at fault, and must not stop the others
                    await self._write_each(some)
                    return
                failed += 1
                if failed == _TRIES:
                    self._lose(some[0])
                    return
            else:
                _done(some)
                return
            await asyncio.sleep(pause)

    async def _write_each(self, some: list[_Waiting]) -> None:
        for each in some:
            await self._write_some([each])

    def _lose(self, one: _Waiting) -> None:
        self._lost += 1
        line = one.line
        log.error("audit.lost", actor=line.actor, action=line.action, outcome=line.outcome, status=line.status)
        _done([one])

    def _tell_of_lost(self, near: NewLine) -> None:
        """More happened while the database was away than could be remembered."""
        if self._lost:
            about = {"tenant": near.tenant, "project": near.project, "actor": "server", "action": "audit.lost"}
            self._add(self.line(**about, outcome="failed", status=0, count=self._lost))
            self._lost = 0
