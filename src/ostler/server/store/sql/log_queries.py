"""Everything that is read of the logs of sessions and of what is made of them."""

from collections.abc import Sequence

import msgspec

from ostler.server.store.bursts import unpack
from ostler.server.store.records import SessionName, StoredEvent, StoredItem
from ostler.server.store.search import CompletedItem, CompletedItems
from ostler.server.store.sql.reading import Dialect, Query, Row, row_of, rows_of, values_of
from ostler.wire.sessions import Ask, Turn
from ostler.wire.workspaces import Snapshot

_FEW_ROWS, _MOST_ROWS = 8, 256
_MUCH_BYTES = 2**18
_turn = msgspec.json.Decoder(Turn)
_ask = msgspec.json.Decoder(Ask)
_snapshot = msgspec.json.Decoder(Snapshot)


def session_events(session_id: str, offset: int, limit: int, *, raw: bool, max_bytes: int) -> Query[list[StoredEvent]]:
    """Events with a sequence above the offset, in order; the one that reaches max_bytes is the last."""
    query = (
        "SELECT last, first, session, packing, body, raw FROM chunks "
        "WHERE session = ? AND last > ? ORDER BY last LIMIT ?"
    )
    return (yield from _Gathering(offset, limit, max_bytes, raw=raw).gather(query, session_id))


def project_events(dialect: Dialect, project: str, offset: int, limit: int, max_bytes: int) -> Query[list[StoredEvent]]:
    """Events of all sessions with a position above the offset, in the order they were committed; bounded alike."""
    query = (
        "SELECT position, position - (last - first), session, packing, body, raw "  # noqa: S608  fixed words
        "FROM chunks JOIN sessions ON sessions.id = chunks.session "
        f"WHERE project = ? AND position > ? AND {dialect.is_settled} ORDER BY position LIMIT ?"
    )
    return (yield from _Gathering(offset, limit, max_bytes, raw=False).gather(query, project))


class _Gathering:
    """Events after an offset, read in pages that grow while they are small: little is read that is not wanted."""

    def __init__(self, offset: int, limit: int, max_bytes: int, *, raw: bool) -> None:
        self._offset = offset
        self._limit = limit
        self._max_bytes = max_bytes
        self._raw = raw
        self._size = 0
        self._events: list[StoredEvent] = []

    def gather(self, query: str, whose: str) -> Query[list[StoredEvent]]:
        """Read until there is enough, or no more."""
        after, page = self._offset, min(_FEW_ROWS, self._limit)
        while True:
            rows = yield from rows_of(query, whose, after, page)
            if any(self._is_enough_with(row) for row in rows) or len(rows) < page:
                return self._events
            after = rows[-1][0]
            if sum(len(row[4]) for row in rows) < _MUCH_BYTES:
                page = min(page * 4, _MOST_ROWS)

    def _is_enough_with(self, row: Row) -> bool:
        _, first, session, packing, body, frames = row
        lines, raws = unpack(session, packing, body, frames)
        skip = max(0, self._offset + 1 - first)
        for number, line, frame in zip(range(first + skip, first + len(lines)), lines[skip:], raws[skip:], strict=True):
            self._events.append(StoredEvent(number, line, (self._raw and frame) or None))
            self._size += len(line) + (len(frame or b"") if self._raw else 0)
            if self._size >= self._max_bytes or len(self._events) >= self._limit:
                return True
        return False


def last_position(dialect: Dialect) -> Query[int]:
    """The position of the newest event of all sessions."""
    (value,) = yield from values_of(dialect.last_position)
    return int(value)


def settled_position(dialect: Dialect) -> Query[int]:
    """The last position at or before which no event will be added any more."""
    (value,) = yield from values_of(dialect.settled_position)
    return int(value)


def last_step(session_id: str, start: int) -> Query[int]:
    """How far one of the session's processes has come in the log; 0 if nothing of it is there."""
    query = "SELECT step FROM chunks WHERE session = ? AND start = ? ORDER BY last DESC LIMIT 1"
    row = yield from row_of(query, session_id, start)
    return row[0] if row else 0


def last_sequences(session_ids: Sequence[str]) -> Query[dict[str, int]]:
    """The sequence of the newest event of each of these sessions that is there."""
    marks = ",".join("?" for _ in session_ids)
    query = f"SELECT id, (SELECT MAX(last) FROM chunks WHERE session = sessions.id) FROM sessions WHERE id IN ({marks})"  # noqa: S608  only marks
    rows = yield from rows_of(query, *session_ids)
    return {session: last or 0 for session, last in rows}


