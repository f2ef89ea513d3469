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
_SAME_SECONDS = 60.0
_MOST_KINDS = 1000
_LONGEST = 200


class _Waiting(NamedTuple):
    line: NewLine
    written: "asyncio.Future[None]"


class AuditLog:
    """Adds lines; refused attempts of the same kind within a minute become two lines, the second with their number."""

    def __init__(self, store: Audit, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._lost = 0
        self._refused: dict[tuple[str, str, int], NewLine | None] = {}
        """By actor, client and status: what was refused again since a line told of it."""
        self._counting: asyncio.TimerHandle | None = None
        self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Write what waits, as far as the database can be reached."""
        self._tell_again()
        if self._waiting:
            with suppress(StoreUnavailable):
                await self._store.append([each.line for each in self._waiting])
        self._writing.cancel()
        await asyncio.wait({self._writing})

    async def written(self, line: NewLine) -> None:
        """Add a line; returns when it is stored."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                await asyncio.shield(self._add(line))

    def refused(self, line: NewLine) -> None:
        """Add a line for an attempt that was refused, unless one of its kind was a moment ago: those are counted."""
        kind = (line.actor, line.client, line.status)
        if kind not in self._refused and len(self._refused) >= _MOST_KINDS:
            kind = ("", "", 0)
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
            self._lost += 1
            log.error("audit.lost", actor=line.actor, action=line.action, outcome=line.outcome, status=line.status)
            written.set_result(None)
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

    async def _write_some(self, some: list[_Waiting]) -> None:
        for pause in delays(_FIRST_PAUSE, _LONGEST_PAUSE):
            try:
                await self._store.append([each.line for each in some])
            except StoreUnavailable as error:
                log.error("audit.not_written", reason=str(error), lines=len(self._waiting))
                await asyncio.sleep(pause)
                continue
            for each in some:
                if not each.written.done():
                    each.written.set_result(None)
            return

    def _tell_of_lost(self, near: NewLine) -> None:
        """More happened while the database was away than could be remembered."""
        if self._lost:
            about = {"tenant": near.tenant, "project": near.project, "actor": "server", "action": "audit.lost"}
            self._add(self.line(**about, outcome="failed", status=0, count=self._lost))
            self._lost = 0


def printable(text: str) -> str:
    """What a stranger sent, as it can be kept: a short line."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:_LONGEST])
