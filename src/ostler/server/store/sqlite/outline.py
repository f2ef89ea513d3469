"""The rows of the outline: items, log lines and artifacts.

They are written in the same transaction as the events, from the events alone: `rebuild` makes them for a database that
is older than they are.
"""

import sqlite3
from collections.abc import Callable, Iterator

from ostler.server.store.bursts import ITEMS, MARKED, Mark, mark_of, stored_body
from ostler.wire.events import TurnEnded, TurnStarted, UnknownEvent, decode_event
from ostler.wire.items import Item

_PREFIXES = tuple(b'{"type":"%b"' % kind.encode() for kind in sorted(MARKED))

KEYS = {"items": "first", "lines": "sequence", "artifacts": "sequence"}
"""The tables, each with the column that tells the rows of one session apart."""


def write(connection: sqlite3.Connection, session_id: str, mark: Mark) -> None:
    """Add one event to the outline of a session."""
    if mark.type in ITEMS:
        _put_item(connection, session_id, mark)
    elif mark.type == "artifact.created":
        _put_artifact(connection, session_id, mark)
    else:
        connection.execute("INSERT INTO lines VALUES (?, ?, ?)", (session_id, mark.sequence, mark.body))
    if mark.type == "session.rewound":
        _rewind(connection, session_id, mark.data.sequence)


def _put_item(connection: sqlite3.Connection, session_id: str, mark: Mark) -> None:
    """An item that is known gets a new content; the number of a new one is how many are in the conversation."""
    item: Item = mark.data.item
    content = (mark.sequence, mark.type == "item.started", stored_body(mark))
    known = connection.execute(
        "UPDATE items SET last = ?, is_open = ?, body = ? WHERE session = ? AND item_id = ? AND number IS NOT NULL",
        (*content, session_id, item.item_id),
    )
    if not known.rowcount:
        connection.execute(
            "INSERT INTO items (session, first, item_id, kind, turn_id, last, is_open, body, number) VALUES "
            "(?, ?, ?, ?, ?, ?, ?, ?, 1 + coalesce((SELECT max(number) FROM items WHERE session = ?), 0))",
            (session_id, mark.sequence, item.item_id, item.kind, mark.turn_id, *content, session_id),
        )


def _put_artifact(connection: sqlite3.Connection, session_id: str, mark: Mark) -> None:
    """Earlier references to the same file are kept: a rewind brings the last of them back."""
    place = (session_id, mark.data.path)
    connection.execute("UPDATE artifacts SET is_newest = 0 WHERE session = ? AND path = ? AND is_newest", place)
    row = (session_id, mark.sequence, mark.data.path, 1, mark.body)
    connection.execute("INSERT INTO artifacts VALUES (?, ?, ?, ?, ?)", row)


def _rewind(connection: sqlite3.Connection, session_id: str, sequence: int) -> None:
    """What comes after the sequence stays in the log and leaves the conversation."""
    connection.execute("UPDATE items SET number = NULL WHERE session = ? AND first > ?", (session_id, sequence))
    undone = "DELETE FROM artifacts WHERE session = ? AND sequence > ? RETURNING path"
    for path in {path for (path,) in connection.execute(undone, (session_id, sequence)).fetchall()}:
        connection.execute(
            "UPDATE artifacts SET is_newest = 1 WHERE session = ?1 AND sequence = "
            "(SELECT max(sequence) FROM artifacts WHERE session = ?1 AND path = ?2)",
            (session_id, path),
        )


ReadEvents = Callable[[sqlite3.Connection, str], Iterator[tuple[int, bytes]]]
"""All events of a session, each with its sequence."""


def rebuild(connection: sqlite3.Connection, read_events: ReadEvents) -> None:
    """Write the outline of every session anew, from its log."""
    for name in KEYS:
        connection.execute(f"DELETE FROM {name}")  # noqa: S608  fixed names
    for (session_id,) in connection.execute("SELECT id FROM sessions").fetchall():
        for mark in _marks(read_events(connection, session_id)):
            write(connection, session_id, mark)


def _marks(events: Iterator[tuple[int, bytes]]) -> Iterator[Mark]:
    turn_id: str | None = None
    for sequence, body in events:
        if not body.startswith(_PREFIXES):
            continue
        event = decode_event(body)
        if isinstance(event, UnknownEvent):
            continue
        if isinstance(event, TurnStarted):
            turn_id = event.data.turn_id
        if (mark := mark_of(sequence, event.type, event.data, body, turn_id)) is not None:
            yield mark
        if isinstance(event, TurnEnded):
            turn_id = None
