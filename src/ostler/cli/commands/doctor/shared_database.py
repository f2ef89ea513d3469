"""What `ostler doctor --cluster` says about the database that servers share."""

from collections.abc import Generator, Iterator

from ostler.base.errors import SettingsError
from ostler.cli.commands.doctor.finding import Check
from ostler.wire.checking import DatabaseFacts

_SLOW_SECONDS = 0.02
_CLOCK_SECONDS = 2.0
_CONNECTIONS = 8
"""What one server uses at most."""
_REFUSED_BY_POOLER = "unsupported startup parameter"
_UNNAMED_POOLER = Check(
    level="fail",
    found="A pooler is between, and --database does not say so",
    next_step="Add ?pgbouncer=true&direct=HOST:PORT to --database, where direct is PostgreSQL itself.",
)


def database_checks(url: str) -> Generator[Check, None, DatabaseFacts | None]:
    """One verdict for each thing that can be wrong; returns what was found."""
    from ostler.server.store.checking import look_at  # noqa: PLC0415 - most machines do without it

    try:
        facts = look_at(url)
    except SettingsError as error:
        yield Check(level="fail", found=str(error).rstrip("."), next_step="Correct --database.")
        return None
    except OSError as error:
        if _REFUSED_BY_POOLER in str(error):
            yield _UNNAMED_POOLER
            return None
        hint = "Start PostgreSQL, or correct --database; servers wait for it meanwhile."
        yield Check(level="fail", found=f"Database: {str(error).rstrip('.')}", next_step=hint)
        return None
    yield _reached(facts)
    yield _schema(facts)
    yield _connections(facts)
    yield from _pooler(facts)
    yield _clock(facts)
    return facts


def _reached(facts: DatabaseFacts) -> Check:
    found = f"PostgreSQL {facts.version} at {facts.shown} answers in {facts.latency * 1000:.1f} ms"
    if facts.is_standby:
        hint = "Name the primary in --database."
        return Check(level="fail", found=f"{found}, but can only be read", next_step=hint)
    if facts.latency > _SLOW_SECONDS:
        return Check(
            level="warn", found=found, next_step="Every event waits for it: bring servers and database nearer."
        )
    return Check(level="ok", found=found)


def _schema(facts: DatabaseFacts) -> Check:
    if facts.schema == 0:
        return Check(level="ok", found="The database is empty; the first server prepares it")
    found = f"The database has schema {facts.schema}"
    if facts.schema > facts.known_schema:
        hint = "Upgrade Ostler here."
        return Check(level="fail", found=f"{found}, this version knows {facts.known_schema}", next_step=hint)
    if facts.schema < facts.known_schema:
        hint = "The next server that starts brings it up to date; older servers cannot start then."
        return Check(level="warn", found=f"{found}, this version has {facts.known_schema}", next_step=hint)
    return Check(level="ok", found=found)


def _connections(facts: DatabaseFacts) -> Check:
    found = f"{facts.connections} of {facts.most_connections} connections are in use"
    servers = sum(server.is_here for server in facts.servers)
    wanted = _CONNECTIONS * max(servers, 1)
    if facts.most_connections - facts.connections < _CONNECTIONS or facts.most_connections < wanted:
        hint = f"Raise max_connections: each server needs up to {_CONNECTIONS}, so {wanted} and what others use."
        return Check(level="warn", found=found, next_step=hint)
    return Check(level="ok", found=found)


def _pooler(facts: DatabaseFacts) -> Iterator[Check]:
    if facts.is_pooled and not facts.says_pooled:
        yield _UNNAMED_POOLER
    elif facts.says_pooled and facts.hears is None:
        hint = "Add &direct=HOST:PORT to --database; without it other servers see new events after up to 2 seconds."
        yield Check(level="warn", found="Notifications do not pass the pooler", next_step=hint)
    elif facts.hears is False:
        hint = "Let `direct` in --database name PostgreSQL itself, not a pooler."
        yield Check(level="fail", found="What one server says does not reach the others (NOTIFY)", next_step=hint)
    else:
        how = "through the pooler and a direct connection" if facts.says_pooled else "directly"
        yield Check(level="ok", found=f"What one server says reaches the others, {how}")


def _clock(facts: DatabaseFacts) -> Check:
    ahead = facts.clock_ahead
    found = f"The database's clock is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
    if abs(ahead) > _CLOCK_SECONDS:
        hint = "Nothing is decided by it, but times in logs do not fit: run NTP on both."
        return Check(level="warn", found=found, next_step=hint)
    return Check(level="ok", found=found)
