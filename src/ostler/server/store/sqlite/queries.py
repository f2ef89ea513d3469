"""Every SQL statement that reads, as functions of a connection."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ostler.server.store.packing import unpack
from ostler.server.store.records import (
    SessionFilter,
    SessionRecord,
    SessionSpec,
    StoredEvent,
    StoredItem,
    StoredResponse,
)
from ostler.server.store.sqlite.outline import KEYS
from ostler.wire.sessions import Ask, Turn
from ostler.wire.workspaces import Snapshot

_COLUMNS = (
    "id, project, key, agent, status, title, labels, created_at, updated_at, spec, state, "
    "(SELECT MAX(last) FROM chunks WHERE session = sessions.id)"
)
_spec = msgspec.json.Decoder(SessionSpec)
_labels = msgspec.json.Decoder(dict[str, str])
_turn = msgspec.json.Decoder(Turn)
_ask = msgspec.json.Decoder(Ask)
_snapshot = msgspec.json.Decoder(Snapshot)


def find_session(connection: sqlite3.Connection, project: str, id_or_key: str) -> SessionRecord | None:
    """A session by id or, failing that, by key; never one of another project."""
    query = f"SELECT {_COLUMNS} FROM sessions WHERE project = ? AND (id = ? OR key = ?) ORDER BY id = ? DESC LIMIT 1"  # noqa: S608  fixed columns
    row = connection.execute(query, (project, id_or_key, id_or_key, id_or_key)).fetchone()
    return _record(row) if row else None


def find_branches(
    connection: sqlite3.Connection, project: str, parent: str, keys: tuple[str, str], limit: int
) -> tuple[list[SessionRecord], int]:
    """The newest sessions with the label `forked_from` of that parent whose keys lie between two, and how many
    sessions have such keys."""
    (taken,) = connection.execute(
        "SELECT COUNT(*) FROM sessions WHERE project = ? AND key > ? AND key < ?", (project, *keys)
    ).fetchone()
    query = (
        f"SELECT {_COLUMNS} FROM sessions WHERE project = ? AND key > ? AND key < ? "  # noqa: S608  fixed columns
        "AND json_extract(labels, '$.forked_from') = ? ORDER BY id DESC LIMIT ?"
    )
    rows = connection.execute(query, (project, *keys, parent, limit))
    return [_record(row) for row in rows], int(taken)


def was_deleted(connection: sqlite3.Connection, project: str, id_or_key: str) -> bool:
    """Whether such a session once existed."""
    query = "SELECT 1 FROM deleted_sessions WHERE project = ? AND (id = ? OR key = ?)"
    return connection.execute(query, (project, id_or_key, id_or_key)).fetchone() is not None


def page_sessions(connection: sqlite3.Connection, wanted: SessionFilter) -> tuple[list[SessionRecord], int]:
    """One page of sessions, newest first, and how many there are in all."""
    where, values = _conditions(wanted)
    (total,) = connection.execute(f"SELECT COUNT(*) FROM sessions WHERE {where}", values).fetchone()  # noqa: S608  fixed words
    page = f"SELECT id FROM sessions WHERE {where} ORDER BY id DESC LIMIT ? OFFSET ?"  # noqa: S608  fixed words
    rows = connection.execute(  # ids are sorted first, so that only the rows of the page are read
        f"SELECT {_COLUMNS} FROM sessions WHERE id IN ({page}) ORDER BY id DESC",  # noqa: S608  fixed words
        (*values, wanted.per_page, (wanted.page - 1) * wanted.per_page),
    )
    return [_record(row) for row in rows], int(total)


def _conditions(wanted: SessionFilter) -> tuple[str, list[Any]]:
    where, values = ["project = ?"], [wanted.project]
    if wanted.statuses:
        where.append(f"status IN ({','.join('?' * len(wanted.statuses))})")
        values.extend(wanted.statuses)
    if wanted.agent:
        where.append("agent = ?")
        values.append(wanted.agent)
    for name, value in wanted.labels.items():
        has_it = "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND value = ?)"
        lacks_it = "NOT EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ?)"
        may_lack = name in wanted.unlabelled
        where.append(f"({has_it} OR {lacks_it})" if may_lack else has_it)
        values.extend((name, value, name) if may_lack else (name, value))
    if wanted.text:
        where.append("(instr(lower(coalesce(title, '')), lower(?)) OR instr(lower(key), lower(?)))")
        values.extend((wanted.text, wanted.text))
    if wanted.project_id:
        where.append("coalesce(json_extract(CAST(spec AS TEXT), '$.task.project_id'), project) = ?")
        values.append(wanted.project_id)
    if wanted.tenant_id:
        where.append("coalesce(json_extract(CAST(spec AS TEXT), '$.task.tenant_id'), 'default') = ?")
        values.append(wanted.tenant_id)
    if wanted.only_tasks:
        where.append("json_type(CAST(spec AS TEXT), '$.task') = 'object'")
    return " AND ".join(where), values


def unfinished_sessions(
    connection: sqlite3.Connection, terminal: Iterable[str], wanted: Callable[[str, bytes], bool]
) -> list[SessionRecord]:
    """The sessions that are not over and are wanted, by id and state; those that sleep are passed by one at a time."""
    over = tuple(terminal)
    marks = ",".join("?" * len(over))
    rows = connection.execute(f"SELECT id, state FROM sessions WHERE status NOT IN ({marks})", over)  # noqa: S608  only marks
    ids = [id_ for id_, state in rows if wanted(id_, state)]
    one = f"SELECT {_COLUMNS} FROM sessions WHERE id = ?"  # noqa: S608  fixed columns
    return [_record(connection.execute(one, (id_,)).fetchone()) for id_ in ids]


def deleted_with_events(connection: sqlite3.Connection) -> list[str]:
    """Deleted sessions whose events have not all been cleared."""
    rows = connection.execute(
        "SELECT id FROM deleted_sessions WHERE EXISTS (SELECT 1 FROM chunks WHERE session = deleted_sessions.id)"
    )
    return [id_ for (id_,) in rows]


def last_step(connection: sqlite3.Connection, session_id: str, start: int) -> int:
    """How far one of the session's processes has come in the log; 0 if nothing of it is there."""
    row = connection.execute(
        "SELECT step FROM chunks WHERE session = ? AND start = ? ORDER BY last DESC LIMIT 1", (session_id, start)
    ).fetchone()
    return row[0] if row else 0


