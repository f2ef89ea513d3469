"""The bursts of many sessions, with everything that changes together with them, as the rows of one statement."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import asyncpg

from ostler.base.clock import steady_seconds
from ostler.server.store.bursts import ITEMS, PACKING, Mark, pack, stored_body
from ostler.server.store.postgres.dialect import FIRST_OF_TRANSACTION, sendable
from ostler.server.store.records import DONE, Append, NewJob, Placed, StateChange, encode

NOW = "extract(epoch FROM clock_timestamp())::double precision"
_BEGIN = f"SELECT {FIRST_OF_TRANSACTION.format('pg_current_xact_id()')} AS base"
# Whoever would take one of these sessions is held off until the end; if one was taken, nothing is written.
_FENCED = f"""
owned AS MATERIALIZED (SELECT session, epoch FROM owners WHERE session = ANY($1) ORDER BY session FOR SHARE),
begun AS MATERIALIZED ({_BEGIN} WHERE cardinality($1::text[]) =
    (SELECT count(*) FROM owned JOIN unnest($1::text[], $2::bigint[]) AS had (session, epoch) USING (session, epoch)))
"""  # noqa: S608  fixed words


class _Part(NamedTuple):
    """What is written into one table."""

    columns: Mapping[str, str]
    """Of its rows, with their types."""
    statement: str
    """With `begun` and `new` in place of tables; the rows of one statement do not see each other."""


_Key = tuple[Any, ...]
Lasts = dict[str, tuple[int, int]]
"""Of sessions the epoch that they are had in, and their last sequence in it."""
_PARTS: dict[str, _Part] = {
    "chunk": _Part(
        {
            "place": "bigint",
            "session": "text",
            "first": "bigint",
            "last": "bigint",
            "body": "bytea",
            "start": "bigint",
            "step": "bigint",
            "packing": "smallint",
        },
        "INSERT INTO chunks (position, session, first, last, body, start, step, packing) "
        "SELECT base + place, session, first, last, body, start, step, packing FROM begun, {new}",
    ),
    "session": _Part(
        {
            "id": "text",
            "changes": "boolean",
            "status": "text",
            "title": "text",
            "labels": "text",
            "updated_at": "text",
            "state": "bytea",
            "workspace": "text",
            "moves": "boolean",
            "runner": "text",
            "spec": "bytea",
            "agent": "text",
        },
        "UPDATE sessions SET status = coalesce(new.status, sessions.status), "
        "title = CASE WHEN changes THEN new.title ELSE sessions.title END, "
        "labels = coalesce(new.labels::jsonb, sessions.labels), "
        "updated_at = coalesce(new.updated_at, sessions.updated_at), state = coalesce(new.state, sessions.state), "
        "workspace = CASE WHEN changes THEN new.workspace ELSE sessions.workspace END, "
        "runner = CASE WHEN moves THEN new.runner ELSE sessions.runner END, "
        "spec = coalesce(new.spec, sessions.spec), agent = coalesce(new.agent, sessions.agent) "
        "FROM begun, {new} WHERE sessions.id = new.id",
    ),
    "turn": _Part(
        {
            "session": "text",
            "number": "bigint",
            "turn": "bytea",
            "turn_id": "text",
            "first_sequence": "bigint",
            "branches": "boolean",
        },
        "INSERT INTO turns SELECT new.* FROM begun, {new} ON CONFLICT (session, number) DO UPDATE "
        "SET turn = excluded.turn, turn_id = excluded.turn_id, first_sequence = excluded.first_sequence, "
        "branches = excluded.branches",
    ),
    "used": _Part(
        {
            "session": "text",
            "turn": "bigint",
            "project": "text",
            "actor": "text",
            "day": "text",
            "tokens": "bigint",
            "cost": "double precision",
        },
        "INSERT INTO turn_uses SELECT new.* FROM begun, {new} ON CONFLICT (session, turn) DO UPDATE "
        "SET day = excluded.day, tokens = excluded.tokens, cost = excluded.cost",
    ),
    "ask": _Part(
        {"session": "text", "ask_id": "text", "is_open": "boolean", "requested_at": "text", "ask": "bytea"},
        "INSERT INTO asks SELECT new.* FROM begun, {new} ON CONFLICT (session, ask_id) DO UPDATE "
        "SET is_open = excluded.is_open, requested_at = excluded.requested_at, ask = excluded.ask",
    ),
    "snapshot": _Part(
        {"session": "text", "sequence": "bigint", "snapshot": "bytea"},
        "INSERT INTO snapshots SELECT new.* FROM begun, {new} ON CONFLICT (session, sequence) DO UPDATE "
        "SET snapshot = excluded.snapshot",
    ),
    # An item that is known gets a new content; the number of a new one is how many are in the conversation.
    "item": _Part(
        {
            "session": "text",
            "first": "bigint",
            "item_id": "text",
            "kind": "text",
            "turn_id": "text",
            "last": "bigint",
            "is_open": "boolean",
            "body": "bytea",
        },
        "INSERT INTO items (session, first, last, item_id, kind, is_open, turn_id, body, number) "
        "SELECT new.session, new.first, new.last, new.item_id, new.kind, new.is_open, new.turn_id, new.body, "
        "coalesce((SELECT max(number) FROM items WHERE session = new.session), 0) "
        "+ count(*) FILTER (WHERE known.session IS NULL) OVER (PARTITION BY new.session ORDER BY new.first) "
        "FROM begun CROSS JOIN {new} LEFT JOIN items AS known "
        "ON known.session = new.session AND known.item_id = new.item_id AND known.number IS NOT NULL "
        "ON CONFLICT (session, item_id) WHERE number IS NOT NULL DO UPDATE "
        "SET last = excluded.last, is_open = excluded.is_open, body = excluded.body",
    ),
    # Earlier references to the same file are kept: a rewind brings the last of them back.
    "artifact": _Part(
        {"session": "text", "sequence": "bigint", "path": "text", "is_newest": "boolean", "body": "bytea"},
        "INSERT INTO artifacts SELECT new.* FROM begun, {new}",
    ),
    "replaced": _Part(
        {"session": "text", "path": "text"},
        "UPDATE artifacts SET is_newest = FALSE FROM begun, {new} "
        "WHERE artifacts.session = new.session AND artifacts.path = new.path AND is_newest",
    ),
    "line": _Part(
        {"session": "text", "sequence": "bigint", "body": "bytea"}, "INSERT INTO lines SELECT new.* FROM begun, {new}"
    ),
    "job": _Part(
        {"key": "text", "kind": "text", "body": "bytea", "after": "double precision"},
        f"INSERT INTO jobs SELECT key, kind, body, {NOW} + after, {NOW} + after, 0, '', 0 FROM begun, {{new}} "  # noqa: S608  fixed words
        "ON CONFLICT DO NOTHING",
    ),
    "done": _Part(
        {"claim": "text", "result": "bytea", "created": "double precision"},
        f"INSERT INTO idempotency SELECT '{DONE}', claim, '', 0, '\\x90'::bytea, result, created FROM begun, {{new}} "  # noqa: S608  fixed words
        "ON CONFLICT DO NOTHING",
    ),
}


class Bursts:
    """Appends whose place in the log is decided, gathered until they are written."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[_Key, _Key]] = {}
        self._changes: dict[str, StateChange] = {}
        self._placed: dict[str, Placed] = {}

    def add(self, append: Append, place: int, body: bytes) -> None:
        """One more, without its marks; `place` is that of its last event in the transaction."""
        session, progress = append.session_id, append.progress
        start, step = (progress.start, progress.step) if progress is not None else (None, None)
        self._put("chunk", (place,), (place, session, append.first, append.last, body, start, step, PACKING))
        if append.change is not None:
            self._changes[session] = append.change
        if append.placed is not None:
            self._placed[session] = append.placed
        for turn in append.turns:
            row = (session, turn.number, encode(turn), turn.turn_id, turn.first_sequence, turn.after is not None)
            self._put("turn", row[:2], row)
        if append.used is not None:
            self._put("used", (session, append.used.turn), (session, *append.used))
        for ask in append.asks:
            is_open = ask.status == "requested"
            self._put("ask", (session, ask.ask_id), (session, ask.ask_id, is_open, ask.requested_at, encode(ask)))
        for taken in append.snapshots:
            self._put("snapshot", (session, taken.sequence), (session, taken.sequence, encode(taken)))
        self.add_jobs(append.jobs)
        if append.done is not None:
            self._put("done", (append.done.claim,), (append.done.claim, append.done.result, steady_seconds()))

    def add_jobs(self, jobs: Iterable[NewJob]) -> None:
        """What is to be done, as far as no job with the same key is there."""
        for job in jobs:
            self._rows.setdefault("job", {}).setdefault((job.key,), (job.key, job.kind, job.body, job.after))

    def mark(self, session: str, mark: Mark) -> None:
        """What the outline tells of an event."""
        body = stored_body(mark)
        if mark.type in ITEMS:
            item, newest = mark.data.item, (mark.sequence, mark.type == "item.started", body)
            begun = self._rows.get("item", {}).get((session, item.item_id))
            row = begun[:5] if begun else (session, mark.sequence, item.item_id, item.kind, mark.turn_id)
            self._put("item", (session, item.item_id), row + newest)
        elif mark.type == "artifact.created":
            self._put("replaced", (session, mark.data.path), (session, mark.data.path))
            self._put("artifact", (session, mark.sequence), (session, mark.sequence, mark.data.path, True, body))
        else:
            self._put("line", (session, mark.sequence), (session, mark.sequence, body))

    def _put(self, part: str, key: _Key, row: _Key) -> None:
        """Of rows with the same key the last one counts."""
        self._rows.setdefault(part, {})[key] = row

    async def write(self, connection: asyncpg.Connection, fence: Mapping[str, int] | None = None) -> int | None:
        """Write all of them; the first position of the transaction. None if somebody else has one of the sessions:
        then nothing is written. Without a fence it has to be known that nobody can have them.
        """
        if not (parts := self._parts()):
            return None
        values: list[Any] = [] if fence is None else [list(fence), list(fence.values())]
        for part, rows in parts.items():
            values += _columns(_PARTS[part], rows)
        base: int | None = await connection.fetchval(_statement(tuple(parts), is_fenced=fence is not None), *values)
        return base

    def _parts(self) -> dict[str, list[_Key]]:
        parts = {part: list(rows.values()) for part, rows in self._rows.items()}
        if "artifact" in parts:
            parts["artifact"] = _newest(parts["artifact"])
        if changed := {**self._changes, **self._placed}:
            parts["session"] = [self._session(session) for session in changed]
        return dict(sorted(parts.items()))

    def _session(self, session: str) -> _Key:
        row: _Key = (session, False, None, None, None, None, None, None)
        if (change := self._changes.get(session)) is not None:
            labels = labels_of(change.labels)
            state = (change.status, change.title, labels, change.updated_at, change.state, change.workspace)
            row = (session, True, *state)
        if (placed := self._placed.get(session)) is not None:
            return *row, True, placed.runner, encode(placed.spec), placed.agent
        return *row, False, None, None, None


