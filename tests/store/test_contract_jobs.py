"""Durable work is a row until it is done, and one owner has it at a time."""

from ostler.server.store.protocol import Store
from ostler.server.store.records import NewJob
from tests.store.conftest import Opener
from tests.support.log_writing import change, created, notice

LONG = 600.0


async def taken(store: Store, owner: str, *, limit: int = 10, seconds: float = LONG, ahead: bool = False) -> list[str]:
    found = await store.jobs.take(owner, ["a", "b"], limit, seconds=seconds, ahead=ahead)
    return sorted(job.key for job in found)


async def test_a_job_is_had_by_whoever_takes_it_first_until_its_time_is_over(store: Store) -> None:
    await store.jobs.add(NewJob(key="one", kind="a", body=b"x"))
    await store.jobs.add(NewJob(key="two", kind="b", body=b"y"))
    await store.jobs.add(NewJob(key="other", kind="unknown"))
    assert len(await taken(store, "me", limit=1)) == 1
    assert len(await taken(store, "you")) == 1
    assert await taken(store, "me") == []
    wait = await store.jobs.next_due(["a", "b"])
    assert wait is not None
    assert 0 < wait <= LONG
    await store.jobs.renew("me", ["other"], seconds=-1)
    assert await taken(store, "you") == []
    await store.jobs.renew("me", ["one", "two"], seconds=-1)
    assert len(await taken(store, "you")) == 1
    await store.jobs.release("you")
    assert await taken(store, "me") == ["one", "two"]


async def test_a_key_is_done_once(store: Store) -> None:
    await store.jobs.add(NewJob(key="one", kind="a", body=b"first"))
    await store.jobs.add(NewJob(key="one", kind="a", body=b"second", after=LONG))
    (job,) = await store.jobs.take("me", ["a"], 10, seconds=LONG)
    assert (job.key, job.kind, job.body, job.tries) == ("one", "a", b"first", 0)
    await store.jobs.finish("one")
    assert await store.jobs.find("one") is None
    assert await store.jobs.next_due(["a"]) is None


async def test_what_is_due_later_is_taken_later_or_ahead(store: Store) -> None:
    await store.jobs.add(NewJob(key="late", kind="a", after=LONG))
    assert await taken(store, "me") == []
    wait = await store.jobs.next_due(["a"])
    assert wait is not None
    assert LONG - 60 < wait <= LONG
    ahead = await store.jobs.next_due(["a"], ahead=True)
    assert ahead is not None
    assert ahead <= 0
    (job,) = await store.jobs.take("me", ["a"], 10, seconds=LONG, ahead=True)
    assert -LONG <= job.age < -LONG + 60
    again = await store.jobs.next_due(["a"], ahead=True)
    assert again is not None
    assert 2 * LONG - 60 < again <= 2 * LONG  # had for that time after it is due


async def test_a_try_in_vain_is_counted_by_its_owner_alone(store: Store) -> None:
    await store.jobs.add(NewJob(key="one", kind="a"))
    assert await taken(store, "me") == ["one"]
    await store.jobs.retry("one", "you", after=0)
    assert await taken(store, "you") == []
    await store.jobs.retry("one", "me", after=0)
    (job,) = await store.jobs.take("you", ["a"], 10, seconds=LONG)
    assert (job.tries, job.age >= 0) == (1, True)
    await store.jobs.retry("one", "you", after=LONG)
    assert await taken(store, "me") == []


async def test_a_job_is_stored_with_the_events_that_ask_for_it_or_not_at_all(opener: Opener) -> None:
    store = await opener()
    session = await created(store, "ses_a")
    await session.append(notice("over"), change=change("stopped"), jobs=(NewJob(key="one", kind="a", body=b"x"),))
    await store.close()
    store = await opener()
    job = await store.jobs.find("one")
    await store.close()
    assert job is not None
    assert (job.kind, job.body, job.tries) == ("a", b"x", 0)
