"""Every SQL statement that writes, as functions of a connection; they run inside the writer's transaction."""

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.base.clock import steady_seconds
from ostler.base.errors import StoreUnavailable
from ostler.server.store.errors import KeyTaken, StaleOwner
from ostler.server.store.records import (
    DONE,
    Append,
    AppendResult,
    Done,
    NewJob,
    NewSession,
    SessionSpec,
    StoredResponse,
    encode,
)
from ostler.server.store.sqlite import jobs, outline
from ostler.server.store.sqlite.ledger import Ledger

_CLEARED_ROWS = 32
_CLEARED_BYTES = 2**20
_CLEARED = {**outline.KEYS, "chunks": "last"}
"""Where the events of a session lie, each table with the column that tells its rows apart."""
IDEMPOTENCY_SECONDS = 24 * 3600


def claim(ledger: Ledger, owner: str, session_ids: Sequence[str] | None) -> int:
    """Give these sessions, or all, to an owner; what anybody else has decided since is refused."""
    (epoch,) = ledger.execute("UPDATE counters SET value = value + 1 WHERE name = 'epoch' RETURNING value").fetchone()
    if session_ids is None:
        ledger.execute("UPDATE owners SET owner = ?, epoch = ?", (owner, epoch))
    else:
        rows = [(owner, epoch, session_id) for session_id in session_ids]
        ledger.executemany("UPDATE owners SET owner = ?, epoch = ? WHERE session = ?", rows)
    ledger.forget_epochs()
    return int(epoch)


def create_session(ledger: Ledger, new: NewSession, first: Append, owner: str) -> AppendResult:
    """Create a session with its first events; KeyTaken if its project has the key."""
    change = first.change
    if change is None:
        raise ValueError("a new session needs its first state")
    row = (
        new.id,
        new.project,
        new.key,
        new.agent,
        change.status,
        change.title,
        encode(change.labels).decode(),
        new.created_at,
        change.updated_at,
        encode(new.spec),
        change.state,
        change.workspace,
        new.runner,
    )
    try:
        ledger.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    except sqlite3.IntegrityError:
        raise KeyTaken(new.key) from None
    ledger.execute("INSERT INTO owners VALUES (?, ?, ?)", (new.id, owner, first.epoch))
    return append_burst(ledger, first)


def take(ledger: Ledger, owner: str, session_id: str, epoch: int) -> int | None:
    """Give a session to an owner if it is had in this epoch."""
    return claim(ledger, owner, [session_id]) if ledger.epoch_of(session_id) == epoch else None


def update_spec(ledger: Ledger, session_id: str, epoch: int, spec: SessionSpec) -> None:
    """Change what the agent of a session is started with."""
    if ledger.epoch_of(session_id) != epoch:
        raise StaleOwner(session_id)
    ledger.execute("UPDATE sessions SET spec = ? WHERE id = ?", (encode(spec), session_id))


def take_strays(connection: sqlite3.Connection, runner: str) -> None:
    """Sessions on runners that nobody knows any more are on this one."""
    strays = "runner <> ?1 AND runner NOT IN (SELECT runner FROM runner_keys)"
    connection.execute(f"UPDATE sessions SET runner = ?1 WHERE {strays}", (runner,))  # noqa: S608  fixed text


def nothing(_: sqlite3.Connection) -> None:
    """Be done when those before are."""


def touch(connection: sqlite3.Connection) -> None:
    """Write something that changes nothing, to see whether it can be done."""
    connection.execute("UPDATE counters SET value = value WHERE name = 'position'")


def append_burst(ledger: Ledger, append: Append) -> AppendResult:
    """Append a burst and everything that belongs to it."""
    if append.epoch != ledger.epoch_of(append.session_id):
        raise StaleOwner(append.session_id)
    last = ledger.last_of(append.session_id)
    if append.first != last + 1:  # an earlier burst of this session failed; this one must not leave a gap
        raise StoreUnavailable(reason=f"event {append.first} does not follow {last}")
    result = ledger.add_chunk(append)
    _update_session(ledger, append)
    if (placed := append.placed) is not None:
        row = (placed.runner, encode(placed.spec), placed.agent, append.session_id)
        ledger.execute("UPDATE sessions SET runner = ?, spec = ?, agent = coalesce(?, agent) WHERE id = ?", row)
    _upsert_projections(ledger, append)
    if append.done is not None:
        _insert_done(ledger, append.done)
    jobs.add(ledger, *append.jobs)
    return result