class Gathered(NamedTuple):
    """Appends that are ready to be written, and nothing else."""

    bursts: Bursts
    lasts: Lasts
    """How far their logs are then."""
    placed: list[tuple[int, int]]
    """Of each its place in the transaction, and its size."""


def gather(appends: Sequence[Append | None], known: Lasts) -> Gathered | None:
    """Bursts that follow the logs as they are known; None if one does not, or needs more than to be written."""
    gathered, place = Gathered(Bursts(), {}, []), 0
    for append in appends:
        if append is None or _is_special(append):
            return None
        session = append.session_id
        if gathered.lasts.get(session, known.get(session)) != (append.epoch, append.first - 1):
            return None
        gathered.lasts[session] = (append.epoch, append.last)
        place += len(append.events)
        body = append.packed or pack(session, append.events, append.raws)
        gathered.bursts.add(append, place, body)
        for mark in append.marks:
            gathered.bursts.mark(session, mark)
        gathered.placed.append((place, len(body)))
    return gathered


def _is_special(append: Append) -> bool:
    """Whether something has to be looked at, or changed, that no statement for many does."""
    arrives = append.placed is not None and append.placed.arrives
    return arrives or any(mark.type == "session.rewound" for mark in append.marks)


def labels_of(labels: Mapping[str, str]) -> str:
    """Labels as PostgreSQL takes them."""
    return encode({sendable(name): sendable(value) for name, value in labels.items()}).decode()


