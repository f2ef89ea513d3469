"""The database schema as numbered migrations; a number is never changed once released."""

import sqlite3
from collections.abc import Callable

from ostler.base.errors import DatabaseTooNew
from ostler.server.store.sqlite import outline
from ostler.server.store.sqlite.queries import every_plain_event

_SESSIONS = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    key TEXT NOT NULL,
    agent TEXT NOT NULL,
    status TEXT NOT NULL,
    title TEXT,
    labels TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    spec BLOB NOT NULL,
    state BLOB NOT NULL,
    UNIQUE (project, key)
);
CREATE INDEX sessions_by_status ON sessions (project, status, id);
CREATE TABLE deleted_sessions (id TEXT PRIMARY KEY, project TEXT NOT NULL, key TEXT NOT NULL, deleted_at TEXT NOT NULL);
"""

# A chunk is a burst of events of one session, packed JSON lines: one row instead of many is 2 to 4 times faster.
# `position` counts the events of all sessions and is the cursor of the project-wide stream.
_EVENTS = """
CREATE TABLE chunks (
    position INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    body BLOB NOT NULL,
    raw BLOB
);
CREATE UNIQUE INDEX chunks_by_session ON chunks (session, last);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO counters VALUES ('position', 0);
"""

_PROJECTIONS = """
CREATE TABLE turns (
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    turn BLOB NOT NULL,
    PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE TABLE asks (
    session TEXT NOT NULL,
    ask_id TEXT NOT NULL,
    is_open INTEGER NOT NULL,
    requested_at TEXT NOT NULL,
    ask BLOB NOT NULL,
    PRIMARY KEY (session, ask_id)
) WITHOUT ROWID;
CREATE INDEX asks_open ON asks (requested_at) WHERE is_open;
"""

_IDEMPOTENCY = """
CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created);
"""

# How far the agent's process had come when a chunk was written: a restarted server goes on behind it.
_PROGRESS = """
ALTER TABLE chunks ADD COLUMN start INTEGER;
ALTER TABLE chunks ADD COLUMN step INTEGER;
"""

# Which workspace a session has, so that those that nobody has any more can be found; and what was kept of it.
_WORKSPACES = """
ALTER TABLE sessions ADD COLUMN workspace TEXT;
CREATE TABLE snapshots (
    session TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    snapshot BLOB NOT NULL,
    PRIMARY KEY (session, sequence)
) WITHOUT ROWID;
"""

# A row for each webhook of a task until it was called: whoever finds one of a session that is over calls it.
_WEBHOOKS = """
CREATE TABLE webhooks (session TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (session, number)) WITHOUT ROWID;
"""

# How the lines of a chunk are packed (packing.py): none in rows of earlier versions, which stay as they are.
_PACKING = "ALTER TABLE chunks ADD COLUMN packing INTEGER;"

# Who has a session, in rows of their own: a server claims all at its start, and their states need not be written anew.
_OWNERS = """
CREATE TABLE owners (session TEXT PRIMARY KEY, owner TEXT NOT NULL, epoch INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO owners SELECT id, '', 0 FROM sessions;
INSERT INTO counters VALUES ('epoch', 0);
"""

MIGRATIONS: tuple[str, ...] = (
    _SESSIONS + _EVENTS + _PROJECTIONS + _IDEMPOTENCY,
    _PROGRESS,
    _WORKSPACES,
    _WEBHOOKS,
    outline.TABLES,
    _PACKING,
    _OWNERS,
)
SCHEMA_VERSION = len(MIGRATIONS)
_FILLED: dict[str, Callable[[sqlite3.Connection], None]] = {
    outline.TABLES: lambda connection: outline.rebuild(connection, every_plain_event),
}
"""What fills the tables of a migration from what is there."""


def migrate(connection: sqlite3.Connection, *, path: str) -> None:
    """Bring a database to the newest schema, each step in its own transaction; refuse one from the future."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > SCHEMA_VERSION:
        raise DatabaseTooNew(path=path, found=found, known=SCHEMA_VERSION)
    for number in range(found, SCHEMA_VERSION):
        connection.executescript(f"BEGIN;{MIGRATIONS[number]}")
        if (fill := _FILLED.get(MIGRATIONS[number])) is not None:
            fill(connection)
        connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
