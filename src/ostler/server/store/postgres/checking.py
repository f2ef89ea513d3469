"""What a PostgreSQL database says of itself and of the servers that share it; nothing of it is changed."""

import asyncio
import secrets
import time
from contextlib import AsyncExitStack

import asyncpg

from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.connecting import FAILURES, connect
from ostler.server.store.sql.schema import SCHEMA_VERSION
from ostler.wire.checking import DatabaseFacts, ServerFacts

_TRIES = 5
_HEAR_SECONDS = 5.0
_BEAT_SECONDS, _LOOK_SECONDS = 8.0, 0.25
"""How long a beat is waited for, and between two looks."""
_CHANNEL = "ostler_doctor"
_SERVERS = """
SELECT id, address, version, beat, is_here, shared.value AS files
FROM servers LEFT JOIN shared ON shared.name = 'files ' || id ORDER BY id
"""


async def look(url: str) -> DatabaseFacts:
    """Look at a database; raises OSError with the reason if it cannot be reached."""
    address = Address.reading(url)
    async with AsyncExitStack() as stack:
        try:
            connection = await _connected(stack, address)
            hears = await _hears(stack, address, connection) if address.can_listen else None
            return await _facts(connection, address, hears)
        except (*FAILURES, ValueError) as error:
            raise OSError(str(error) or type(error).__name__) from error


async def _connected(stack: AsyncExitStack, address: Address) -> asyncpg.Connection:
    connection = await connect(address)
    stack.callback(connection.terminate)
    return connection


async def _facts(connection: asyncpg.Connection, address: Address, hears: bool | None) -> DatabaseFacts:
    latency, ahead = await _times(connection)
    most = int(await connection.fetchval("SELECT current_setting('max_connections')"))
    reserved = int(await connection.fetchval("SELECT current_setting('superuser_reserved_connections')"))
    tables = await connection.fetchval("SELECT to_regclass('servers') IS NOT NULL")
    schema = await connection.fetchval("SELECT version FROM schema_version") if tables else 0
    return DatabaseFacts(
        shown=address.shown,
        version=str(await connection.fetchval("SHOW server_version")).partition(" ")[0],
        schema=schema or 0,
        known_schema=SCHEMA_VERSION,
        latency=latency,
        clock_ahead=ahead,
        most_connections=most - reserved,
        connections=await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL"),
        is_standby=await connection.fetchval("SELECT pg_is_in_recovery()"),
        is_pooled=connection.get_server_pid() != await connection.fetchval("SELECT pg_backend_pid()"),
        says_pooled=address.is_pooled,
        hears=hears,
        secret=await connection.fetchval("SELECT value FROM shared WHERE name = 'relay'") if tables else None,
        servers=await _servers(connection) if tables else (),
    )


async def _times(connection: asyncpg.Connection) -> tuple[float, float]:
    """The shortest round trip, and how far the database's clock is ahead of ours."""
    found: list[tuple[float, float]] = []
    for _ in range(_TRIES):
        begun, asked = time.perf_counter(), time.time()
        there = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
        took = time.perf_counter() - begun
        found.append((took, there - (asked + took / 2)))
    return min(found)


async def _hears(stack: AsyncExitStack, address: Address, speaker: asyncpg.Connection) -> bool:
    """Whether what is said on one connection arrives on another one that listens."""
    heard, word = asyncio.Event(), secrets.token_hex(8)
    listener = await _connected(stack, address.for_listening)
    await listener.add_listener(_CHANNEL, lambda *message: heard.set() if message[-1] == word else None)
    await speaker.execute("SELECT pg_notify($1, $2)", _CHANNEL, word)
    try:
        async with asyncio.timeout(_HEAR_SECONDS):
            await heard.wait()
    except TimeoutError:
        return False
    return True


async def _servers(connection: asyncpg.Connection) -> tuple[ServerFacts, ...]:
    """Every server, and whether its beat changed while we looked."""
    before = {row["id"]: row["beat"] for row in await connection.fetch(_SERVERS)}
    deadline = time.monotonic() + _BEAT_SECONDS
    while True:
        rows = await connection.fetch(_SERVERS)
        still = [row for row in rows if row["is_here"] and row["beat"] == before.get(row["id"])]
        if not still or time.monotonic() > deadline:
            break
        await asyncio.sleep(_LOOK_SECONDS)
    quiet = {row["id"] for row in still}
    return tuple(
        ServerFacts(
            id=row["id"],
            address=row["address"],
            version=row["version"],
            is_here=row["is_here"],
            beats=row["id"] not in quiet,
            files=row["files"],
        )
        for row in rows
    )
