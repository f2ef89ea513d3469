"""One transaction of the writer: the bursts of many sessions become a few statements when it ends."""

from collections.abc import Iterable, Mapping
from typing import Any

import asyncpg

from ostler.base.clock import steady_seconds
from ostler.base.errors import StoreUnavailable
from ostler.server.store.errors import StaleOwner
from ostler.server.store.outline import ITEMS, Mark, stored_body
from ostler.server.store.packing import PACKING, pack
from ostler.server.store.postgres.dialect import FIRST_OF_TRANSACTION, sendable
from ostler.server.store.records import DONE, Append, AppendResult, Done, NewJob, SessionSpec, encode

_OWNERS = "SELECT session, epoch FROM owners WHERE session = ANY($1) ORDER BY session FOR SHARE"
_LASTS = """
SELECT name, (SELECT last FROM chunks WHERE session = name ORDER BY last DESC LIMIT 1) FROM unnest($1::text[]) AS name
"""
_CHUNKS = """
INSERT INTO chunks (position, session, first, last, body, start, step, packing) SELECT * FROM unnest(
    $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bigint[], $7::bigint[], $8::smallint[])
"""
_SESSION = """
UPDATE sessions SET status = $2, title = $3, labels = $4, updated_at = $5, state = $6, workspace = $7 WHERE id = $1
"""
_TURN = """
INSERT INTO turns VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (session, number) DO UPDATE
SET turn = excluded.turn, turn_id = excluded.turn_id, first_sequence = excluded.first_sequence,
    branches = excluded.branches
"""
_ASK = """
INSERT INTO asks VALUES ($1, $2, $3, $4, $5) ON CONFLICT (session, ask_id) DO UPDATE
SET is_open = excluded.is_open, requested_at = excluded.requested_at, ask = excluded.ask
"""
_SNAPSHOT = """
INSERT INTO snapshots VALUES ($1, $2, $3) ON CONFLICT (session, sequence) DO UPDATE SET snapshot = excluded.snapshot
"""
# An item that is known gets a new content; the number of a new one is how many are in the conversation.
_ITEM = """
INSERT INTO items (session, first, last, item_id, kind, is_open, turn_id, body, number) VALUES
($1, $2, $2, $3, $4, $5, $6, $7, 1 + coalesce((SELECT max(number) FROM items WHERE session = $1), 0))
ON CONFLICT (session, item_id) WHERE number IS NOT NULL DO UPDATE
SET last = excluded.last, is_open = excluded.is_open, body = excluded.body
"""
# Earlier references to the same file are kept: a rewind brings the last of them back.
_ARTIFACT = """
WITH earlier AS (UPDATE artifacts SET is_newest = FALSE WHERE session = $1 AND path = $3 AND is_newest)
INSERT INTO artifacts VALUES ($1, $2, $3, TRUE, $4)
"""
_LINE = "INSERT INTO lines VALUES ($1, $2, $3)"
_FORGET_ITEMS = "UPDATE items SET number = NULL WHERE session = $1 AND first > $2"
_FORGET_ARTIFACTS = "DELETE FROM artifacts WHERE session = $1 AND sequence > $2"
_NEWEST_ARTIFACTS = """
UPDATE artifacts SET is_newest = TRUE WHERE session = $1 AND NOT is_newest
AND sequence = (SELECT max(sequence) FROM artifacts AS same WHERE same.session = $1 AND same.path = artifacts.path)
"""
_RESPONSE = "INSERT INTO idempotency VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"
NOW = "extract(epoch FROM clock_timestamp())::double precision"
_JOB = f"INSERT INTO jobs VALUES ($1, $2, $3, {NOW} + $4, {NOW} + $4, 0, '', 0) ON CONFLICT DO NOTHING"  # noqa: S608  fixed words
_Rows = list[tuple[Any, ...]]


