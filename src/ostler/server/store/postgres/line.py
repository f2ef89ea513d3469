"""A server's own connection to PostgreSQL: it beats on it, counts the beats of others, and rings and hears the bell."""

import asyncio
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import asyncpg
import msgspec

from ostler.base.errors import SettingsError, StoreUnavailable
from ostler.base.logs import Log, never_log
from ostler.base.retry import delays
from ostler.server.store.peers import Bell, Heard, Member, Tally
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.connecting import FAILURES, connect_serving
from ostler.server.store.postgres.links import PostgresLinks

log = Log(__name__)
_CHANNEL = "ostler"
_FIRST_DELAY, _LONGEST_DELAY = 0.05, 2.0
_BEATS_PER_TIMEOUT = 5
_LONGEST_PAUSE = 3.0
_CLOSE_SECONDS = 1.0
_MOST_BYTES = 7000
"""Of one notification; PostgreSQL takes 8000."""
_REGISTER = """
INSERT INTO servers (id, address, version, beat, is_here, for_runners) VALUES ($1, $2, $3, 1, TRUE, $4)
ON CONFLICT (id) DO UPDATE SET address = excluded.address, version = excluded.version, beat = servers.beat + 1,
    is_here = TRUE, for_runners = excluded.for_runners
"""
_BEAT = "UPDATE servers SET beat = beat + 1, is_here = TRUE WHERE id = $1"
_SERVERS = "SELECT id, address, beat, is_here, for_runners FROM servers"
_LEAVE = "UPDATE servers SET is_here = FALSE WHERE id = $1"
_SECRET = "INSERT INTO shared VALUES ('relay', $1) ON CONFLICT DO NOTHING"  # noqa: S105  no secret itself
_FILES = "INSERT INTO shared VALUES ('files ' || $1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_ELSEWHERE = """
SELECT servers.id, address, beat FROM servers JOIN shared ON shared.name = 'files ' || servers.id
WHERE is_here AND servers.id <> $1 AND (shared.value = '' OR shared.value <> $2)
"""
"""The servers that keep their files where this one does not find them."""
_SILENT = "UPDATE servers SET is_here = FALSE WHERE id = $1 AND beat = $2"
_LOOK_SECONDS = 0.25
_TALLY_SECONDS = 1.0
_LET_THROUGH = """
INSERT INTO rate_levels AS known (scope, id, level, at)
SELECT scope, id, greatest(rate, 1) - requests, extract(epoch FROM clock_timestamp())
FROM unnest($1::text[], $2::text[], $3::float8[], $4::bigint[]) AS told (scope, id, rate, requests) ORDER BY scope, id
ON CONFLICT (scope, id) DO UPDATE SET at = greatest(known.at, excluded.at), level = (
    SELECT least(greatest(rate, 1), known.level + greatest(0, excluded.at - known.at) * rate) - requests
    FROM unnest($1::text[], $2::text[], $3::float8[], $4::bigint[]) AS told (scope, id, rate, requests)
    WHERE told.scope = known.scope AND told.id = known.id
)
RETURNING scope, id, level
"""
"""Of two servers each waits for the other's row, in the same order, and none is longer than a statement."""
_bells = msgspec.json.Decoder(list[Bell])


class _Seen(NamedTuple):
    """A server as it was when its beat last changed."""

    address: str
    beat: int
    is_here: bool
    since: float
    """By our own clock, over a connection that was not cut since."""
    for_runners: str | None


