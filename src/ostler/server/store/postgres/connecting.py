"""Connections to PostgreSQL, and which of its errors pass by themselves."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from ostler.base.errors import DatabaseTooNew, SettingsError
from ostler.server.store.postgres.dialect import EVENT_BITS, FIRST_OF_TRANSACTION
from ostler.server.store.sql.schema import MIGRATIONS, SCHEMA_VERSION

_CONNECT_SECONDS = 10
_STATEMENT_SECONDS = 60
_OLDEST = 13
_POOLED = "pgbouncer"
_MIGRATING = 0x05731E5  # any number of ours: one server migrates, the others wait for it
# A PostgreSQL that a dump was restored into counts its transactions anew: ours go on above the positions there are.
_GO_ON = f"""
UPDATE counters SET value = value + ahead.transactions FROM (
    SELECT (coalesce(max(position), 0) - {FIRST_OF_TRANSACTION.format("pg_current_xact_id()")} >> {EVENT_BITS}) + 1
    AS transactions FROM chunks
) AS ahead WHERE name = 'transactions' AND ahead.transactions > 0
"""  # noqa: S608  fixed words
_LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
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


def options_of(url: str) -> tuple[str, dict[str, object]]:
    """An address without what is ours in it, and what it means for a connection.

    `pgbouncer=true` is for a pooler that gives each transaction another connection: nothing is prepared then.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    pooled = query.pop(_POOLED, "false") == "true"
    plain = urlunsplit(parts._replace(query=urlencode(query)))
    return plain, {"statement_cache_size": 0} if pooled else {}


async def connect(url: str) -> asyncpg.Connection:
    """A new connection."""
    plain, options = options_of(url)
    return await asyncpg.connect(plain, timeout=_CONNECT_SECONDS, command_timeout=_STATEMENT_SECONDS, **options)


async def pool(url: str, size: int) -> asyncpg.Pool:
    """Connections for reading, made when they are needed."""
    plain, options = options_of(url)
    return await asyncpg.create_pool(
        plain, min_size=0, max_size=size, timeout=_CONNECT_SECONDS, command_timeout=_STATEMENT_SECONDS, **options
    )


async def prepare(url: str) -> None:
    """See that a database can be used, and bring it to the newest schema."""
    try:
        connection = await connect(url)
    except (*FAILURES, ValueError) as error:
        reason = f"cannot be reached ({error or type(error).__name__}). Is the address right, and PostgreSQL running?"
        raise SettingsError(name="database", value=shown(url), reason=reason) from error
    try:
        await _migrate(connection, shown(url))
    finally:
        await connection.close()


async def _migrate(connection: asyncpg.Connection, name: str) -> None:
    version = connection.get_server_version()
    if version.major < _OLDEST:
        reason = f"is PostgreSQL {version.major}; Ostler needs {_OLDEST} or newer."
        raise SettingsError(name="database", value=name, reason=reason)
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATING)
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


def shown(url: str) -> str:
    """An address without its password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}:***@{host}"))