class Transaction:
    """What appends need to know is asked once for all of them; what they write is gathered until `flush`."""

    def __init__(self, connection: asyncpg.Connection, lasts: dict[str, tuple[int, int]]) -> None:
        self.connection = connection
        self.epochs: dict[str, int] = {}
        """The epoch that each session is had in, of those that are appended to."""
        self._lasts = lasts
        self._position = 0
        self._appends: list[tuple[Append, int, bytes]] = []

    async def begin(self, session_ids: Iterable[str]) -> None:
        """Take a number, and hold off whoever would take one of these sessions until the transaction ends."""
        number = FIRST_OF_TRANSACTION.format("pg_current_xact_id()")
        self._position = await self.connection.fetchval(f"SELECT {number}")
        await self.look_at(session_ids)

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
        found = await self.connection.fetchval(f"{_RESPONSE} RETURNING TRUE", *map(sendable, row))
        return found is not None

    async def flush(self) -> None:
        """Write what was gathered."""
        appends, self._appends = self._appends, []
        if not appends:
            return
        columns = zip(*(_chunk(append, position, body) for append, position, body in appends), strict=True)
        await self.connection.execute(_CHUNKS, *map(list, columns))
        await self._many(_SESSION, _changes(append for append, _, _ in appends))
        for append, _, _ in appends:
            await self._projections(append)
        await self._outline(appends)
        await self._done(appends)

    async def _projections(self, append: Append) -> None:
        session = append.session_id
        await self._many(
            _TURN,
            [
                (session, turn.number, encode(turn), turn.turn_id, turn.first_sequence, turn.after is not None)
                for turn in append.turns
            ],
        )
        await self._many(
            _ASK,
            [(session, ask.ask_id, ask.status == "requested", ask.requested_at, encode(ask)) for ask in append.asks],
        )
        await self._many(_SNAPSHOT, [(session, taken.sequence, encode(taken)) for taken in append.snapshots])
        await self.add_jobs(append.jobs)
        if append.placed is not None:
            await self.place(session, *append.placed)

    async def place(self, session_id: str, runner: str | None, spec: SessionSpec) -> None:
        """A session is on this runner from now on."""
        query = "UPDATE sessions SET runner = $1, spec = $2 WHERE id = $3"
        await self.connection.execute(query, runner, encode(spec), session_id)

    async def add_jobs(self, jobs: Iterable[NewJob]) -> None:
        """What is to be done, as far as no job with the same key is there."""
        await self._many(_JOB, [(job.key, job.kind, job.body, job.after) for job in jobs])

    async def _outline(self, appends: list[tuple[Append, int, bytes]]) -> None:
        rows: Mapping[str, _Rows] = {_ITEM: [], _ARTIFACT: [], _LINE: []}
        for append, _, _ in appends:
            for mark in append.marks:
                statement, row = _outlined(append.session_id, mark)
                rows[statement].append(row)
                if mark.type == "session.rewound":
                    await self._write_outline(rows)
                    await self._rewind(append.session_id, mark.data.sequence)
        await self._write_outline(rows)

    async def _write_outline(self, rows: Mapping[str, _Rows]) -> None:
        for statement, some in rows.items():
            await self._many(statement, some)
            some.clear()

    async def _rewind(self, session_id: str, sequence: int) -> None:
        """What comes after the sequence stays in the log and leaves the conversation."""
        await self.connection.execute(_FORGET_ITEMS, session_id, sequence)
        await self.connection.execute(_FORGET_ARTIFACTS, session_id, sequence)
        await self.connection.execute(_NEWEST_ARTIFACTS, session_id)

    async def _done(self, appends: list[tuple[Append, int, bytes]]) -> None:
        created = steady_seconds()
        rows = [
            (DONE, append.done.claim, "", 0, b"\x90", append.done.result, created)
            for append, _, _ in appends
            if append.done is not None
        ]
        await self._many(_RESPONSE, rows)

    async def _many(self, statement: str, rows: _Rows) -> None:
        if rows:
            await self.connection.executemany(statement, [tuple(map(sendable, row)) for row in rows])


def _gap(append: Append, last: int) -> StoreUnavailable:
    return StoreUnavailable(reason=f"event {append.first} does not follow {last}")


def _chunk(append: Append, position: int, body: bytes) -> tuple[Any, ...]:
    start, step = (append.progress.start, append.progress.step) if append.progress is not None else (None, None)
    return position, append.session_id, append.first, append.last, body, start, step, PACKING


def _changes(appends: Iterable[Append]) -> _Rows:
    """Of each session only its newest state."""
    newest = {append.session_id: append.change for append in appends if append.change is not None}
    return [
        (
            session,
            change.status,
            change.title,
            labels_of(change.labels),
            change.updated_at,
            change.state,
            change.workspace,
        )
        for session, change in newest.items()
    ]


def labels_of(labels: Mapping[str, str]) -> str:
    """Labels as PostgreSQL takes them."""
    return encode({sendable(name): sendable(value) for name, value in labels.items()}).decode()


def _outlined(session_id: str, mark: Mark) -> tuple[str, tuple[Any, ...]]:
    body = stored_body(mark)
    if mark.type in ITEMS:
        item, is_open = mark.data.item, mark.type == "item.started"
        return _ITEM, (session_id, mark.sequence, item.item_id, item.kind, is_open, mark.turn_id, body)
    if mark.type == "artifact.created":
        return _ARTIFACT, (session_id, mark.sequence, mark.data.path, body)
    return _LINE, (session_id, mark.sequence, body)
