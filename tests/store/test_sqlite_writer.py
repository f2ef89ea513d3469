"""The writer counts events right whatever happens to the group that they are committed with."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ostler.base.errors import StoreUnavailable
from ostler.server.store.errors import KeyTaken
from ostler.server.store.records import Append, AppendResult, NewSession, SessionSpec, StateChange
from ostler.server.store.sql.log_queries import last_position
from ostler.server.store.sql.reading import rows_of
from ostler.server.store.sqlite import statements
from ostler.server.store.sqlite.database import Database
from ostler.server.store.sqlite.dialect import SQLITE
from ostler.server.store.sqlite.ledger import Ledger

NOW = "2026-11-16T12:00:00.000Z"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    store = Database.open(tmp_path / "ostler.db", sync="normal", boot="now")
    yield store
    await store.close()


def burst(session_id: str, first: int, count: int = 1) -> Append:
    events = tuple(b'{"sequence":%d}' % number for number in range(first, first + count))
    change = StateChange(status="running", title=None, labels={}, updated_at=NOW, state=b"{}") if first == 1 else None
    return Append(
        session_id=session_id, epoch=1, time=NOW, first=first, events=events, raws=(None,) * count, change=change
    )


def created(store: Database, session_id: str, key: str) -> "asyncio.Future[AppendResult]":
    spec = SessionSpec(cwd="/", env={}, permission_mode="default")
    new = NewSession(id=session_id, project="default", key=key, agent="mock", created_at=NOW, spec=spec, runner="run_1")
    return store.write(statements.create_session, new, burst(session_id, 1), "server")


def appended(store: Database, append: Append) -> "asyncio.Future[AppendResult]":
    return store.write(statements.append_burst, append)


async def sequences(store: Database, session_id: str) -> list[int]:
    chunks = await store.read(
        lambda: rows_of("SELECT first, last FROM chunks WHERE session = ? ORDER BY last", session_id)
    )
    return [number for first, last in chunks for number in range(first, last + 1)]


async def test_positions_go_on_without_a_gap_however_many_bursts_are_committed_together(store: Database) -> None:
    placed = [await created(store, "ses_a", "a")]
    placed += await asyncio.gather(*(appended(store, burst("ses_a", number)) for number in range(2, 1000)))
    positions = [place.position for place in placed]
    assert positions == list(range(1, 1000))
    assert await sequences(store, "ses_a") == positions
    assert await store.read(lambda: last_position(SQLITE)) == 999


async def test_a_job_that_fails_takes_no_positions_and_its_neighbours_keep_theirs(store: Database) -> None:
    await created(store, "ses_a", "a")
    together = [
        appended(store, burst("ses_a", 2, 3)),
        created(store, "ses_b", "a"),  # the key is taken
        appended(store, burst("ses_a", 5)),
        appended(store, burst("ses_a", 9)),  # leaves a gap
        appended(store, burst("ses_a", 6)),
    ]
    outcomes = await asyncio.gather(*together, return_exceptions=True)
    assert [place.position for place in outcomes if isinstance(place, AppendResult)] == [4, 5, 6]
    assert isinstance(outcomes[1], KeyTaken)
    assert isinstance(outcomes[3], StoreUnavailable)
    assert await sequences(store, "ses_a") == [1, 2, 3, 4, 5, 6]
    assert await sequences(store, "ses_b") == []


async def test_a_group_that_cannot_be_committed_leaves_nothing_and_the_next_goes_on(store: Database) -> None:
    await created(store, "ses_a", "a")

    def broken(_: Ledger) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    lost = (appended(store, burst("ses_a", 2)), store.write(broken))
    assert all(isinstance(error, StoreUnavailable) for error in await asyncio.gather(*lost, return_exceptions=True))
    assert await store.read(lambda: last_position(SQLITE)) == 1
    with pytest.raises(StoreUnavailable):
        await appended(store, burst("ses_a", 3))
    assert (await appended(store, burst("ses_a", 2))).position == 2
    assert await sequences(store, "ses_a") == [1, 2]


async def test_a_job_with_a_value_that_cannot_be_written_fails_alone(store: Database) -> None:
    await created(store, "ses_a", "a")

    def spoilt(ledger: Ledger) -> None:
        ledger.execute("UPDATE sessions SET title = ?", ("sur\ud800x",))

    together = (appended(store, burst("ses_a", 2)), store.write(spoilt), appended(store, burst("ses_a", 3)))
    outcomes = await asyncio.gather(*together, return_exceptions=True)
    assert [place.position for place in outcomes if isinstance(place, AppendResult)] == [2, 3]
    assert isinstance(outcomes[1], UnicodeEncodeError)
    assert (await appended(store, burst("ses_a", 4))).position == 4