def log_size(connection: sqlite3.Connection, session_id: str) -> int:
    """How many bytes the events of a session take, and what is made of them."""
    each = "SELECT sum(length(body)) FROM {} WHERE session = ?1"
    query = " UNION ALL ".join(each.format(name) for name in ("chunks", *KEYS))
    return sum(size or 0 for (size,) in connection.execute(query, (session_id,)))


def count_by_status(connection: sqlite3.Connection) -> dict[str, int]:
    """How many sessions have each status."""
    return dict(connection.execute("SELECT status, COUNT(*) FROM sessions GROUP BY status").fetchall())


def session_events(
    connection: sqlite3.Connection, session_id: str, offset: int, limit: int, *, raw: bool, max_bytes: int
) -> list[StoredEvent]:
    """Events with a sequence above the offset, in order; the one that reaches max_bytes is the last."""
    rows = connection.execute(
        "SELECT first, session, packing, body, raw FROM chunks WHERE session = ? AND last > ? ORDER BY last",
        (session_id, offset),
    )
    return _unpacked(rows, offset, limit, max_bytes, raw=raw)


def every_plain_event(connection: sqlite3.Connection, session_id: str) -> Iterator[tuple[int, bytes]]:
    """The whole log of a session in a database of a version that did not pack its rows yet."""
    rows = connection.execute("SELECT first, body FROM chunks WHERE session = ? ORDER BY last", (session_id,))
    for first, body in rows:
        yield from enumerate(body.split(b"\n"), first)


