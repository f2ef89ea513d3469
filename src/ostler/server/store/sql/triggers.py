"""Triggers in every SQL store; `store/triggers.py` says what the verbs mean."""

import asyncio
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ostler.server.store.sql.reading import Query, row_of, rows_of, trimmed, values_of
from ostler.server.store.sql.verbs import Reader, Writes
from ostler.server.store.triggers import DELIVERY, Begins, DeliveryJob, DeliveryRow, Taken, TriggerRow

_COLUMNS = "id, project, name, body, created_at"
_SELECT = f"SELECT {_COLUMNS} FROM triggers"  # noqa: S608  fixed columns
_DELIVERY = "id, trigger_id, name, state, chain, session, reason, duplicates, at, body"
_SELECT_DELIVERY = f"SELECT {_DELIVERY} FROM deliveries"  # noqa: S608  fixed columns


class SqlTriggers:
    """Implements Triggers."""

    def __init__(self, reader: Reader, writes: Writes) -> None:
        self._reader = reader
        self._writes = writes

    def add(self, new: TriggerRow) -> "asyncio.Future[bool]":
        """Add a row."""
        return self._writes(lambda: _add(new))

    def change(self, row: TriggerRow) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._writes(lambda: _change(row))

    def remove(self, project: str, trigger: str) -> "asyncio.Future[bool]":
        """Remove a row and its deliveries."""
        return self._writes(lambda: _remove(project, trigger))

    def take(self, new: DeliveryRow, *, most: int, oldest: float, pause: float = 0.0) -> "asyncio.Future[Taken]":
        """Add a delivery."""
        return self._writes(lambda: _take(new, most, oldest, pause))

    def trim(self, trigger: str, *, most: int, most_bytes: int) -> "asyncio.Future[None]":
        """Remove settled deliveries beyond a bound."""
        return self._writes(lambda: trimmed("deliveries", "trigger_id", trigger, most, most_bytes))

    def settle(self, row: DeliveryRow) -> "asyncio.Future[None]":
        """Change a delivery."""
        return self._writes(lambda: _settle(row))

    async def all(self, project: str) -> list[TriggerRow]:
        """The rows of a project."""
        return await self._reader.read(lambda: _all(project))

    async def find(self, project: str, id_or_name: str) -> TriggerRow | None:
        """One row."""
        return await self._reader.read(lambda: _find(project, id_or_name))

    async def named(self, trigger: str) -> TriggerRow | None:
        """One row, by its id alone."""
        return await self._reader.read(lambda: _named(trigger))

    async def deliveries(self, trigger: str, limit: int) -> list[DeliveryRow]:
        """The last deliveries of a row."""
        return await self._reader.read(lambda: _deliveries(trigger, limit))

    async def delivery(self, delivery: str) -> DeliveryRow | None:
        """One delivery."""
        return await self._reader.read(lambda: _delivery(delivery))

    async def waiting(self, row: DeliveryRow) -> list[DeliveryRow]:
        """A chain up to a delivery."""
        return await self._reader.read(lambda: _waiting(row))


def _row(values: Sequence[Any]) -> TriggerRow:
    return TriggerRow(**dict(zip(_COLUMNS.split(", "), values, strict=True)))


def _sent(values: Sequence[Any]) -> DeliveryRow:
    return DeliveryRow(**dict(zip(_DELIVERY.split(", "), values, strict=True)))


def _add(new: TriggerRow) -> Query[bool]:
    insert = f"INSERT INTO triggers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"  # noqa: S608  fixed columns
    return bool((yield from values_of(insert, *msgspec.structs.astuple(new))))


def _change(row: TriggerRow) -> Query[bool]:
    update = "UPDATE triggers SET body = ? WHERE id = ? AND project = ? RETURNING id"
    return bool((yield from values_of(update, row.body, row.id, row.project)))


def _remove(project: str, trigger: str) -> Query[bool]:
    gone = yield from values_of("DELETE FROM triggers WHERE project = ? AND id = ? RETURNING id", project, trigger)
    if gone:
        yield from rows_of("DELETE FROM deliveries WHERE trigger_id = ?", trigger)
    return bool(gone)


