"""One transaction of the writer: the bursts of many sessions become a few statements when it ends."""

from collections.abc import Iterable, Sequence

import asyncpg

from ostler.base.clock import steady_seconds
from ostler.base.errors import StoreUnavailable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.server.store.bursts import pack
from ostler.server.store.errors import StaleOwner
from ostler.server.store.postgres.bursts import Bursts, Lasts
from ostler.server.store.postgres.dialect import FIRST_OF_TRANSACTION, sendable
from ostler.server.store.records import DONE, Append, AppendResult, Done, NewJob

_OWNERS = "SELECT session, epoch FROM owners WHERE session = ANY($1) ORDER BY session FOR SHARE"
_LASTS = """
SELECT name, (SELECT last FROM chunks WHERE session = name ORDER BY last DESC LIMIT 1) FROM unnest($1::text[]) AS name
"""
_FORGET_ITEMS = "UPDATE items SET number = NULL WHERE session = $1 AND first > $2"
_FORGET_ARTIFACTS = "DELETE FROM artifacts WHERE session = $1 AND sequence > $2"
_NEWEST_ARTIFACTS = """
UPDATE artifacts SET is_newest = TRUE WHERE session = $1 AND NOT is_newest
AND sequence = (SELECT max(sequence) FROM artifacts AS same WHERE same.session = $1 AND same.path = artifacts.path)
"""
_MANY_PLACE = """
SELECT pg_advisory_xact_lock_shared(hashtextextended(runner, 0)) FROM unnest($1::text[]) AS runner ORDER BY runner
"""
_LINKED_ELSEWHERE = """
SELECT session FROM unnest($1::text[], $2::text[]) AS new (session, runner)
JOIN owners USING (session) JOIN runner_links AS link USING (runner) WHERE link.server <> owner
"""
_CLAIM = "INSERT INTO idempotency VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING TRUE"


class Transaction:
    """What appends need to know is asked once for all of them; what they write is gathered until `flush`."""

    def __init__(self, connection: asyncpg.Connection, lasts: Lasts) -> None:
        self.connection = connection
        self.epochs: dict[str, int] = {}
        """The epoch that each session is had in, of those that are appended to."""
        self._lasts = lasts
        self._base = self._position = 0
        self._appends: list[tuple[Append, int, bytes]] = []
        self._misplaced: frozenset[str] = frozenset()
        """The sessions whose runner was linked to another server since it was chosen."""

    async def begin(self, appends: Sequence[Append]) -> None:
        """Take a number, and hold off whoever would take one of these sessions, or a runner that one is placed on,
        until the transaction ends."""
        arriving = {each.session_id: each.placed.runner for each in appends if each.placed and each.placed.arrives}
        if arriving:  # before the sessions: whoever has the runner's link takes these behind it
            await self.connection.execute(_MANY_PLACE, sorted({runner for runner in arriving.values() if runner}))
        number = FIRST_OF_TRANSACTION.format("pg_current_xact_id()")
        self._base = self._position = await self.connection.fetchval(f"SELECT {number}")
        await self.look_at(append.session_id for append in appends)
        if arriving:
            rows = await self.connection.fetch(_LINKED_ELSEWHERE, list(arriving), list(arriving.values()))
            self._misplaced = frozenset(session for (session,) in rows)

    async def look_at(self, session_ids: Iterable[str]) -> None:
        """Learn who has these sessions, and how far their logs are."""
        wanted = sorted(set(session_ids))
        if not wanted:
            return
        self.epochs.update(dict(await self.connection.fetch(_OWNERS, wanted)))
        unknown = [
            session
            for session, epoch in self.epochs.items()
            if session not in self._lasts or self._lasts[session][0] != epoch
        ]
        if unknown:
            for session, last in await self.connection.fetch(_LASTS, unknown):
                self._lasts[session] = (self.epochs[session], last or 0)

    def begin_log(self, session_id: str, epoch: int) -> None:
        """A session is new."""
        self.epochs[session_id] = epoch
        self._lasts[session_id] = (epoch, 0)

    async def append(self, append: Append) -> AppendResult:
        """Add a burst; one that lies in the log already, since its writer could not know, is found there."""
        session = append.session_id
        if append.epoch != self.epochs.get(session):
            raise StaleOwner(session)
        body = append.packed or pack(session, append.events, append.raws)
        _, last = self._lasts[session]
        if append.last <= last:
            return AppendResult(await self._found(append, body), len(body))
        if append.first != last + 1:  # an earlier burst of this session failed; this one must not leave a gap
            raise _gap(append, last)
        if append.placed is not None and append.placed.arrives and session in self._misplaced:
            raise RunnerUnavailable(runner=append.placed.runner)
        self._lasts[session] = (append.epoch, append.last)
        self._position += len(append.events)
        self._appends.append((append, self._position, body))
        return AppendResult(self._position, len(body))

    async def _found(self, append: Append, body: bytes) -> int:
        await self.flush()
        query = "SELECT position, body FROM chunks WHERE session = $1 AND first = $2"
        row = await self.connection.fetchrow(query, append.session_id, append.first)
        if row is None or row[1] != body:
            raise _gap(append, self._lasts[append.session_id][1])
        return int(row[0])

    async def claims(self, done: Done) -> bool:
        """Be the one who does what a request claimed; waits for who is about to."""
        row = (DONE, done.claim, "", 0, b"\x90", done.result, steady_seconds())
        found = await self.connection.fetchval(_CLAIM, *map(sendable, row))
        return found is not None

    async def flush(self) -> None:
        """Write what was gathered."""
        appends, self._appends = self._appends, []
        bursts = Bursts()
        for append, position, body in appends:
            bursts.add(append, position - self._base, body)
            for mark in append.marks:
                bursts.mark(append.session_id, mark)
                if mark.type == "session.rewound":
                    await bursts.write(self.connection)
                    await self._rewind(append.session_id, mark.data.sequence)
                    bursts = Bursts()
        await bursts.write(self.connection)

    async def add_jobs(self, jobs: Iterable[NewJob]) -> None:
        """What is to be done, as far as no job with the same key is there."""
        bursts = Bursts()
        bursts.add_jobs(jobs)
        await bursts.write(self.connection)

    async def _rewind(self, session_id: str, sequence: int) -> None:
        """What comes after the sequence stays in the log and leaves the conversation."""
        await self.connection.execute(_FORGET_ITEMS, session_id, sequence)
        await self.connection.execute(_FORGET_ARTIFACTS, session_id, sequence)
        await self.connection.execute(_NEWEST_ARTIFACTS, session_id)


def _gap(append: Append, last: int) -> StoreUnavailable:
    return StoreUnavailable(reason=f"event {append.first} does not follow {last}")
