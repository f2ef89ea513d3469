"""Schedules in every SQL store; `store/schedules.py` says what the verbs mean."""

import asyncio
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ostler.server.store.schedules import FIRE, FireJob, FireRow, ScheduleRow
from ostler.server.store.sql.reading import Query, row_of, rows_of, values_of
from ostler.server.store.sql.verbs import Reader, Writes

_COLUMNS = "id, project, name, body, due, created_at"
_FIRES = "schedule, due, state, session, reason"
_SELECT = f"SELECT {_COLUMNS} FROM schedules"  # noqa: S608  fixed columns

_HELD_SECONDS = 30 * 24 * 3600
"""What became of a time is known so long."""


class SqlSchedules:
    """Implements Schedules."""

    def __init__(self, reader: Reader, writes: Writes) -> None:
        self._reader = reader
        self._writes = writes

    def add(self, new: ScheduleRow) -> "asyncio.Future[bool]":
        """Add a row."""
        return self._writes(lambda: _add(new))

    def change(self, row: ScheduleRow) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._writes(lambda: _change(row))

    def remove(self, project: str, schedule: str) -> "asyncio.Future[bool]":
        """Remove a row and its fires."""
        return self._writes(lambda: _remove(project, schedule))

    def fire(self, row: ScheduleRow, due: int | None, fires: Sequence[FireRow], now: float) -> "asyncio.Future[bool]":
        """Move a schedule on, with the fires between."""
        return self._writes(lambda: _fire(row, due, fires, now))

    def settle(self, fire: FireRow) -> "asyncio.Future[None]":
        """Change a fire."""
        return self._writes(lambda: _settle(fire))

    async def all(self, project: str) -> list[ScheduleRow]:
        """The rows of a project."""
        return await self._reader.read(lambda: _all(project))

    async def find(self, project: str, id_or_name: str) -> ScheduleRow | None:
        """One row."""
        return await self._reader.read(lambda: _find(project, id_or_name))

    async def due(self, now: int) -> list[ScheduleRow]:
        """The rows whose time has come."""
        return await self._reader.read(lambda: _due(now))

    async def next_due(self) -> int | None:
        """The least time of all rows."""
        return await self._reader.read(_next_due)

    async def fires(self, schedule: str, limit: int) -> list[FireRow]:
        """The last fires of a row."""
        return await self._reader.read(lambda: _fires(schedule, limit))


def _row(values: Sequence[Any]) -> ScheduleRow:
    return ScheduleRow(**dict(zip(_COLUMNS.split(", "), values, strict=True)))


def _add(new: ScheduleRow) -> Query[bool]:
    insert = f"INSERT INTO schedules ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"  # noqa: S608  fixed columns
    return bool((yield from values_of(insert, *msgspec.structs.astuple(new))))


def _change(row: ScheduleRow) -> Query[bool]:
    update = "UPDATE schedules SET body = ?, due = ? WHERE id = ? AND project = ? RETURNING id"
    return bool((yield from values_of(update, row.body, row.due, row.id, row.project)))


def _remove(project: str, schedule: str) -> Query[bool]:
    gone = yield from values_of("DELETE FROM schedules WHERE project = ? AND id = ? RETURNING id", project, schedule)
    if gone:
        yield from rows_of("DELETE FROM fires WHERE schedule = ?", schedule)
    return bool(gone)


def _fire(row: ScheduleRow, due: int | None, fires: Sequence[FireRow], now: float) -> Query[bool]:
    if due != row.due:  # a run by hand leaves the next time as it is
        moved = yield from values_of(
            "UPDATE schedules SET due = ? WHERE id = ? AND due = ? RETURNING id", due, row.id, row.due
        )
        if not moved:
            return False
    forget = "DELETE FROM fires WHERE schedule = ? AND due < ? AND state <> 'waiting'"
    yield from rows_of(forget, row.id, int(now - _HELD_SECONDS))
    for fire in fires:
        added = yield from values_of(
            f"INSERT INTO fires ({_FIRES}) VALUES (?, ?, ?, NULL, ?) ON CONFLICT DO NOTHING RETURNING due",  # noqa: S608  fixed columns
            fire.schedule,
            fire.due,
            fire.state,
            fire.reason,
        )
        if added and fire.state == "waiting":
            body = msgspec.json.encode(FireJob(project=row.project, schedule=row.id, due=fire.due))
            yield from rows_of(
                "INSERT INTO jobs (key, kind, body, due, since, tries, owner, until) "
                "VALUES (?, ?, ?, ?, ?, 0, '', 0) ON CONFLICT DO NOTHING",
                fire.key,
                FIRE,
                body,
                now + fire.after if fire.after else 0.0,
                now,
            )
    return True


def _settle(fire: FireRow) -> Query[None]:
    update = "UPDATE fires SET state = ?, session = ?, reason = ? WHERE schedule = ? AND due = ?"
    yield from rows_of(update, fire.state, fire.session, fire.reason, fire.schedule, fire.due)


def _all(project: str) -> Query[list[ScheduleRow]]:
    rows = yield from rows_of(f"{_SELECT} WHERE project = ?", project)
    return sorted(map(_row, rows), key=attrgetter("name"))


def _find(project: str, id_or_name: str) -> Query[ScheduleRow | None]:
    row = yield from row_of(f"{_SELECT} WHERE project = ? AND (id = ? OR name = ?)", project, id_or_name, id_or_name)
    return None if row is None else _row(row)


def _due(now: int) -> Query[list[ScheduleRow]]:
    return [_row(row) for row in (yield from rows_of(f"{_SELECT} WHERE due <= ? ORDER BY due", now))]


def _next_due() -> Query[int | None]:
    (found,) = yield from values_of("SELECT min(due) FROM schedules")
    return None if found is None else int(found)


def _fires(schedule: str, limit: int) -> Query[list[FireRow]]:
    newest = "SELECT due FROM fires WHERE schedule = ? ORDER BY due DESC LIMIT ?"
    wanted = f"schedule = ? AND (state = 'waiting' OR due IN (SELECT due FROM ({newest}) AS newest))"  # noqa: S608  fixed words
    query = f"SELECT {_FIRES} FROM fires WHERE {wanted} ORDER BY due DESC"  # noqa: S608  fixed columns
    rows = yield from rows_of(query, schedule, schedule, limit)
    return [FireRow(**dict(zip(_FIRES.split(", "), row, strict=True))) for row in rows]