class Line:
    """Implements Peers. While its connection is away nobody is lost, and readers look for themselves now and then."""

    def __init__(self, address: Address, member: Member, links: PostgresLinks) -> None:
        self._address = address
        self._member = member
        self._between = min(_LONGEST_PAUSE, member.timeout / _BEATS_PER_TIMEOUT)
        """Seconds from beat to beat."""
        self.links = links
        self._heard: Heard = _nobody
        self._seen: dict[str, _Seen] = {}
        self._is_counting = False
        self._looked_at = 0.0
        self._bells: dict[str, Bell] = {}
        self._rung = asyncio.Event()
        self._tally: Tally | None = None
        self._closing = asyncio.Event()
        self._connection: asyncpg.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self.secret = ""

    @property
    def id(self) -> str:
        """What this server is called."""
        return self._member.id

    async def open(self) -> None:
        """Say that this server is there; raises if the database cannot be reached."""
        try:
            connection = await self._connected()
            await connection.execute(_SECRET, secrets.token_urlsafe(32))
            self.secret = await connection.fetchval("SELECT value FROM shared WHERE name = 'relay'")
            await self._refuse_other_files(connection)
            await self._count(connection)
        except FAILURES as error:
            raise StoreUnavailable(reason=str(error) or type(error).__name__) from error
        never_log(self.secret)
        self._task = asyncio.create_task(self._run(), name="ostler-line")

    def address_of(self, server: str) -> str | None:
        """Where a server is reached, if there is such a server."""
        found = self._seen.get(server)
        return found.address if found is not None else None

    def is_lost(self, server: str) -> bool:
        """Whether a server has left, or its beat stood still for long enough while we could see it."""
        if not self._is_counting:
            return False
        found = self._seen.get(server)
        return found is None or not found.is_here or self._looked_at - found.since >= self._member.timeout

    def is_cut_off(self) -> bool:
        """Whether the database was not seen for as long as a server may be silent."""
        return time.monotonic() - self._looked_at >= self._member.timeout

    def others(self) -> tuple[str, ...]:
        """Where the other servers are reached that were there when the database was seen last."""
        return tuple(seen.address for server, seen in self._seen.items() if seen.is_here and server != self.id)

    def for_runners(self) -> tuple[str, ...]:
        """Where runners reach the servers that show life, as far as that was said."""
        there = [(server, seen.for_runners) for server, seen in self._seen.items() if not self.is_lost(server)]
        return tuple(address for _, address in sorted(there) if address is not None)

    def listen(self, heard: Heard) -> None:
        """Who hears the bell from now on."""
        self._heard = heard

    def ring(self, bell: Bell) -> None:
        """Let all servers know soon; of one session only the newest."""
        self._bells[bell.session] = bell
        self._rung.set()

    def count_with(self, tally: Tally) -> None:
        """What is told every second from now on, while the database can be reached."""
        self._tally = tally

    async def close(self) -> None:
        """Leave in order, as far as the database can be reached."""
        self._closing.set()
        self._rung.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._connection is not None:
            with suppress(*FAILURES):
                await self._connection.execute(_LEAVE, self.id, timeout=_CLOSE_SECONDS)
            self._connection.terminate()

    async def _refuse_other_files(self, connection: asyncpg.Connection) -> None:
        """Raise if a server is at work whose files are not found here; one that shows no life for long has left."""
        await connection.execute(_FILES, self.id, self._member.files or "")
        deadline = time.monotonic() + self._member.timeout
        beats: dict[str, int] = {}
        while others := await connection.fetch(_ELSEWHERE, self.id, self._member.files or ""):
            for name, address, beat in others:
                if beats.setdefault(name, beat) != beat:
                    await connection.execute(_LEAVE, self.id)
                    connection.terminate()
                    raise _other_files(address, self._member.files)
                if time.monotonic() > deadline:
                    await connection.execute(_SILENT, name, beat)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _run(self) -> None:
        longest = min(_LONGEST_DELAY, self._between)  # who is back first must not take the others for lost
        waits = delays(_FIRST_DELAY, longest)
        while not self._closing.is_set():
            try:
                connection = self._connection or await self._connected()
                self._heard(None)  # whatever was rung before we listened
                waits = delays(_FIRST_DELAY, longest)
                await self._beat_on(connection)
            except Exception as error:  # without beats all others would take this server for lost
                if not isinstance(error, FAILURES):
                    log.error("peers.failed", exc_info=error)
                self._drop(error)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), next(waits))

    async def _connected(self) -> asyncpg.Connection:
        connection = await connect_serving(self._address.for_listening)
        self._connection = connection
        if self._address.can_listen:
            await connection.execute("SET synchronous_commit = off")  # a beat or a bell may be lost
            await connection.add_listener(_CHANNEL, self._notified)
        member = self._member
        await connection.execute(_REGISTER, member.id, member.address, member.version, member.for_runners)
        return connection

    def _drop(self, error: BaseException) -> None:
        if self._is_counting:
            log.warning("peers.away", reason=str(error) or type(error).__name__)
        self._is_counting = False  # a beat that we could not see is not a beat that was not there
        self._bells.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    async def _beat_on(self, connection: asyncpg.Connection) -> None:
        due = tally_due = time.monotonic()
        while not self._closing.is_set():
            if time.monotonic() >= due:
                await connection.execute(_BEAT, self.id)
                await self.links.beat(connection)
                await self._count(connection)
                due = time.monotonic() + self._between
            if time.monotonic() >= tally_due:
                await self._tell(connection)
                tally_due = time.monotonic() + _TALLY_SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._rung.wait(), max(0.0, min(due, tally_due) - time.monotonic()))
            await self._send(connection)

    async def _tell(self, connection: asyncpg.Connection) -> None:
        """Tell what was let through here, and hear what all have; a lost answer lets less through, never more."""
        if self._tally is not None and (sent := self._tally.let_through()):
            rows = await connection.fetch(_LET_THROUGH, *map(list, zip(*sent, strict=True)))
            self._tally.settle(sent, {(scope, id_): level for scope, id_, level in rows})

    async def _count(self, connection: asyncpg.Connection) -> None:
        await self.links.count(connection, anew=not self._is_counting)
        rows, now = await connection.fetch(_SERVERS), time.monotonic()
        before = self._seen if self._is_counting else {}
        self._seen = {row[0]: _looked_at(row, before.get(row[0]), now) for row in rows}
        self._is_counting, self._looked_at = True, now

    async def _send(self, connection: asyncpg.Connection) -> None:
        self._rung.clear()
        bells, self._bells = self._bells, {}
        for payload in _payloads(list(bells.values())):
            await connection.execute("SELECT pg_notify($1, $2)", _CHANNEL, payload)

    def _notified(self, _: object, __: int, ___: str, payload: object) -> None:
        with suppress(msgspec.DecodeError):  # of a version that we do not know: the next look finds it
            for bell in _bells.decode(str(payload)):
                self._heard(bell)


