"""The invariant checker over PostgreSQL, with a witness inside it: who wrote what, and in which epoch."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import asyncpg

from tests.chaos.checker import Stored, check_stored, unpacked
from tests.chaos.history import History

_WITNESS = """
CREATE TABLE witness (
    at BIGSERIAL PRIMARY KEY, session TEXT, first BIGINT, last BIGINT, epoch BIGINT, owner TEXT, writer INET
);
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO witness (session, first, last, epoch, owner, writer)
    SELECT NEW.session, NEW.first, NEW.last, owners.epoch, owners.owner, inet_client_addr()
    FROM (SELECT 1) AS one LEFT JOIN owners ON owners.session = NEW.session;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER witness AFTER INSERT ON chunks DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION witness();
"""
"""Deferred to the commit: a new session gets its owner in the transaction of its first events."""


class Seen(NamedTuple):
    """What the witness saw of one append."""

    first: int
    last: int
    epoch: int | None
    owner: str | None
    writer: str


async def call_witness(database: str) -> None:
    """Have every append noted, from now on."""
    connection = await asyncpg.connect(database)
    await connection.execute(_WITNESS)
    await connection.close()


async def check_cluster(database: str, state_dirs: Sequence[Path], history: History) -> list[str]:
    """Every violation; nobody writes any more and all agents are gone."""
    connection = await asyncpg.connect(database)
    try:
        stored = await _stored_sessions(connection)
        seen = await _appends(connection)
    finally:
        await connection.close()
    problems = check_stored(stored, state_dirs, history)
    for session in stored.values():
        rules = _witnessed(session, seen.get(session.id, [])) + one_at_a_time(seen.get(session.id, []))
        problems += [f"{session.id}: {problem}" for problem in rules]
    return problems


def _witnessed(session: Stored, appends: Sequence[Seen]) -> list[str]:
    """The witness saw every event come once."""
    numbers = [number for seen in appends for number in range(seen.first, seen.last + 1)]
    whole = numbers == list(range(1, len(session.events) + 1))
    return [] if whole else [f"I1: of {len(session.events)} events the witness saw {len(numbers)} come"]


async def _stored_sessions(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, Stored]:
    chunks: defaultdict[str, list[asyncpg.Record]] = defaultdict(list)
    for row in await connection.fetch("SELECT session, packing, body, raw FROM chunks ORDER BY session, last"):
        chunks[row[0]].append(row)
    rows = await connection.fetch("SELECT id, title, status, state FROM sessions")
    return {
        row["id"]: unpacked(row["id"], row["title"], row["status"], row["state"], chunks[row["id"]]) for row in rows
    }


async def _appends(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, list[Seen]]:
    found: defaultdict[str, list[Seen]] = defaultdict(list)
    query = "SELECT session, first, last, epoch, owner, host(writer) FROM witness ORDER BY session, first"
    for session, *values in await connection.fetch(query):
        found[session].append(Seen(*values))
    return found


def one_at_a_time(appends: Sequence[Seen]) -> list[str]:
    """Epochs only go up along a log, and in one epoch one server writes."""
    problems: list[str] = []
    writers: dict[int | None, tuple[str | None, str]] = {}
    newest = 0
    for seen in appends:
        if seen.epoch is None:
            problems.append(f"I9: {seen.first} to {seen.last} was written while nobody had the session")
        elif seen.epoch < newest:
            problems.append(f"I9: {seen.first} was written in epoch {seen.epoch}, behind one of epoch {newest}")
        newest = max(newest, seen.epoch or 0)
        known = writers.setdefault(seen.epoch, (seen.owner, seen.writer))
        if known != (seen.owner, seen.writer):
            problems.append(f"I9: in epoch {seen.epoch} both {known} and {(seen.owner, seen.writer)} wrote")
    return problems
