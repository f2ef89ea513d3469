"""What only a database that can go away promises."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from ostler.base.errors import DatabaseInUse, SettingsError, StoreUnavailable
from ostler.base.errors.runners import RunnerUnavailable
from ostler.server.store.peers import Bell, LetThrough, Member, RunnerLoad
from ostler.server.store.postgres import store as postgres_store
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.postgres.tables import PostgresTables
from ostler.server.store.records import NewSession, Placed, StoredResponse
from ostler.wire.runners import RunnerAbout
from tests.support.databases import Cluster, running_cluster
from tests.support.log_writing import NOW, SPEC, Writing, change, created, made, notice, sequences
from tests.support.patience import stretched, until


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
    store: PostgresStore, own_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "_READ_PATIENCE", stretched(60))  # a busy machine is long about a start
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
    new = NewSession(id="ses_b", project="default", key="b", agent="mock", created_at=NOW, spec=SPEC, runner="run_1")
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
    pooled = Address.reading("postgresql://u:s3cret@h:6432/db?pgbouncer=true&direct=h:5432")
    assert (pooled.for_listening.url, pooled.can_listen) == ("postgresql://u:s3cret@h:5432/db", True)
    assert not Address.reading("postgresql://h/db?pgbouncer=true").can_listen
    assert Address.reading("postgresql://h/db") == Address("postgresql://h/db", "postgresql://h/db", False)
    assert Address.reading("postgresql://a:1,b:2/db").shown == "postgresql://a:1,b:2/db"
    assert Address.reading("postgresql:///db?host=/run").url == "postgresql:///db?host=%2Frun"
    for wrong in ("postgresql://u:pa/s3cret@h/db", "postgresql://[::1/s3cret", "postgresql://h:s3cret/db"):
        with pytest.raises(SettingsError) as caught:
            Address.reading(wrong)
        assert "s3cret" not in str(caught.value)


def member(name: str, timeout: float = 60.0) -> Member:
    return Member(name, f"http://{name}:2468", "1.0", timeout, files="file:///mnt/ostler")


class Faulty:
    """Implements Tally, and fails the first time."""

    def __init__(self) -> None:
        self.asked = 0

    def let_through(self) -> list[LetThrough]:
        self.asked += 1
        if self.asked == 1:
            raise RuntimeError("a fault of ours")
        return []

    def settle(self, sent: object, levels: object) -> None:
        raise AssertionError((sent, levels))


async def test_a_fault_of_ours_ends_no_beats(store: PostgresStore) -> None:
    line, tally = await store.owners.join(member("one", timeout=2.0)), Faulty()
    assert line is not None
    line.count_with(tally)
    await until(lambda: tally.asked > 2, "it is asked again")
    await line.close()


async def test_servers_share_a_database_and_none_takes_what_another_has(own_cluster: Cluster, tmp_path: Path) -> None:
    url = own_cluster.new_database()
    stores = [await opened_in(tmp_path / name, url) for name in ("one", "two")]
    lines = [await store.owners.join(member(name)) for store, name in zip(stores, ("one", "two"), strict=True)]
    epochs = [await store.owners.claim(name) for store, name in zip(stores, ("one", "two"), strict=True)]
    session = Writing(stores[0], "ses_a", epochs[0])
    await session.create()
    await stores[0].owners.claim("one", ["ses_a"])
    record = await stores[1].find_session("default", "ses_a")
    assert record is not None
    await stores[1].owners.claim("two")
    assert await stores[1].find_session("default", "ses_a") == record
    assert record.owner == "one"
    with pytest.raises(DatabaseInUse):
        await PostgresTables.open(url)
    for line, store in zip(lines, stores, strict=True):
        assert line is not None
        await line.close()
        await store.close()
    await (await PostgresTables.open(url)).close()


async def test_only_the_server_that_a_runner_is_linked_to_gets_the_sessions_on_it(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    url = own_cluster.new_database()
    one, two = [await opened_in(tmp_path / name, url) for name in ("one", "two")]
    first, second = await one.owners.join(member("one")), await two.owners.join(member("two"))
    assert first is not None
    assert second is not None
    about, load = RunnerAbout(id="run_1", name="far"), RunnerLoad(at_work={}, agents=())
    epoch = await one.owners.claim("one")
    await first.links.take(about, load, NOW)
    await Writing(one, "ses_a", epoch).create(owner="one")
    await Writing(one, "ses_b", epoch).create(owner="one", runner=None)
    await second.links.take(about, load, NOW)
    assert not await first.links.claim("run_1", ())  # it was about to, and stood still
    with pytest.raises(RunnerUnavailable):
        await Writing(one, "ses_c", epoch).create(owner="one")
    assert await second.links.claim("run_1", ())
    found = [await one.find_session("default", each) for each in ("ses_a", "ses_b", "ses_c")]
    assert [each and (each.owner, each.runner) for each in found] == [("two", "run_1"), ("one", None), None]
    for line, store in ((first, one), (second, two)):
        await line.close()
        await store.close()


async def test_a_session_is_not_placed_on_a_runner_that_went_to_another_server(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    url = own_cluster.new_database()
    one, two = [await opened_in(tmp_path / name, url) for name in ("one", "two")]
    first, second = await one.owners.join(member("one")), await two.owners.join(member("two"))
    assert first is not None
    assert second is not None
    about, load = RunnerAbout(id="run_1", name="far"), RunnerLoad(at_work={}, agents=())
    epoch = await one.owners.claim("one")
    early, late = Writing(one, "ses_early", epoch), Writing(one, "ses_late", epoch)
    for waiting in (early, late):
        await waiting.create(owner="one", runner=None)
        await waiting.append(notice("it waits"))
    await first.links.take(about, load, NOW)
    await early.append(notice("placed"), placed=Placed("run_1", SPEC, arrives=True))
    await second.links.take(about, load, NOW)
    with pytest.raises(RunnerUnavailable):
        await late.append(notice("placed"), placed=Placed("run_1", SPEC, arrives=True))
    await early.append(notice("of another agent"), placed=Placed("run_1", SPEC))  # where it was before
    assert await second.links.claim("run_1", ())
    found = [await one.find_session("default", each) for each in ("ses_early", "ses_late")]
    assert [each and (each.owner, each.runner, each.last_sequence) for each in found] == [
        ("two", "run_1", 4),
        ("one", None, 2),
    ]
    for line, store in ((first, one), (second, two)):
        await line.close()
        await store.close()


async def test_what_a_server_had_that_nobody_knows_is_claimed_by_the_next(store: PostgresStore) -> None:
    await created(store, "ses_a")
    line = await store.owners.join(member("next"))
    epoch = await store.owners.claim("next")
    record = await store.find_session("default", "ses_a")
    assert record is not None
    assert (record.owner, record.epoch) == ("next", epoch)
    assert line is not None
    await line.close()


async def test_a_server_is_lost_when_its_beat_stands_still_while_it_is_watched(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    url = own_cluster.new_database()
    stores = [await opened_in(tmp_path / name, url) for name in ("one", "two")]
    patience = stretched(2.0)
    one = await stores[0].owners.join(member("one", patience))
    two = await stores[1].owners.join(member("two", patience))
    assert one is not None
    assert two is not None
    assert one.secret == two.secret
    await until(lambda: one.address_of("two") == "http://two:2468")
    assert not one.is_lost("two")
    await asyncio.to_thread(own_cluster.stop)  # nobody can be seen, and nobody is lost
    await asyncio.sleep(2 * patience)
    assert not one.is_lost("two")
    await asyncio.to_thread(own_cluster.start)
    heard: list[Bell | None] = []
    two.listen(heard.append)
    bell = Bell("ses_a", 3, 7, 1, "default")

    def arrived() -> bool:
        one.ring(bell)
        return bell in heard

    await until(arrived)
    assert None in heard
    assert not one.is_lost("two")
    two._task.cancel()  # type: ignore[attr-defined]  # as if it hung
    await until(lambda: one.is_lost("two"))
    assert one.is_lost("never was")
    await two.close()
    await one.close()
    for store in stores:
        await store.close()


async def opened_in(folder: Path, url: str) -> PostgresStore:
    folder.mkdir()
    return await PostgresStore.open(url, folder, boot="now")


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
