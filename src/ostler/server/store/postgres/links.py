"""Which server holds the link to which runner, in PostgreSQL, and the sessions that any of them may take."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import asyncpg
import msgspec

from ostler.base.errors.runners import RunnerUnavailable
from ostler.server.store.peers import HeldLink, Offer, RunnerLink, RunnerLoad
from ostler.server.store.postgres.transaction import Transaction
from ostler.server.store.postgres.writer import Writer
from ostler.server.store.records import SessionSpec, encode, share_of
from ostler.server.store.sql.reading import Query, rows_of
from ostler.server.store.sql.verbs import Reader
from ostler.wire.runners import Needs, RunnerAbout

_TAKE = """
INSERT INTO runner_links (runner, server, number, is_linked, beat, heard_at, about, load)
VALUES ($1, $2, 1, TRUE, 1, $3, $4, $5) ON CONFLICT (runner) DO UPDATE
SET server = excluded.server, number = runner_links.number + 1, is_linked = TRUE, beat = runner_links.beat + 1,
    heard_at = excluded.heard_at, about = excluded.about, load = excluded.load
RETURNING number
"""
_RELEASE = "UPDATE runner_links SET is_linked = FALSE WHERE runner = $1 AND number = $2"
_BEAT = """
UPDATE runner_links AS link SET beat = link.beat + 1, heard_at = held.heard_at, load = held.load
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bytea[]) AS held (runner, number, heard_at, load)
WHERE link.runner = held.runner AND link.number = held.number
"""
_SEEN = "SELECT runner, number, beat FROM runner_links"
_ALL = "SELECT runner, server, number, is_linked, heard_at, about, load FROM runner_links ORDER BY runner"
_HAD = "SELECT 1 FROM owners WHERE session = $1 AND epoch = $2 FOR UPDATE"
_TAKE_WAITING = """
UPDATE owners SET owner = $1, epoch = nextval('epochs') WHERE session = $2
AND EXISTS (SELECT 1 FROM sessions WHERE id = $2 AND runner IS NULL) RETURNING epoch
"""
_TAKE_ALL = """
UPDATE owners SET owner = $1, epoch = $2 FROM sessions
WHERE id = session AND runner = $3 AND owner = ANY($4) RETURNING session
"""
_HOLDER = "SELECT server FROM runner_links WHERE runner = $1"
_ONE_CLAIMS = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_MANY_PLACE = "SELECT pg_advisory_xact_lock_shared(hashtextextended($1, 0))"
_CLAIM = """
UPDATE owners SET owner = $1, epoch = $2 FROM sessions WHERE id = session AND runner = $3 AND NOT session = ANY($4)
"""
_about = msgspec.json.Decoder(RunnerAbout)
_load = msgspec.json.Decoder(RunnerLoad)
_spec = msgspec.json.Decoder(SessionSpec)


class PostgresLinks:
    """Implements Links. It is beaten for and counted by the line, over the line's own connection."""

    def __init__(self, server: str, timeout: float, reader: Reader, writer: Writer) -> None:
        self._server = server
        self._timeout = timeout
        self._reader = reader
        self._writer = writer
        self._held: Callable[[], Sequence[HeldLink]] = tuple
        self._fenced: Callable[[str, int], object] = _nobody
        self._seen: dict[str, tuple[tuple[int, int], float]] = {}
        """Of each runner its link and beat, and since when they stand still by our own clock."""
        self._looked_at = 0.0

    def hold(self, held: Callable[[], Sequence[HeldLink]], fenced: Callable[[str, int], object]) -> None:
        """What is beaten for from now on, and who is told of links that another server has meanwhile."""
        self._held = held
        self._fenced = fenced

    async def take(self, about: RunnerAbout, load: RunnerLoad, at: str) -> int:
        """Have a runner's link."""
        row = (about.id, self._server, at, encode(about), encode(load))

        async def work(transaction: Transaction) -> int:
            return int(await transaction.connection.fetchval(_TAKE, *row))

        return await self._writer.submit(work)

    async def claim(self, runner: str, mine: Sequence[str]) -> bool:
        """Have the sessions of a runner, behind whoever places one there just now."""

        async def work(transaction: Transaction) -> bool:
            connection = transaction.connection
            await connection.execute(_ONE_CLAIMS, runner)
            if await connection.fetchval(_HOLDER, runner) != self._server:
                return False
            epoch = await connection.fetchval("SELECT nextval('epochs')")
            await connection.execute(_CLAIM, self._server, epoch, runner, list(mine))
            await transaction.look_at(transaction.epochs)
            return True

        return await self._writer.submit(work)

    def release(self, runner: str, number: int) -> None:
        """Have it no longer; if that cannot be written, its beat stands still."""

        async def work(transaction: Transaction) -> None:
            await transaction.connection.execute(_RELEASE, runner, number)

        self._writer.submit(work).add_done_callback(lambda done: done.cancelled() or done.exception())

    async def all(self) -> list[RunnerLink]:
        """Every link there is or was."""
        return await self._reader.read(_every)

    def is_lost(self, link: RunnerLink) -> bool:
        """Whether its beat stood still for long enough while we could see it."""
        if not link.is_linked:
            return True
        (number, _), since = self._seen.get(link.runner, ((0, 0), self._looked_at))
        return number == link.number and self._looked_at - since >= self._timeout

    def silence(self, link: RunnerLink) -> float:
        """Since its beat stands still, by our own clock."""
        _, since = self._seen.get(link.runner, ((0, 0), self._looked_at))
        return self._looked_at - since

    async def owners_on(self, runner: str) -> list[str]:
        """Each once."""
        return await self._reader.read(lambda: _owners_on(runner))

    async def take_all_on(self, runner: str, owners: Sequence[str]) -> list[str]:
        """Have them all under one epoch."""

        async def work(transaction: Transaction) -> list[str]:
            connection = transaction.connection
            epoch = await connection.fetchval("SELECT nextval('epochs')")
            rows = await connection.fetch(_TAKE_ALL, self._server, epoch, runner, list(owners))
            await transaction.look_at(transaction.epochs)
            return [row[0] for row in rows]

        return await self._writer.submit(work)

    async def offers(self, terminal: Iterable[str]) -> list[Offer]:
        """The sessions of other servers that wait for a runner."""
        return await self._reader.read(lambda: _offers(self._server, tuple(terminal)))

    async def take_offer(self, session_id: str, epoch: int) -> int | None:
        """Have a session that waits."""

        async def work(transaction: Transaction) -> int | None:
            connection, taken = transaction.connection, None
            if await connection.fetchval(_HAD, session_id, epoch) is not None:  # whoever places it just now is first
                taken = await connection.fetchval(_TAKE_WAITING, self._server, session_id)
            await transaction.look_at(transaction.epochs)
            return taken

        return await self._writer.submit(work)

    # By the line

    async def beat(self, connection: asyncpg.Connection) -> None:
        """Show for all runners that are linked here that they are."""
        if held := self._held():
            rows = [(each.runner, each.number, each.heard_at, encode(each.load)) for each in held]
            await connection.execute(_BEAT, *map(list, zip(*rows, strict=True)))

    async def count(self, connection: asyncpg.Connection, *, anew: bool) -> None:
        """Look at all beats; `anew` if they may have gone on unseen."""
        rows, now = await connection.fetch(_SEEN), time.monotonic()
        before = {} if anew else self._seen
        self._seen = {runner: _since((number, beat), before.get(runner), now) for runner, number, beat in rows}
        self._looked_at = now
        for each in self._held():
            if (found := self._seen.get(each.runner)) is not None and found[0][0] > each.number:
                self._fenced(each.runner, each.number)


