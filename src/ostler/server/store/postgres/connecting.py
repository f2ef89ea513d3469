"""Connections to PostgreSQL, and which of its errors pass by themselves."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg

from ostler.base.errors import DatabaseInUse, DatabaseTooNew, SettingsError
from ostler.base.retry import delays
from ostler.base.tls.faults import fault_of
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.dialect import EVENT_BITS, FIRST_OF_TRANSACTION
from ostler.server.store.sql.schema import MIGRATIONS, SCHEMA_VERSION

_CONNECT_SECONDS = 10
_STATEMENT_SECONDS = 60
_READ_SECONDS = 20
_TAKE_OVER_SECONDS = 5
_OLDEST = 13
_SERVING = 0x05731E5
"""The lock of whoever writes to a database: servers share it, and who moves the database has it alone."""
_MIGRATING = 0x05731E6
"""The lock of whoever changes the schema; any number of ours would do."""
# A PostgreSQL that a dump was restored into counts its transactions anew: ours go on above the positions there are.
_GO_ON = f"""
UPDATE counters SET value = value + ahead.transactions FROM (
    SELECT (coalesce(max(position), 0) - {FIRST_OF_TRANSACTION.format("pg_current_xact_id()")} >> {EVENT_BITS}) + 1
    AS transactions FROM chunks
) AS ahead WHERE name = 'transactions' AND ahead.transactions > 0
"""  # noqa: S608  fixed words


class InUse(Exception):
    """Somebody else writes to the database."""

    def __str__(self) -> str:
        return "somebody has the database alone"


class Upgraded(InUse):
    """A newer version has changed the tables."""

    def __str__(self) -> str:
        return "a newer version of Ostler has changed the tables of the database; upgrade this server"


_LOST = (
    InUse,
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the connection was cut in the middle of something
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # it is being stopped, or was
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,  # the one we talk to is not the primary any more
    asyncpg.TransactionRollbackError,  # a deadlock, or a transaction that came in between
)
FAILURES = (*_LOST, asyncpg.PostgresError)
"""Everything that can go wrong with a database."""


def passes(error: BaseException) -> bool:
    """Whether what failed should be tried again on a new connection."""
    return isinstance(error, _LOST) and not isinstance(error, asyncpg.DataError | asyncpg.exceptions._base.DataError)


async def connect(address: Address) -> asyncpg.Connection:
    """A new connection."""
    return await asyncpg.connect(
        address.url, timeout=_CONNECT_SECONDS, command_timeout=_STATEMENT_SECONDS, **_options(address)
    )


async def connect_serving(address: Address) -> asyncpg.Connection:
    """A new connection of a server; InUse while somebody has the database alone, or a newer version has it."""
    connection = await _locked(address, "SELECT pg_try_advisory_lock_shared($1)")
    if await _version(connection) > SCHEMA_VERSION:
        connection.terminate()
        raise Upgraded
    return connection


async def connect_alone(address: Address) -> asyncpg.Connection:
    """A new connection of somebody who needs the database alone; InUse while a server has it."""
    return await _locked(address, "SELECT pg_try_advisory_lock($1)")


async def _locked(address: Address, lock: str) -> asyncpg.Connection:
    """A pooler does not say whose connection it is, so behind one nobody can be told apart."""
    connection = await connect(address)
    if not address.is_pooled and not await connection.fetchval(lock, _SERVING):
        connection.terminate()
        raise InUse
    return connection


async def _keep(_: asyncpg.Connection) -> None:
    """Who only reads leaves nothing behind that has to be undone before the next query, by a round trip more."""


async def new_pool(address: Address, size: int) -> asyncpg.Pool:
    """Connections for reading, made when they are needed."""
    return await asyncpg.create_pool(
        address.url,
        min_size=0,
        max_size=size,
        reset=_keep,
        timeout=_CONNECT_SECONDS,
        command_timeout=_READ_SECONDS,
        **_options(address),
    )


def _options(address: Address) -> dict[str, object]:
    if address.is_pooled:
        return {"statement_cache_size": 0}
    settings = {"tcp_keepalives_idle": "20", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "4"}
    return {"server_settings": {"application_name": "ostler", **settings}}  # a host that is gone holds nothing for long


async def prepare(address: Address, *, alone: bool = False) -> None:
    """See that a database can be used, and bring it to the newest schema; `alone`: and that no server uses it."""
    try:
        connection = await _free_connection(address, connect_alone if alone else _connect_preparing)
    except _Older as error:
        reason = f"has {error}. Stop those servers, start this one, and then the others in the new version."
        raise SettingsError(name="database", value=address.shown, reason=reason) from None
    except InUse:
        raise DatabaseInUse(path=address.shown, holder="") from None
    except (*FAILURES, ValueError) as error:
        fault = fault_of(error, "PostgreSQL", option="sslrootcert=FILE in --database")
        hint = "Is the address right, and PostgreSQL running?"
        reason = (
            f"cannot be reached: {fault}." if fault else f"cannot be reached ({error or type(error).__name__}). {hint}"
        )
        raise SettingsError(name="database", value=address.shown, reason=reason) from error
    try:
        await _migrate(connection, address.shown)
    except FAILURES as error:
        reason = f"cannot be used ({error}). Give its user the right to create tables, or choose an empty database."
        raise SettingsError(name="database", value=address.shown, reason=reason) from error
    finally:
        await connection.close()


class _Older(InUse):
    """The tables have to be changed, and servers that know the old ones use them."""

    def __str__(self) -> str:
        return "tables of an older version, which servers of that version use"


async def _connect_preparing(address: Address) -> asyncpg.Connection:
    """A connection that may change the tables: alone if a server could be at work with those there are."""
    connection = await _locked(address, "SELECT pg_try_advisory_lock_shared($1)")
    if not 0 < await _version(connection) < SCHEMA_VERSION:
        return connection
    connection.terminate()
    try:
        return await connect_alone(address)
    except InUse:
        raise _Older from None


async def _version(connection: asyncpg.Connection) -> int:
    """The version of the tables; 0 if there are none."""
    if await connection.fetchval("SELECT to_regclass('schema_version')") is None:
        return 0
    return await connection.fetchval("SELECT version FROM schema_version") or 0


async def _free_connection(
    address: Address, connecting: Callable[[Address], Awaitable[asyncpg.Connection]]
) -> asyncpg.Connection:
    """Whoever was killed a moment ago is not known to be gone yet, and is waited for."""
    for wait in delays(0.1, 1.0, within=_TAKE_OVER_SECONDS):
        with suppress(InUse):
            return await connecting(address)
        await asyncio.sleep(wait)
    return await connecting(address)


async def _migrate(connection: asyncpg.Connection, name: str) -> None:
    version = connection.get_server_version()
    if version.major < _OLDEST:
        reason = f"is PostgreSQL {version.major}; Ostler needs {_OLDEST} or newer."
        raise SettingsError(name="database", value=name, reason=reason)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATING)  # servers may start together
        await connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)")
        found = await connection.fetchval("SELECT version FROM schema_version") or 0
        if found > SCHEMA_VERSION:
            raise DatabaseTooNew(path=name, found=found, known=SCHEMA_VERSION)
        for migration in MIGRATIONS[found:]:
            if migration.postgres:
                await connection.execute(migration.postgres)
        if found != SCHEMA_VERSION:
            await connection.execute("DELETE FROM schema_version")
            await connection.execute("INSERT INTO schema_version VALUES ($1)", SCHEMA_VERSION)
        await connection.execute(_GO_ON)