def session_names(project: str, session_ids: Sequence[str]) -> Query[dict[str, SessionName]]:
    """What those of these sessions are called that are there."""
    marks = ",".join("?" for _ in session_ids)
    query = f"SELECT id, key, title FROM sessions WHERE project = ? AND id IN ({marks})"  # noqa: S608  only marks
    rows = (yield from rows_of(query, project, *session_ids)) if session_ids else ()
    return {session: SessionName(key, title) for session, key, title in rows}


def had_by_others(owner: str, session_ids: Sequence[str]) -> Query[list[str]]:
    """Which of these sessions another server than this owner has, or are deleted."""
    marks = ",".join("?" for _ in session_ids)
    query = (
        f"SELECT session FROM owners WHERE session IN ({marks}) AND owner <> ? "  # noqa: S608  only marks
        f"UNION SELECT id FROM deleted_sessions WHERE id IN ({marks})"
    )
    rows = yield from rows_of(query, *session_ids, owner, *session_ids)
    return [session for (session,) in rows]


def log_size(session_id: str) -> Query[int]:
    """How many bytes the events of a session take, of which none is ever changed; so this never becomes less."""
    (size,) = yield from values_of("SELECT sum(length(body)) FROM chunks WHERE session = ?", session_id)
    return int(size or 0)


def session_turns(session_id: str) -> Query[list[Turn]]:
    """All turns of a session in order."""
    return (yield from _turns("session = ? ORDER BY number", session_id))


def find_turn(dialect: Dialect, session_id: str, which: int | str) -> Query[Turn | None]:
    """A turn by its number, or the newest of that id."""
    column = "number" if isinstance(which, int) else dialect.turn_id
    turns = yield from _turns(f"session = ? AND {column} = ? ORDER BY number DESC LIMIT 1", session_id, which)
    return turns[0] if turns else None


def turn_around(dialect: Dialect, session_id: str, sequence: int) -> Query[Turn | None]:
    """The last turn that began at the sequence or before it."""
    begin = dialect.turn_begin
    turns = yield from _turns(f"session = ? AND {begin} <= ? ORDER BY {begin} DESC LIMIT 1", session_id, sequence)
    return turns[0] if turns else None


def branching_turns(dialect: Dialect, session_id: str) -> Query[list[Turn]]:
    """The turns that go on from another one than the one before them, in order."""
    return (yield from _turns(f"session = ? AND {dialect.turn_branches} ORDER BY number", session_id))


def turns_within(session_id: str, spans: Sequence[tuple[int, int]]) -> Query[list[Turn]]:
    """The turns whose numbers are in one of the spans; both ends belong to a span."""
    turns: list[Turn] = []
    for span in spans:
        turns += yield from _turns("session = ? AND number BETWEEN ? AND ? ORDER BY number", session_id, *span)
    return turns


def _turns(which: str, *values: str | int) -> Query[list[Turn]]:
    found = yield from values_of(f"SELECT turn FROM turns WHERE {which}", *values)  # noqa: S608  fixed words
    return [_turn.decode(turn) for turn in found]


def items_after(session_id: str, number: int, limit: int) -> Query[list[StoredItem]]:
    """The items of the conversation that follow the one of that number."""
    return (yield from _items("number > ? ORDER BY number LIMIT ?", session_id, number, limit))


def items_before(session_id: str, number: int, limit: int) -> Query[list[StoredItem]]:
    """The items of the conversation before the one of that number, the newest first."""
    return (yield from _items("number < ? ORDER BY number DESC LIMIT ?", session_id, number, limit))


def items_since(session_id: str, sequence: int) -> Query[list[StoredItem]]:
    """The items of the conversation that began after an event."""
    return (yield from _items("first > ? AND number IS NOT NULL ORDER BY first", session_id, sequence))


def messages_after(session_id: str, sequence: int, limit: int) -> Query[list[StoredItem]]:
    """The messages of the conversation that were completed after an event, in that order."""
    which = "kind = 'message' AND number IS NOT NULL AND NOT is_open AND last > ? ORDER BY last LIMIT ?"
    return (yield from _items(which, session_id, sequence, limit))


