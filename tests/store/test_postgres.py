"""What only a database that can go away promises."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from ostler.base.errors import DatabaseInUse, SettingsError, StoreUnavailable
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.records import NewSession, StoredResponse
from tests.databases import Cluster, running_cluster
from tests.store.writing import NOW, SPEC, Writing, change, created, made, notice, sequences


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """One that may be stopped."""
    with tempfile.TemporaryDirectory(prefix="ostler-pg-") as folder, running_cluster(Path(folder)) as running:
        yield running


@pytest.fixture
async def store(own_cluster: Cluster, tmp_path: Path) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(own_cluster.new_database(), tmp_path, boot="now")
    yield store
    await store.close()


async def test_while_it_is_away_appends_and_reads_wait_and_nothing_is_lost_or_doubled(
    store: PostgresStore, own_cluster: Cluster
) -> None:
    session = await created(store, "ses_a")
    before = [session.append(notice(f"before {number}")) for number in range(50)]
    await asyncio.to_thread(own_cluster.stop)
    during = [session.append(notice(f"during {number}")) for number in range(50)]
    read = asyncio.create_task(store.logs.last_position())
    await asyncio.sleep(0)
    await asyncio.to_thread(own_cluster.start)
    placed = await asyncio.gather(*before, *during)
    assert [place.position for place in placed] == sorted({place.position for place in placed})
    assert await sequences(store, "ses_a") == list(range(1, 102))
    assert await read <= placed[-1].position
    assert await store.problem() is None


async def test_who_closes_while_it_is_away_does_not_wait_for_it(own_cluster: Cluster, tmp_path: Path) -> None:
    store = await PostgresStore.open(own_cluster.new_database(), tmp_path, boot="now")
    session = await created(store, "ses_a")
    await asyncio.to_thread(own_cluster.stop)
    pending = session.append(notice("pending"))
    closing = asyncio.create_task(store.close())
    with pytest.raises(StoreUnavailable):
        await pending
    await closing
    await asyncio.to_thread(own_cluster.start)


async def test_a_commit_whose_answer_was_lost_is_found_again_and_not_written_twice(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    url = own_cluster.new_database()
    store = await PostgresStore.open(url, tmp_path, boot="now")
    session = await created(store, "ses_a")
    burst = session.burst(notice("once"), made("a.txt"))
    first = await store.append(burst)
    assert await store.append(burst) == first
    new = Writing(store, "ses_b")
    assert await new.create("key") == await Writing(store, "ses_b").create("key")
    assert await sequences(store, "ses_a") == [1, 2, 3]
    assert await sequences(store, "ses_b") == [1]
    session.last = 1
    with pytest.raises(StoreUnavailable):
        await session.append(notice("another"), made("a.txt"))
    await store.close()


async def test_what_one_writer_cannot_write_does_not_hinder_the_others(store: PostgresStore) -> None:
    one, two = await created(store, "ses_a"), await created(store, "ses_b")
    lone = "\ud800"
    outcomes = await asyncio.gather(
        one.append(notice("fine")),
        store.remember_response("scope", lone, StoredResponse(fingerprint="", status=0, headers=[], body=b"")),
        two.append(notice("fine")),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["AppendResult", "StoreUnavailable", "AppendResult"]


async def test_a_mistake_of_ours_in_one_job_does_not_end_the_writer(store: PostgresStore) -> None:
    one, wrong = await created(store, "ses_a"), Writing(store, "ses_b")
    new = NewSession(id="ses_b", project="default", key="b", agent="mock", created_at=NOW, spec=SPEC)
    outcomes = await asyncio.gather(
        one.append(notice("fine")),
        store.create_session(new, wrong.burst(notice("without a state")), "server"),
        one.append(notice("fine")),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["AppendResult", "StoreUnavailable", "AppendResult"]
    assert await sequences(store, "ses_a") == [1, 2, 3]


async def test_texts_with_a_nul_are_stored_too(store: PostgresStore) -> None:
    session = await created(store, "ses_a", first=change(title="a\0b", labels={"n\0": "v\0"}))
    await session.append(made("a\0.txt"), change=change(title="c\0d", labels={"n\0": "v\0"}))
    found = await store.find_session("default", "ses_a")
    assert found is not None
    assert found.title == "c\ufffdd"
    assert await store.find_session("default", "\0") is None


async def test_of_two_servers_the_project_is_read_in_an_order_that_never_changes(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    """A position that is still being written holds back those after it: who follows by position misses nothing."""
    url = own_cluster.new_database()
    store = await PostgresStore.open(url, tmp_path, boot="now")
    session = await created(store, "ses_a")
    other = await asyncpg.connect(url)
    transaction = other.transaction()
    await transaction.start()
    await other.execute("INSERT INTO lines VALUES ('ses_x', 1, '')")
    await session.append(notice("after the other began"))
    assert len(await store.logs.project_events("default", 0, 10, 2**20)) == 1
    assert await store.logs.settled_position() < await store.logs.last_position()
    await transaction.commit()
    assert len(await store.logs.project_events("default", 0, 10, 2**20)) == 2
    await other.close()
    await store.close()


async def test_positions_go_on_in_a_postgres_that_counts_its_transactions_anew(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    url = own_cluster.new_database()
    store = await PostgresStore.open(url, tmp_path, boot="now")
    session = await created(store, "ses_a")
    await store.close()
    restored = await asyncpg.connect(url)
    await restored.execute("UPDATE chunks SET position = position + (1 << 40)")
    last = await restored.fetchval("SELECT max(position) FROM chunks")
    await restored.close()
    store = session.store = await PostgresStore.open(url, tmp_path, boot="now")
    assert (await session.append(notice("later"))).position > last
    assert len(await store.logs.project_events("default", 0, 10, 2**20)) == 2
    await store.close()


async def test_a_database_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        await PostgresStore.open("postgresql://me:secret@127.0.0.1:9/ostler", tmp_path, boot="now")
    assert "postgresql://me@127.0.0.1:9/ostler" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_says_whether_a_pooler_is_between_and_its_secrets_are_not_shown() -> None:
    assert Address.reading("postgresql://u:s3cret@h:5433/db?pgbouncer=true&sslmode=require&password=s3cret") == Address(
        "postgresql://u:s3cret@h:5433/db?sslmode=require&password=s3cret", "postgresql://u@h:5433/db", True
    )
    assert Address.reading("postgresql://h/db") == Address("postgresql://h/db", "postgresql://h/db", False)
    assert Address.reading("postgresql://a:1,b:2/db").shown == "postgresql://a:1,b:2/db"
    assert Address.reading("postgresql:///db?host=/run").url == "postgresql:///db?host=%2Frun"
    for wrong in ("postgresql://u:pa/s3cret@h/db", "postgresql://[::1/s3cret", "postgresql://h:s3cret/db"):
        with pytest.raises(SettingsError) as caught:
            Address.reading(wrong)
        assert "s3cret" not in str(caught.value)


async def test_a_database_has_one_server_at_a_time(own_cluster: Cluster, tmp_path: Path) -> None:
    url = own_cluster.new_database()
    store = await PostgresStore.open(url, tmp_path, boot="now")
    await created(store, "ses_a")
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(DatabaseInUse):
        await PostgresStore.open(url, other, boot="now")
    await store.close()
    await (await PostgresStore.open(url, other, boot="now")).close()


async def test_connections_that_are_cut_all_the_time_lose_and_double_nothing(
    store: PostgresStore, own_cluster: Cluster
) -> None:
    session = await created(store, "ses_a")
    killer = await asyncpg.connect(own_cluster.url("postgres"))
    pending = [session.append(notice(f"{number}"), made(f"{number}.txt")) for number in range(10)]
    for _ in range(40):
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ostler'"
        await killer.execute(query)
        pending += [session.append(notice("more")) for _ in range(5)]
        await asyncio.sleep(0.01)
    await killer.close()
    await asyncio.gather(*pending)
    assert await sequences(store, "ses_a") == list(range(1, 222))
    assert len(await store.logs.lines("ses_a", 1000)) == 211
    assert await store.problem() is None


async def test_a_write_that_failed_is_forgotten_when_the_next_would_not(
    store: PostgresStore, own_cluster: Cluster
) -> None:
    session = await created(store, "ses_a")
    lone = StoredResponse(fingerprint="", status=0, headers=[], body=b"")
    with pytest.raises(StoreUnavailable):
        await store.remember_response("scope", "\ud800", lone)
    assert await store.problem() is None
    await session.append(notice("fine"))
