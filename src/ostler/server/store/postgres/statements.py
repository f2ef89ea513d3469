"""Everything that is written beside bursts, as functions of the writer's transaction."""

from collections.abc import Sequence

import msgspec

from ostler.base.clock import steady_seconds
from ostler.server.store.errors import ClaimTaken, KeyTaken, StaleOwner
from ostler.server.store.postgres.bursts import labels_of
from ostler.server.store.postgres.dialect import sendable
from ostler.server.store.postgres.links import check_holder
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.records import Append, AppendResult, NewJob, NewSession, SessionSpec, StoredResponse, encode

_SESSION = """
INSERT INTO sessions VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
ON CONFLICT DO NOTHING RETURNING id
"""
_CLEARED_ROWS = 32
_CLEARED_BYTES = 2**20
_CLEARED = {"said": "first", "items": "first", "lines": "sequence", "artifacts": "sequence", "chunks": "last"}
"""Where the events of a session lie, each table with the column that tells its rows apart."""
_RESPONSE_SECONDS = 24 * 3600


async def claim(transaction: Transaction, owner: str, session_ids: Sequence[str] | None) -> int:
    """Give these sessions, or all, to an owner; what anybody else has decided since is refused."""
    connection = transaction.connection
    epoch: int = await connection.fetchval("SELECT nextval('epochs')")
    if session_ids is None:
        update = (
            "UPDATE owners SET owner = $1, epoch = $2 "
            "WHERE owner = $1 OR NOT EXISTS (SELECT 1 FROM servers WHERE id = owners.owner)"
        )
        await connection.execute(update, owner, epoch)
    else:
        update = "UPDATE owners SET owner = $1, epoch = $2 WHERE session = ANY($3)"
        await connection.execute(update, owner, epoch, list(session_ids))
    await transaction.look_at(transaction.epochs)
    return epoch


async def take(transaction: Transaction, owner: str, session_id: str, epoch: int) -> int | None:
    """Give a session to an owner if it is had in this epoch; of two who try at once one does."""
    update = "UPDATE owners SET owner = $1, epoch = nextval('epochs') WHERE session = $2 AND epoch = $3 RETURNING epoch"
    taken: int | None = await transaction.connection.fetchval(update, owner, session_id, epoch)
    await transaction.look_at(transaction.epochs)
    return taken


async def create_session(transaction: Transaction, new: NewSession, first: Append, owner: str) -> AppendResult:
    """Create a session with its first events; KeyTaken if its project has the key, ClaimTaken if it was created."""
    change, task, connection = first.change, new.spec.task, transaction.connection
    if change is None:
        raise ValueError("a new session needs its first state")
    if new.runner is not None and await connection.fetchval("SELECT 1 FROM sessions WHERE id = $1", new.id) is None:
        await check_holder(connection, new.runner, owner)
    row = (
        new.id,
        new.project,
        new.key,
        new.agent,
        change.status,
        change.title,
        labels_of(change.labels),
        new.created_at,
        change.updated_at,
        encode(new.spec),
        change.state,
        change.workspace,
        task is not None,
        task.project_id if task is not None else None,
        new.spec.tenant,
        new.runner,
    )
    if await connection.fetchval(_SESSION, *map(sendable, row)) is None:
        found = await connection.fetchval(
            "SELECT 1 FROM sessions WHERE id = $1 AND key = $2", new.id, sendable(new.key)
        )
        if found is None:
            raise KeyTaken(new.key)
        await transaction.look_at([new.id])  # it was committed, and whoever wanted that was not told
        return await transaction.append(first)
    if first.done is not None and not await transaction.claims(first.done):
        await connection.execute("DELETE FROM sessions WHERE id = $1", new.id)
        raise ClaimTaken(first.done.claim)
    await connection.execute("INSERT INTO owners VALUES ($1, $2, $3)", new.id, owner, first.epoch)
    transaction.begin_log(new.id, first.epoch)
    return await transaction.append(first)


async def update_spec(transaction: Transaction, session_id: str, epoch: int, spec: SessionSpec) -> None:
    """Change what the agent of a session is started with."""
    await transaction.look_at([session_id])
    if transaction.epochs.get(session_id) != epoch:
        raise StaleOwner(session_id)
    await transaction.connection.execute("UPDATE sessions SET spec = $1 WHERE id = $2", encode(spec), session_id)


async def take_strays(transaction: Transaction, runner: str) -> None:
    """Sessions on runners that nobody knows any more are on this one."""
    known = "SELECT runner FROM runner_keys UNION ALL SELECT id FROM servers"
    query = f"UPDATE sessions SET runner = $1 WHERE runner <> $1 AND runner NOT IN ({known})"  # noqa: S608  fixed text
    await transaction.connection.execute(query, runner)


async def nothing(_: Transaction) -> None:
    """Be done when those before are."""


async def touch(transaction: Transaction) -> None:
    """Write something that changes nothing, to see whether it can be done."""
    await transaction.connection.execute("UPDATE counters SET value = value WHERE name = 'transactions'")


async def delete_session(
    transaction: Transaction, session_id: str, epoch: int, deleted_at: str, jobs: Sequence[NewJob] = ()
) -> None:
    """Remove a session; only its id is remembered. Its events are out of sight, and cleared little by little."""
    await transaction.look_at([session_id])
    if transaction.epochs.get(session_id, epoch) != epoch:
        raise StaleOwner(session_id)
    await transaction.flush()
    connection = transaction.connection
    await connection.execute(
        "INSERT INTO deleted_sessions SELECT id, project, key, $1 FROM sessions WHERE id = $2 ON CONFLICT DO NOTHING",
        deleted_at,
        session_id,
    )
    for table in ("owners", "turns", "asks", "snapshots", "reads"):
        await connection.execute(f"DELETE FROM {table} WHERE session = $1", session_id)  # noqa: S608  fixed names
    await connection.execute("DELETE FROM sessions WHERE id = $1", session_id)
    transaction.epochs.pop(session_id, None)
    await transaction.add_jobs(jobs)


async def clear_some_events(transaction: Transaction, session_id: str) -> bool:
    """Remove a few chunks, or rows of the outline, of a deleted session; False when there were none left."""
    await transaction.flush()
    for name, key in _CLEARED.items():
        if await _clear_some(transaction, name, key, session_id):
            return True
    return False


async def _clear_some(transaction: Transaction, name: str, key: str, session_id: str) -> bool:
    """Remove the first rows: so few, and so small together, that nobody waits long for the transaction."""
    query = f"SELECT {key}, length(body) FROM {name} WHERE session = $1 ORDER BY {key} LIMIT $2"  # noqa: S608  fixed names
    upto, size = None, 0
    for number, length in await transaction.connection.fetch(query, session_id, _CLEARED_ROWS):
        if upto is not None and size + length > _CLEARED_BYTES:
            break
        upto, size = number, size + length
    delete = f"DELETE FROM {name} WHERE session = $1 AND {key} <= $2"  # noqa: S608  fixed names
    await transaction.connection.execute(delete, session_id, upto)
    return upto is not None


async def remember_response(transaction: Transaction, scope: str, key: str, response: StoredResponse) -> None:
    """Remember the answer to an Idempotency-Key and forget those older than a day."""
    created, connection = steady_seconds(), transaction.connection
    await connection.execute("DELETE FROM idempotency WHERE created < $1", created - _RESPONSE_SECONDS)
    row = (
        scope,
        key,
        response.fingerprint,
        response.status,
        msgspec.msgpack.encode(response.headers),
        response.body,
        created,
    )
    insert = "INSERT INTO idempotency VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
    await connection.execute(insert, *map(sendable, row))