async def check_holder(connection: asyncpg.Connection, runner: str, server: str) -> None:
    """Raise if another server has the link of a runner by now: it has claimed what is there, and looks for no more."""
    await connection.execute(_MANY_PLACE, runner)
    if await connection.fetchval(_HOLDER, runner) not in {server, None}:
        raise RunnerUnavailable(runner=runner)


def _nobody(_: str, __: int) -> None:
    """Nobody has links yet."""


def _since(
    seen: tuple[int, int], before: tuple[tuple[int, int], float] | None, now: float
) -> tuple[tuple[int, int], float]:
    return (seen, before[1]) if before is not None and before[0] == seen else (seen, now)


def _every() -> Query[list[RunnerLink]]:
    rows = yield from rows_of(_ALL)
    found = []
    for runner, server, number, is_linked, heard_at, about, load in rows:
        with suppress(msgspec.MsgspecError):  # of a version that says it in other words
            found.append(
                RunnerLink(runner, server, number, is_linked, heard_at, _about.decode(about), _load.decode(load))
            )
    return found


def _owners_on(runner: str) -> Query[list[str]]:
    query = "SELECT DISTINCT owner FROM owners JOIN sessions ON id = session WHERE runner = ?"
    return [owner for (owner,) in (yield from rows_of(query, runner))]


def _offers(server: str, terminal: tuple[str, ...]) -> Query[list[Offer]]:
    query = (
        "SELECT id, project, agent, spec, epoch FROM sessions JOIN owners ON session = id "
        "WHERE runner IS NULL AND owner <> ? AND NOT (status = ANY(?)) ORDER BY id"
    )
    found = []
    for session, project, agent, spec, epoch in (yield from rows_of(query, server, list(terminal))):
        known = _spec.decode(spec)
        share, needs = share_of(project, known), known.needs or Needs()
        found.append(Offer(session, project, share, agent, needs, known.tenant, epoch))
    return found