def _other_files(address: str, files: str | None) -> SettingsError:
    reason = (
        f"The server at {address} uses the same database, and keeps its files elsewhere: neither would find those of "
        "the other when a session changes servers. Give both the same --object-store: a bucket, such as "
        "s3://bucket/ostler, or a folder that both machines have, such as file:///mnt/ostler. To put this server in "
        "its place, stop it first."
    )
    return SettingsError(name="object_store", value=files or "''", reason=reason)


def _nobody(_: Bell | None) -> None:
    """Nobody listens yet."""


def _looked_at(row: asyncpg.Record, before: _Seen | None, now: float) -> _Seen:
    _, address, beat, is_here, for_runners = row
    since = before.since if before is not None and before.beat == beat else now
    return _Seen(address, beat, is_here, since, for_runners)


def _payloads(bells: Sequence[Bell]) -> Iterator[str]:
    """As few notifications as hold all of them."""
    some: list[bytes] = []
    size = 0
    for bell in bells:
        encoded = msgspec.json.encode(bell)
        if len(encoded) > _MOST_BYTES:
            continue
        if size + len(encoded) > _MOST_BYTES:
            yield f"[{b','.join(some).decode()}]"
            some, size = [], 0
        some.append(encoded)
        size += len(encoded) + 1
    if some:
        yield f"[{b','.join(some).decode()}]"
