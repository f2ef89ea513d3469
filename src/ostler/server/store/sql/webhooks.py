"""Webhooks in every SQL store; `store/webhooks.py` says what the verbs mean."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.server.store.sql.reading import Query, row_of, rows_of, trimmed, values_of
from ostler.server.store.sql.verbs import Reader, Writes
from ostler.server.store.webhooks import CallRow, WebhookRow

_COLUMNS = "id, project, body, position, stopped, failing_since, created_at"
_SELECT = f"SELECT {_COLUMNS} FROM project_webhooks"  # noqa: S608  fixed columns
_CALL = "id, webhook_id, number, chain, session, type, state, tries, due, until, status, reason, at, body"
_SELECT_CALL = f"SELECT {_CALL} FROM webhook_calls"  # noqa: S608  fixed columns
_IS_FIRST = (
    "state = 'waiting' AND NOT EXISTS (SELECT 1 FROM webhook_calls AS earlier WHERE "
    "earlier.webhook_id = mine.webhook_id AND earlier.chain = mine.chain AND earlier.state = 'waiting' "
    "AND earlier.number < mine.number)"
)


class SqlWebhooks:
    """Implements Webhooks."""

    def __init__(self, reader: Reader, writes: Writes) -> None:
        self._reader = reader
        self._writes = writes

    def add(self, new: WebhookRow, most: int) -> "asyncio.Future[bool]":
        """Add a row."""
        return self._writes(lambda: _add(new, most))

    def change(self, row: WebhookRow, *, with_state: bool = True, at_once: bool = False) -> "asyncio.Future[bool]":
        """Change a row."""
        return self._writes(lambda: _change(row, with_state=with_state, at_once=at_once))

    def remove(self, project: str, webhook: str) -> "asyncio.Future[bool]":
        """Remove a row and its calls."""
        return self._writes(lambda: _remove(project, webhook))

    def advance(
        self, row: WebhookRow, position: int, calls: Sequence[CallRow], oldest: float
    ) -> "asyncio.Future[bool]":
        """Move a row on, with the calls between."""
        return self._writes(lambda: _advance(row, position, calls, oldest))

    def trim(self, webhook: str, *, most: int, most_bytes: int) -> "asyncio.Future[None]":
        """Remove calls beyond a bound."""
        return self._writes(lambda: trimmed("webhook_calls", "webhook_id", webhook, most, most_bytes))

    def call(self, new: CallRow) -> "asyncio.Future[None]":
        """Add a call."""
        return self._writes(lambda: _insert(new))

    def claim(self, webhook: str, now: float, until: float, limit: int) -> "asyncio.Future[list[CallRow]]":
        """Take calls."""
        return self._writes(lambda: _claim(webhook, now, until, limit))

    def settle(self, call: CallRow, now: float | None, stopped: str | None) -> "asyncio.Future[None]":
        """Change a call and how its webhook does."""
        return self._writes(lambda: _settle(call, now, stopped))

    def again(self, call: CallRow) -> "asyncio.Future[None]":
        """Let a call wait."""
        return self._writes(lambda: _again(call))

    def let_go(self) -> "asyncio.Future[None]":
        """Let all calls be taken."""
        return self._writes(_let_go)

    async def all(self, project: str) -> list[WebhookRow]:
        """The rows of a project."""
        return await self._reader.read(lambda: _all(project))

    async def active(self) -> list[WebhookRow]:
        """The rows that are not stopped."""
        return await self._reader.read(_active)

    async def find(self, project: str, webhook: str) -> WebhookRow | None:
        """One row."""
        return await self._reader.read(lambda: _find(project, webhook))

    async def next_due(self, webhook: str) -> float | None:
        """The least time of calls that can be taken then."""
        return await self._reader.read(lambda: _next_due(webhook))

    async def waiting(self, webhook: str) -> int:
        """A count."""
        return await self._reader.read(lambda: _waiting(webhook))

    async def calls(self, webhook: str, limit: int) -> list[CallRow]:
        """The last calls of a row."""
        return await self._reader.read(lambda: _calls(webhook, limit))

    async def find_call(self, webhook: str, call: str) -> CallRow | None:
        """One call."""
        return await self._reader.read(lambda: _find_call(webhook, call))


def _row(values: Sequence[Any]) -> WebhookRow:
    return WebhookRow(**dict(zip(_COLUMNS.split(", "), values, strict=True)))


def _call_row(values: Sequence[Any]) -> CallRow:
    return CallRow(**dict(zip(_CALL.split(", "), values, strict=True)))


def _add(new: WebhookRow, most: int) -> Query[bool]:
    (count,) = yield from values_of("SELECT count(*) FROM project_webhooks WHERE project = ?", new.project)
    if count >= most:
        return False
    insert = f"INSERT INTO project_webhooks ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  fixed columns
    yield from rows_of(insert, *msgspec.structs.astuple(new))
    return True


def _change(row: WebhookRow, *, with_state: bool, at_once: bool) -> Query[bool]:
    update = (
        "UPDATE project_webhooks SET body = ?, position = CASE WHEN position < ? THEN ? ELSE position END "
        "WHERE id = ? AND project = ? RETURNING id"
    )
    if not (yield from values_of(update, row.body, row.position, row.position, row.id, row.project)):
        return False
    if with_state:
        state = "UPDATE project_webhooks SET stopped = ?, failing_since = ? WHERE id = ?"
        yield from rows_of(state, row.stopped, row.failing_since, row.id)
    if at_once:
        yield from rows_of("UPDATE project_webhooks SET failing_since = NULL WHERE id = ?", row.id)
        yield from rows_of("UPDATE webhook_calls SET due = 0 WHERE webhook_id = ? AND state = 'waiting'", row.id)
    return True


def _remove(project: str, webhook: str) -> Query[bool]:
    delete = "DELETE FROM project_webhooks WHERE project = ? AND id = ? RETURNING id"
    gone = yield from values_of(delete, project, webhook)
    if gone:
        yield from rows_of("DELETE FROM webhook_calls WHERE webhook_id = ?", webhook)
    return bool(gone)


def _advance(row: WebhookRow, position: int, calls: Sequence[CallRow], oldest: float) -> Query[bool]:
    update = "UPDATE project_webhooks SET position = ? WHERE id = ? AND position = ? AND stopped IS NULL RETURNING id"
    if not (yield from values_of(update, position, row.id, row.position)):
        return False
    for each in calls:
        yield from _insert(each)
    forget = "DELETE FROM webhook_calls WHERE webhook_id = ? AND at < ? AND state <> 'waiting'"
    yield from rows_of(forget, row.id, oldest)
    return True


def _insert(new: CallRow) -> Query[None]:
    marks = ", ".join("?" for _ in new.__struct_fields__)
    yield from rows_of(f"INSERT INTO webhook_calls ({_CALL}) VALUES ({marks})", *msgspec.structs.astuple(new))  # noqa: S608  fixed columns


def _claim(webhook: str, now: float, until: float, limit: int) -> Query[list[CallRow]]:
    due = (
        f"SELECT id FROM webhook_calls AS mine WHERE webhook_id = ? AND due <= ? AND until <= ? AND {_IS_FIRST} "  # noqa: S608  fixed words
        "ORDER BY number LIMIT ?"
    )
    taken = []
    for call in (yield from values_of(due, webhook, now, now, limit)):
        take = (
            "UPDATE webhook_calls SET until = ?, tries = tries + 1 "  # noqa: S608  fixed columns
            f"WHERE id = ? AND until <= ? AND state = 'waiting' RETURNING {_CALL}"
        )
        row = yield from row_of(take, until, call, now)
        taken += [_call_row(row)] if row is not None else []
    return taken


def _settle(call: CallRow, now: float | None, stopped: str | None) -> Query[None]:
    update = (
        "UPDATE webhook_calls SET state = ?, due = ?, until = 0, status = ?, reason = ? "
        "WHERE id = ? AND tries = ? AND state = 'waiting' RETURNING id"
    )
    values = (call.state, call.due, call.status, call.reason, call.id, call.tries)
    if not (yield from values_of(update, *values)):
        return
    if call.state == "delivered":
        health = "UPDATE project_webhooks SET failing_since = NULL WHERE id = ? AND failing_since IS NOT NULL"
        yield from rows_of(health, call.webhook_id)
        return
    if now is None:
        return
    failing = "UPDATE project_webhooks SET failing_since = ? WHERE id = ? AND failing_since IS NULL"
    yield from rows_of(failing, now, call.webhook_id)
    if stopped is not None:
        stop = "UPDATE project_webhooks SET stopped = ? WHERE id = ? AND stopped IS NULL"
        yield from rows_of(stop, stopped, call.webhook_id)


def _again(call: CallRow) -> Query[None]:
    update = (
        "UPDATE webhook_calls SET chain = CASE WHEN state = 'delivered' THEN NULL ELSE chain END, "
        "state = 'waiting', tries = 0, due = 0 WHERE id = ? AND until <= 0"
    )
    yield from rows_of(update, call.id)


def _let_go() -> Query[None]:
    yield from rows_of("UPDATE webhook_calls SET until = 0 WHERE state = 'waiting' AND until > 0")


def _all(project: str) -> Query[list[WebhookRow]]:
    return list(map(_row, (yield from rows_of(f"{_SELECT} WHERE project = ? ORDER BY created_at, id", project))))


def _active() -> Query[list[WebhookRow]]:
    return list(map(_row, (yield from rows_of(f"{_SELECT} WHERE stopped IS NULL"))))


def _find(project: str, webhook: str) -> Query[WebhookRow | None]:
    row = yield from row_of(f"{_SELECT} WHERE project = ? AND id = ?", project, webhook)
    return None if row is None else _row(row)


def _next_due(webhook: str) -> Query[float | None]:
    query = (
        "SELECT min(CASE WHEN until > due THEN until ELSE due END) FROM webhook_calls AS mine "  # noqa: S608  fixed words
        f"WHERE webhook_id = ? AND {_IS_FIRST}"
    )
    (found,) = yield from values_of(query, webhook)
    return None if found is None else float(found)


def _waiting(webhook: str) -> Query[int]:
    count = "SELECT count(*) FROM webhook_calls WHERE webhook_id = ? AND state = 'waiting'"
    (found,) = yield from values_of(count, webhook)
    return int(found)


def _calls(webhook: str, limit: int) -> Query[list[CallRow]]:
    query = f"{_SELECT_CALL} WHERE webhook_id = ? ORDER BY at DESC, number DESC LIMIT ?"
    return list(map(_call_row, (yield from rows_of(query, webhook, limit))))


def _find_call(webhook: str, call: str) -> Query[CallRow | None]:
    row = yield from row_of(f"{_SELECT_CALL} WHERE webhook_id = ? AND id = ?", webhook, call)
    return None if row is None else _call_row(row)