def _take(new: DeliveryRow, most: int, oldest: float, pause: float) -> Query[Taken]:
    yield from rows_of(
        "DELETE FROM deliveries WHERE trigger_id = ? AND at < ? AND state <> 'waiting'", new.trigger_id, oldest
    )
    known = yield from _repeated(new)
    if known is not None:
        return Taken(known, is_new=False)
    full = "SELECT id FROM deliveries WHERE trigger_id = ? AND state = 'waiting' LIMIT 1 OFFSET ?"
    if (yield from values_of(full, new.trigger_id, most - 1)):
        return Taken(None, is_new=False)
    due = 0.0
    if pause and new.state == "waiting":
        new, due = yield from _held_back(new, pause)
    marks = ", ".join("?" for _ in new.__struct_fields__)
    insert = f"INSERT INTO deliveries ({_DELIVERY}) VALUES ({marks}) ON CONFLICT DO NOTHING RETURNING id"  # noqa: S608  fixed columns
    if not (yield from values_of(insert, *msgspec.structs.astuple(new))):  # another server was faster
        return Taken((yield from _repeated(new)), is_new=False)
    if new.state == "waiting":
        yield from rows_of(
            "INSERT INTO jobs (key, kind, body, due, since, tries, owner, until) "
            "VALUES (?, ?, ?, ?, ?, 0, '', 0) ON CONFLICT DO NOTHING",
            new.id,
            DELIVERY,
            msgspec.json.encode(DeliveryJob(delivery=new.id)),
            due,
            new.at,
        )
    return Taken(new, is_new=True)


def _held_back(new: DeliveryRow, pause: float) -> Query[tuple[DeliveryRow, float]]:
    """A delivery that says when it is acted on, and when its job is due; each comes later than the one before."""
    yield from rows_of("UPDATE triggers SET name = name WHERE id = ?", new.trigger_id)  # one server after the other
    latest = (
        "SELECT at, body FROM deliveries WHERE trigger_id = ? AND state IN ('waiting', 'started') "
        "ORDER BY at DESC LIMIT 1"
    )
    row = yield from row_of(latest, new.trigger_id)
    at = new.at if row is None else max(new.at, row[0] + 1e-5)
    before = 0.0 if row is None else msgspec.json.decode(row[1], type=Begins).begins
    begins = max(at, before + pause) if before else at
    body = {**msgspec.json.decode(new.body, type=dict[str, msgspec.Raw]), "begins": begins}
    held = msgspec.structs.replace(new, at=at, body=msgspec.json.encode(body))
    return held, begins if begins > at else 0.0


def _repeated(new: DeliveryRow) -> Query[DeliveryRow | None]:
    count = f"UPDATE deliveries SET duplicates = duplicates + 1 WHERE trigger_id = ? AND name = ? RETURNING {_DELIVERY}"  # noqa: S608  fixed columns
    row = yield from row_of(count, new.trigger_id, new.name)
    return None if row is None else _sent(row)


def _settle(row: DeliveryRow) -> Query[None]:
    update = "UPDATE deliveries SET state = ?, session = ?, reason = ? WHERE id = ?"
    yield from rows_of(update, row.state, row.session, row.reason, row.id)


def _all(project: str) -> Query[list[TriggerRow]]:
    rows = yield from rows_of(f"{_SELECT} WHERE project = ?", project)
    return sorted(map(_row, rows), key=attrgetter("name"))


def _find(project: str, id_or_name: str) -> Query[TriggerRow | None]:
    row = yield from row_of(f"{_SELECT} WHERE project = ? AND (id = ? OR name = ?)", project, id_or_name, id_or_name)
    return None if row is None else _row(row)


def _named(trigger: str) -> Query[TriggerRow | None]:
    row = yield from row_of(f"{_SELECT} WHERE id = ?", trigger)
    return None if row is None else _row(row)


def _deliveries(trigger: str, limit: int) -> Query[list[DeliveryRow]]:
    rows = yield from rows_of(f"{_SELECT_DELIVERY} WHERE trigger_id = ? ORDER BY at DESC LIMIT ?", trigger, limit)
    return list(map(_sent, rows))


def _delivery(delivery: str) -> Query[DeliveryRow | None]:
    row = yield from row_of(f"{_SELECT_DELIVERY} WHERE id = ?", delivery)
    return None if row is None else _sent(row)


def _waiting(row: DeliveryRow) -> Query[list[DeliveryRow]]:
    query = f"{_SELECT_DELIVERY} WHERE trigger_id = ? AND state = 'waiting' AND chain = ? AND id <= ? ORDER BY id"
    return list(map(_sent, (yield from rows_of(query, row.trigger_id, row.chain, row.id))))
