"""Brings a SQLite database to the newest schema."""

import sqlite3
from collections.abc import Iterator

from ostler.base.errors import DatabaseTooNew
from ostler.server.store.sql.schema import MIGRATIONS, OUTLINE_VERSION, SCHEMA_VERSION
from ostler.server.store.sqlite import outline


def _every_plain_event(connection: sqlite3.Connection, session_id: str) -> Iterator[tuple[int, bytes]]:
    """The whole log of a session in a database of a version that did not pack its rows yet."""
    rows = connection.execute("SELECT first, body FROM chunks WHERE session = ? ORDER BY last", (session_id,))
    for first, body in rows:
        yield from enumerate(body.split(b"\n"), first)


def migrate(connection: sqlite3.Connection, *, path: str) -> None:
    """Bring a database to the newest schema, each step in its own transaction; refuse one from the future."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > SCHEMA_VERSION:
        raise DatabaseTooNew(path=path, found=found, known=SCHEMA_VERSION)
    for number, migration in enumerate(MIGRATIONS[found:], found + 1):
        connection.executescript(f"BEGIN;{migration.sqlite}")
        if number == OUTLINE_VERSION:
            outline.rebuild(connection, _every_plain_event)
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
