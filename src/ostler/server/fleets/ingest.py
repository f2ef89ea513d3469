"""Takes events that a leader reports into the log of its session: each once, in order, all of a request together."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from ostler.base.clock import stamped
from ostler.base.errors.fleets import EventsRefused
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.fleet import FleetState, Taken
from ostler.server.sessions.session import SessionCore
from ostler.wire import fleets
from ostler.wire.fleets import INGESTED_TYPES, MOST_ORIGINS, Gap, IngestedEvent, IngestReceipt, ReportedData
from ostler.wire.running import Draft

MOST_EVENTS = 10_000
"""In one request."""
_SHOWN = 20
"""Of what is wrong."""


class Ingest:
    """Writes what leaders report; requests for one session come one after the other."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def take(self, live: LiveSession, events: Callable[[], Sequence[IngestedEvent]]) -> IngestReceipt:
        """Write those that were not taken before, in one append; it is done also if the caller leaves.

        `events` is called when all earlier requests are done.
        """
        session = live.core
        session.refuse_if_over("events")
        await session.refuse_if_full()
        turn = self._turns.setdefault(session.id, asyncio.Lock())
        return await asyncio.shield(session.background.spawn(_take(turn, session, events)))


async def _take(turn: asyncio.Lock, session: SessionCore, made: Callable[[], Sequence[IngestedEvent]]) -> IngestReceipt:
    async with turn:  # what an earlier request wrote is durable or undone
        events = made()
        taken = dict((session.state.fleet or FleetState()).taken)
        new = []
        for event in _in_order(events):
            if event.seq is not None:
                before = taken.get(event.origin, Taken())
                if before.has(event.seq):
                    continue
                taken[event.origin] = before.after(event.seq)
            new.append(event)
        if len(taken) > MOST_ORIGINS:
            raise refused({"origin": [f"the session has events of {MOST_ORIGINS} origins already"]})
        if new:
            await session.write(*map(draft_of, new))
        return _receipt(session, events, len(new), taken)


def _in_order(events: Sequence[IngestedEvent]) -> list[IngestedEvent]:
    """Those with numbers by number, in the places where such are; those without stay where they are."""
    numbered = iter(sorted((event for event in events if event.seq is not None), key=lambda event: event.seq or 0))
    return [event if event.seq is None else next(numbered) for event in events]


def _receipt(
    session: SessionCore, events: Sequence[IngestedEvent], accepted: int, taken: dict[str, Taken]
) -> IngestReceipt:
    origins = sorted({event.origin for event in events if event.seq is not None})
    return IngestReceipt(
        accepted=accepted,
        duplicates=len(events) - accepted,
        gaps=tuple(Gap(origin=name, first=first, last=last) for name in origins for first, last in taken[name].gaps),
        last_seq={name: taken[name].last for name in origins},
        last_sequence=session.last,
    )


def read_events(body: Any, first_seq: int | None, path: Callable[[int], str]) -> tuple[IngestedEvent, ...]:
    """The events of a request; `first_seq` numbers those that say no number, `path` names the n-th for people."""
    if not isinstance(body, list):
        raise refused({"body": ["must be an array of events, or one event on each line as application/x-ndjson"]})
    if not 1 <= len(body) <= MOST_EVENTS:
        raise refused({"body": [f"has {len(body)} events; send 1 to {MOST_EVENTS}"]})
    _check_types(body, path)
    wrong: dict[str, list[str]] = {}
    found: list[IngestedEvent] = []
    for index, each in enumerate(body):
        try:
            event = msgspec.convert(each, IngestedEvent)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at ")
            wrong.setdefault(path(index) + where.strip("`").removeprefix("$"), []).append(what)
            continue
        if first_seq is not None and event.seq is None:
            event = replace(event, seq=first_seq + index)
        found.append(event)
    if wrong:
        raise refused(wrong)
    return tuple(found)


def _check_types(body: list[Any], path: Callable[[int], str]) -> None:
    types = [each.get("type") if isinstance(each, dict) else None for each in body]
    unknown = {index: kind for index, kind in enumerate(types) if kind not in INGESTED_TYPES}
    if not unknown:
        return
    names = ", ".join(dict.fromkeys(f"'{str(kind)[:60]}'" if kind is not None else "none" for kind in unknown.values()))
    raise EventsRefused(
        reason=f"Unknown type of event: {names[:1000]}. Known are {', '.join(INGESTED_TYPES)}. Nothing was taken.",
        errors={f"{path(index)}.type": [f"is no known type: {kind!r:.80}"] for index, kind in _few(unknown).items()},
    )


def refused(wrong: dict[str, list[str]]) -> EventsRefused:
    """What is wrong, by where it is."""
    (where, reasons), *_ = wrong.items()
    return EventsRefused(reason=f"{where}: {reasons[0]}. Nothing was taken.", errors=_few(wrong))


def _few(found: dict[Any, Any]) -> dict[Any, Any]:
    return dict(list(found.items())[:_SHOWN])


_DATA: dict[type, tuple[str, type[ReportedData]]] = {
    fleets.ReportFollowers: ("fleet.catalog", fleets.FleetCatalogData),
    fleets.ReportFenceStarted: ("fence.started", fleets.FenceStartedData),
    fleets.ReportFenceResult: ("fence.result", fleets.FenceResultData),
    fleets.ReportHostStarted: ("host.started", fleets.HostStartedData),
    fleets.ReportHostLog: ("host.log", fleets.HostLogData),
    fleets.ReportHostExited: ("host.exited", fleets.HostExitedData),
    fleets.ReportSummary: ("fleet.summary", fleets.FleetSummaryData),
    fleets.ReportNote: ("fleet.note", fleets.FleetNoteData),
}
"""What each becomes in the log."""


def draft_of(event: IngestedEvent) -> Draft:
    """An event as the log has it."""
    kind, data = _DATA[type(event)]
    time = None if event.ts is None else _time(event.ts)
    return drafts.reported(kind, msgspec.convert(event, data, from_attributes=True), time)


def _time(at: datetime) -> str:
    try:
        return stamped(at)
    except ValueError:
        raise refused({"ts": [f"'{at.isoformat()}' is outside of the calendar"]}) from None