def project_events(
    connection: sqlite3.Connection, project: str, offset: int, limit: int, max_bytes: int
) -> list[StoredEvent]:
    """Events of all sessions with a position above the offset, in the order they were committed; bounded alike."""
    rows = connection.execute(
        "SELECT position - (last - first), session, packing, body, raw "
        "FROM chunks JOIN sessions ON sessions.id = chunks.session "
        "WHERE position > ? AND project = ? ORDER BY position",
        (offset, project),
    )
    return _unpacked(rows, offset, limit, max_bytes, raw=False)


def _unpacked(rows: sqlite3.Cursor, offset: int, limit: int, max_bytes: int, *, raw: bool) -> list[StoredEvent]:
    events: list[StoredEvent] = []
    size = 0
    for first, session, packing, body, frames in rows:
        lines, raws = unpack(session, packing, body, frames)
        skip = max(0, offset + 1 - first)
        numbered = zip(range(first + skip, first + len(lines)), lines[skip:], raws[skip:], strict=True)
        for number, line, frame in numbered:
            events.append(StoredEvent(number, line, (raw and frame) or None))
            size += len(line) + (len(frame or b"") if raw else 0)
            if size >= max_bytes or len(events) >= limit:
                return events
    return events


def last_position(connection: sqlite3.Connection) -> int:
    """The position of the newest event of all sessions."""
    (value,) = connection.execute("SELECT value FROM counters WHERE name = 'position'").fetchone()
    return int(value)


def newest_epoch(connection: sqlite3.Connection) -> int:
    """The epoch of the newest claim."""
    (value,) = connection.execute("SELECT value FROM counters WHERE name = 'epoch'").fetchone()
    return int(value)


def session_turns(connection: sqlite3.Connection, session_id: str) -> list[Turn]:
    """All turns of a session in order."""
    rows = connection.execute("SELECT turn FROM turns WHERE session = ? ORDER BY number", (session_id,))
    return [_turn.decode(turn) for (turn,) in rows]


def find_turn(connection: sqlite3.Connection, session_id: str, which: int | str) -> Turn | None:
    """A turn by its number, or the newest of that id."""
    column = "number" if isinstance(which, int) else "json_extract(CAST(turn AS TEXT), '$.turn_id')"
    query = f"SELECT turn FROM turns WHERE session = ? AND {column} = ? ORDER BY number DESC LIMIT 1"  # noqa: S608  fixed words
    return _only_turn(connection.execute(query, (session_id, which)))


def turn_around(connection: sqlite3.Connection, session_id: str, sequence: int) -> Turn | None:
    """The last turn that began at the sequence or before it."""
    place = "json_extract(CAST(turn AS TEXT), '$.first_sequence')"
    query = f"SELECT turn FROM turns WHERE session = ? AND {place} <= ? ORDER BY {place} DESC LIMIT 1"  # noqa: S608  fixed words
    return _only_turn(connection.execute(query, (session_id, sequence)))


def branching_turns(connection: sqlite3.Connection, session_id: str) -> list[Turn]:
    """The turns that go on from another one than the one before them, in order."""
    query = "SELECT turn FROM turns WHERE session = ? AND json_extract(CAST(turn AS TEXT), '$.after') IS NOT NULL"
    return [_turn.decode(turn) for (turn,) in connection.execute(f"{query} ORDER BY number", (session_id,))]


def turns_within(connection: sqlite3.Connection, session_id: str, spans: Sequence[tuple[int, int]]) -> list[Turn]:
    """The turns whose numbers are in one of the spans; both ends belong to a span."""
    query = "SELECT turn FROM turns WHERE session = ? AND number BETWEEN ? AND ? ORDER BY number"
    rows = (row for span in spans for row in connection.execute(query, (session_id, *span)))
    return [_turn.decode(turn) for (turn,) in rows]