def _newest(artifacts: list[_Key]) -> list[_Key]:
    """Of those with the same path only the last is the newest."""
    last = {(session, path): sequence for session, sequence, path, _, _ in artifacts}
    return [
        (session, sequence, path, last[session, path] == sequence, body)
        for session, sequence, path, _, body in artifacts
    ]


def _columns(part: _Part, rows: list[_Key]) -> list[list[Any]]:
    columns = map(list, zip(*rows, strict=True))
    return [
        [sendable(value) for value in column] if kind == "text" else column
        for column, kind in zip(columns, part.columns.values(), strict=True)
    ]


@functools.lru_cache(maxsize=256)
def _statement(parts: tuple[str, ...], *, is_fenced: bool) -> str:
    """One statement for all of these parts: a round trip costs more than what they do."""
    count = 2 if is_fenced else 0
    tables = [_FENCED if is_fenced else f"begun AS MATERIALIZED ({_BEGIN})"]
    for name in parts:
        part = _PARTS[name]
        arrays = ", ".join(f"${count + number}::{kind}[]" for number, kind in enumerate(part.columns.values(), 1))
        count += len(part.columns)
        rows = f"unnest({arrays}) AS new ({', '.join(part.columns)})"
        tables.append(f"new_{name} AS ({part.statement.format(new=rows)})")
    return f"WITH {', '.join(tables)} SELECT base FROM begun"  # noqa: S608  fixed words