def _update_session(connection: sqlite3.Connection, append: Append) -> None:
    if (change := append.change) is not None:
        connection.execute(
            "UPDATE sessions SET status = ?, title = ?, labels = ?, updated_at = ?, state = ?, workspace = ? "
            "WHERE id = ?",
            (
                change.status,
                change.title,
                encode(change.labels).decode(),
                change.updated_at,
                change.state,
                change.workspace,
                append.session_id,
            ),
        )


def _upsert_projections(connection: sqlite3.Connection, append: Append) -> None:
    for turn in append.turns:
        connection.execute(
            "INSERT OR REPLACE INTO turns VALUES (?, ?, ?)", (append.session_id, turn.number, encode(turn))
        )
    if append.used is not None:
        row = (append.session_id, *append.used)
        connection.execute("INSERT OR REPLACE INTO turn_uses VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for snapshot in append.snapshots:
        connection.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)",
            (append.session_id, snapshot.sequence, encode(snapshot)),
        )
    for ask in append.asks:
        connection.execute(
            "INSERT OR REPLACE INTO asks VALUES (?, ?, ?, ?, ?)",
            (append.session_id, ask.ask_id, ask.status == "requested", ask.requested_at, encode(ask)),
        )
    for mark in append.marks:
        outline.write(connection, append.session_id, mark)


def _insert_done(connection: sqlite3.Connection, done: Done) -> None:
    response = StoredResponse(fingerprint="", status=0, headers=[], body=done.result)
    remember_response(connection, DONE, done.claim, response)


def delete_session(
    ledger: Ledger, session_id: str, epoch: int, deleted_at: str, new_jobs: Sequence[NewJob] = ()
) -> None:
    """Remove a session; only its id is remembered. Its events are out of sight, and cleared little by little."""
    if ledger.epoch_of(session_id) not in {epoch, None}:
        raise StaleOwner(session_id)
    ledger.execute(
        "INSERT OR IGNORE INTO deleted_sessions SELECT id, project, key, ? FROM sessions WHERE id = ?",
        (deleted_at, session_id),
    )
    ledger.forget_epochs()
    for table in ("owners", "turns", "asks", "snapshots", "reads"):
        ledger.execute(f"DELETE FROM {table} WHERE session = ?", (session_id,))  # noqa: S608  fixed names
    ledger.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    jobs.add(ledger, *new_jobs)


def clear_some_events(connection: sqlite3.Connection, session_id: str) -> bool:
    """Remove a few chunks, or rows of the outline, of a deleted session; False when there were none left."""
    return any(_clear_some(connection, name, key, session_id) for name, key in _CLEARED.items())


def _clear_some(connection: sqlite3.Connection, name: str, key: str, session_id: str) -> bool:
    """Remove the first rows: so few, and so small together, that nobody waits long for the transaction."""
    query = f"SELECT {key}, length(body) FROM {name} WHERE session = ? ORDER BY {key} LIMIT ?"  # noqa: S608  fixed names
    rows = connection.execute(query, (session_id, _CLEARED_ROWS)).fetchall()
    upto, size = None, 0
    for number, length in rows:
        if upto is not None and size + length > _CLEARED_BYTES:
            break
        upto, size = number, size + length
    connection.execute(f"DELETE FROM {name} WHERE session = ? AND {key} <= ?", (session_id, upto))  # noqa: S608  fixed names
    return upto is not None


def remember_response(connection: sqlite3.Connection, scope: str, key: str, response: StoredResponse) -> None:
    """Remember the answer to an Idempotency-Key and forget those older than a day."""
    created = steady_seconds()
    connection.execute("DELETE FROM idempotency WHERE created < ?", (created - IDEMPOTENCY_SECONDS,))
    row: tuple[Any, ...] = (
        scope,
        key,
        response.fingerprint,
        response.status,
        msgspec.msgpack.encode(response.headers),
        response.body,
        created,
    )
    connection.execute("INSERT OR IGNORE INTO idempotency VALUES (?, ?, ?, ?, ?, ?, ?)", row)