def _only_turn(rows: sqlite3.Cursor) -> Turn | None:
    row = rows.fetchone()
    return _turn.decode(row[0]) if row is not None else None


_ITEM = "SELECT number, first, last, is_open, turn_id, body FROM items WHERE session = ? AND"


def items_after(connection: sqlite3.Connection, session_id: str, number: int, limit: int) -> list[StoredItem]:
    """The items of the conversation that follow the one of that number."""
    return _items(connection, "number > ? ORDER BY number LIMIT ?", session_id, number, limit)


def items_before(connection: sqlite3.Connection, session_id: str, number: int, limit: int) -> list[StoredItem]:
    """The items of the conversation before the one of that number, the newest first."""
    return _items(connection, "number < ? ORDER BY number DESC LIMIT ?", session_id, number, limit)


def items_since(connection: sqlite3.Connection, session_id: str, sequence: int) -> list[StoredItem]:
    """The items of the conversation that began after an event."""
    return _items(connection, "first > ? AND number IS NOT NULL ORDER BY first", session_id, sequence)


def messages_after(connection: sqlite3.Connection, session_id: str, sequence: int, limit: int) -> list[StoredItem]:
    """The messages of the conversation that were completed after an event, in that order."""
    condition = "kind = 'message' AND number IS NOT NULL AND NOT is_open AND last > ? ORDER BY last LIMIT ?"
    return _items(connection, condition, session_id, sequence, limit)


def _items(connection: sqlite3.Connection, which: str, *values: str | int) -> list[StoredItem]:
    items: list[StoredItem] = []
    for number, first, last, is_open, turn_id, body in connection.execute(f"{_ITEM} {which}", values).fetchall():
        if whole := body or _event(connection, str(values[0]), last):
            item = StoredItem(number=number, first=first, last=last, is_open=is_open, turn_id=turn_id, body=whole)
            items.append(item)
    return items


def _event(connection: sqlite3.Connection, session_id: str, sequence: int) -> bytes:
    """An event that is too large to be in the outline too; empty if its session is just being cleared."""
    found = session_events(connection, session_id, sequence - 1, 1, raw=False, max_bytes=1)
    return found[0].body if found else b""


def newest_lines(connection: sqlite3.Connection, session_id: str, limit: int) -> list[StoredEvent]:
    """The newest events that are a line of the log, in order; an item is one when it is complete."""
    rows = connection.execute(
        "SELECT sequence, body FROM "
        "(SELECT * FROM (SELECT sequence, body FROM lines WHERE session = ?1 ORDER BY sequence DESC LIMIT ?2) "
        "UNION ALL SELECT * FROM (SELECT last AS sequence, body FROM items WHERE session = ?1 AND NOT is_open "
        "ORDER BY last DESC LIMIT ?2)) ORDER BY sequence DESC LIMIT ?2",
        (session_id, limit),
    )
    newest = rows.fetchall()[::-1]
    whole = ((number, body or _event(connection, session_id, number)) for number, body in newest)
    return [StoredEvent(number, body) for number, body in whole if body]


def newest_artifacts(connection: sqlite3.Connection, session_id: str, limit: int) -> list[StoredEvent]:
    """The newest reference to each file, in the order of their last change."""
    query = "SELECT sequence, body FROM artifacts WHERE session = ? AND is_newest ORDER BY sequence DESC LIMIT ?"
    return [StoredEvent(number, body) for number, body in connection.execute(query, (session_id, limit))][::-1]


def session_snapshots(connection: sqlite3.Connection, session_id: str) -> list[Snapshot]:
    """All snapshots of a session in order."""
    rows = connection.execute("SELECT snapshot FROM snapshots WHERE session = ? ORDER BY sequence", (session_id,))
    return [_snapshot.decode(snapshot) for (snapshot,) in rows]