def completed_after(dialect: Dialect, position: int, limit: int) -> Query[CompletedItems]:
    """What was completed by the next few chunks of all sessions after a position."""
    next_chunks = f"SELECT position FROM chunks WHERE position > ? AND {dialect.is_settled} ORDER BY position LIMIT ?"  # noqa: S608  fixed words
    positions = yield from values_of(next_chunks, position, limit)
    upto = positions[-1] if positions else position
    rows = yield from rows_of(
        "SELECT items.session, items.first, items.last, items.body FROM chunks "
        "JOIN items ON items.session = chunks.session AND items.last BETWEEN chunks.first AND chunks.last "
        "WHERE position > ? AND position <= ? AND NOT is_open ORDER BY position, items.last",
        position,
        upto,
    )
    about = {}
    for session in dict.fromkeys(row[0] for row in rows):
        about[session] = yield from row_of("SELECT project, agent, state FROM sessions WHERE id = ?", session)
    items: list[CompletedItem] = []
    for session, first, last, body in rows:
        if (known := about[session]) is None:
            continue  # it was deleted
        if whole := body or (yield from _event(session, last)):
            project, agent, state = known
            items.append(CompletedItem(project, session, agent, state, first, whole))
    more = yield from row_of("SELECT 1 FROM chunks WHERE position > ? LIMIT 1", upto)
    return CompletedItems(items, upto, more is not None)


def _items(which: str, session_id: str, *values: int) -> Query[list[StoredItem]]:
    query = f"SELECT number, first, last, is_open, turn_id, body FROM items WHERE session = ? AND {which}"  # noqa: S608  fixed words
    items: list[StoredItem] = []
    for number, first, last, is_open, turn_id, body in (yield from rows_of(query, session_id, *values)):
        if whole := body or (yield from _event(session_id, last)):
            item = StoredItem(number=number, first=first, last=last, is_open=is_open, turn_id=turn_id, body=whole)
            items.append(item)
    return items


def _event(session_id: str, sequence: int) -> Query[bytes]:
    """An event that is too large to be in the outline too; empty if its session is just being cleared."""
    found = yield from session_events(session_id, sequence - 1, 1, raw=False, max_bytes=1)
    return found[0].body if found else b""


def newest_lines(session_id: str, limit: int) -> Query[list[StoredEvent]]:
    """The newest events that are a line of the log, in order; an item is one when it is complete."""
    newest = yield from rows_of(
        "SELECT sequence, body FROM "
        "(SELECT * FROM (SELECT sequence, body FROM lines WHERE session = ? ORDER BY sequence DESC LIMIT ?) AS plain "
        "UNION ALL SELECT * FROM (SELECT last AS sequence, body FROM items WHERE session = ? AND NOT is_open "
        "ORDER BY last DESC LIMIT ?) AS complete) AS newest ORDER BY sequence DESC LIMIT ?",
        *(session_id, limit, session_id, limit, limit),
    )
    events: list[StoredEvent] = []
    for number, body in reversed(newest):
        if whole := body or (yield from _event(session_id, number)):
            events.append(StoredEvent(number, whole))
    return events


def newest_artifacts(session_id: str, limit: int) -> Query[list[StoredEvent]]:
    """The newest reference to each file, in the order of their last change."""
    query = "SELECT sequence, body FROM artifacts WHERE session = ? AND is_newest ORDER BY sequence DESC LIMIT ?"
    rows = yield from rows_of(query, session_id, limit)
    return [StoredEvent(number, body) for number, body in reversed(rows)]


def session_snapshots(session_id: str) -> Query[list[Snapshot]]:
    """All snapshots of a session in order."""
    found = yield from values_of("SELECT snapshot FROM snapshots WHERE session = ? ORDER BY sequence", session_id)
    return [_snapshot.decode(snapshot) for snapshot in found]


def list_asks(project: str, session_id: str | None, *, only_open: bool) -> Query[list[Ask]]:
    """Asks of the project, or of one session, oldest first."""
    where, values = ["project = ?"], [project]
    if session_id is not None:
        where.append("session = ?")
        values.append(session_id)
    if only_open:
        where.append("is_open")
    found = yield from values_of(
        "SELECT ask FROM asks JOIN sessions ON sessions.id = asks.session "  # noqa: S608  fixed words
        f"WHERE {' AND '.join(where)} ORDER BY requested_at, ask_id",
        *values,
    )
    return [_ask.decode(ask) for ask in found]


def find_ask(session_id: str, ask_id: str) -> Query[Ask | None]:
    """One ask of a session, open or decided."""
    found = yield from values_of("SELECT ask FROM asks WHERE session = ? AND ask_id = ?", session_id, ask_id)
    return _ask.decode(found[0]) if found else None