def workspaces_in_use(connection: sqlite3.Connection) -> set[str]:
    """The workspaces that sessions have."""
    return {name for (name,) in connection.execute("SELECT workspace FROM sessions WHERE workspace IS NOT NULL")}


def ended_with_workspace(connection: sqlite3.Connection, statuses: Iterable[str]) -> list[SessionRecord]:
    """The sessions with one of these statuses whose workspaces are there."""
    wanted = tuple(statuses)
    query = f"SELECT {_COLUMNS} FROM sessions WHERE workspace IS NOT NULL AND status IN ({','.join('?' * len(wanted))})"  # noqa: S608  fixed columns
    return [_record(row) for row in connection.execute(query, wanted)]


def uncalled_webhooks(
    connection: sqlite3.Connection, statuses: Iterable[str]
) -> list[tuple[SessionRecord, frozenset[int]]]:
    """The sessions with one of these statuses whose webhooks were not all called, and which those are."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for session, number in connection.execute("SELECT session, number FROM webhooks"):
        numbers[session].add(number)
    wanted = set(statuses)
    query = f"SELECT {_COLUMNS} FROM sessions WHERE id IN (SELECT session FROM webhooks) ORDER BY id"  # noqa: S608  fixed columns
    records = map(_record, connection.execute(query).fetchall())
    return [(record, frozenset(numbers[record.id])) for record in records if record.status in wanted]


def count_by_project(connection: sqlite3.Connection, project: str) -> dict[str, int]:
    """How many sessions there are by what their tasks call their project."""
    rows = connection.execute(
        "SELECT coalesce(json_extract(CAST(spec AS TEXT), '$.task.project_id'), project) AS name, COUNT(*) "
        "FROM sessions WHERE project = ? GROUP BY name",
        (project,),
    )
    return {project: 0, **dict(rows.fetchall())}


def list_asks(connection: sqlite3.Connection, project: str, session_id: str | None, *, only_open: bool) -> list[Ask]:
    """Asks of the project, or of one session, oldest first."""
    rows = connection.execute(
        "SELECT ask FROM asks JOIN sessions ON sessions.id = asks.session "
        "WHERE project = ? AND (? IS NULL OR session = ?) AND (is_open OR NOT ?) ORDER BY requested_at, ask_id",
        (project, session_id, session_id, only_open),
    )
    return [_ask.decode(ask) for (ask,) in rows]


def find_ask(connection: sqlite3.Connection, session_id: str, ask_id: str) -> Ask | None:
    """One ask of a session, open or decided."""
    row = connection.execute("SELECT ask FROM asks WHERE session = ? AND ask_id = ?", (session_id, ask_id)).fetchone()
    return _ask.decode(row[0]) if row else None


def find_response(connection: sqlite3.Connection, scope: str, key: str) -> StoredResponse | None:
    """The answer given before to this Idempotency-Key."""
    query = "SELECT fingerprint, status, headers, body FROM idempotency WHERE scope = ? AND key = ?"
    row = connection.execute(query, (scope, key)).fetchone()
    if row is None:
        return None
    headers = msgspec.msgpack.decode(row[2], type=list[tuple[bytes, bytes]])
    return StoredResponse(fingerprint=row[0], status=row[1], headers=headers, body=row[3])


def session_ids(connection: sqlite3.Connection) -> set[str]:
    """Every session there is."""
    return {id_ for (id_,) in connection.execute("SELECT id FROM sessions")}


def _record(row: tuple[Any, ...]) -> SessionRecord:
    return SessionRecord(
        id=row[0],
        project=row[1],
        key=row[2],
        agent=row[3],
        status=row[4],
        title=row[5],
        labels=_labels.decode(row[6]),
        created_at=row[7],
        updated_at=row[8],
        spec=_spec.decode(row[9]),
        state=row[10],
        last_sequence=row[11] or 0,
    )
