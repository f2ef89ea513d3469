"""What every engine does with durable work."""

import asyncio

from ostler.server.engine.protocol import Retry
from ostler.server.store.protocol import Store
from ostler.server.store.records import NewJob
from tests.engine.conftest import Maker
from tests.engine.working import Notes, until_gone
from tests.support.log_writing import change, created, notice
from tests.support.patience import until


async def test_a_job_is_done_and_gone_and_its_key_may_be_used_again(store: Store, make: Maker) -> None:
    notes, engine = Notes(), await make()
    await engine.start({"note": notes.work()})
    for body in (b"first", b"second"):
        await engine.run(NewJob(key="one", kind="note", body=body))
        await until_gone(store.jobs.find, "one")
    assert notes.bodies == [b"first", b"second"]


async def test_what_was_stored_together_with_an_event_is_done(store: Store, make: Maker) -> None:
    notes, engine = Notes(), await make()
    await engine.start({"note": notes.work()})
    session = await created(store, "ses_a")
    await session.append(notice("over"), change=change("stopped"), jobs=(NewJob(key="one", kind="note", body=b"x"),))
    engine.wake()
    await until_gone(store.jobs.find, "one")
    assert notes.bodies == [b"x"]


async def test_a_key_that_waits_is_not_done_twice(store: Store, make: Maker) -> None:
    notes, engine = Notes({"one": 3}), await make()
    await engine.start({"note": notes.work()})
    for body in (b"first", b"second"):
        await engine.run(NewJob(key="one", kind="note", body=body))
    await until_gone(store.jobs.find, "one")
    assert notes.bodies == [b"first"]


async def test_what_fails_is_tried_again_whatever_the_reason(store: Store, make: Maker) -> None:
    for reason in ("no luck", RuntimeError("broken")):
        notes, engine = Notes({"one": 2}, reason), await make()
        await engine.start({"note": notes.work()})
        await engine.run(NewJob(key="one", kind="note"))
        await until_gone(store.jobs.find, "one")
        assert (notes.tried, notes.done) == (["one"] * 3, ["one"])
        await engine.close()


async def test_what_hangs_is_tried_again(store: Store, make: Maker) -> None:
    notes, engine = Notes(), await make()
    hung = asyncio.Event()

    async def hang_once(job: object) -> None:
        if not hung.is_set():
            hung.set()
            await asyncio.Event().wait()

    work = notes.work(seconds=0.2)
    await engine.start({"note": type(work)(run=hang_once, retry=work.retry, seconds=work.seconds)})
    await engine.run(NewJob(key="one", kind="note"))
    await until_gone(store.jobs.find, "one")
    assert hung.is_set()


async def test_what_fails_for_too_long_is_given_up(store: Store, make: Maker) -> None:
    notes, engine = Notes({"one": 10**6}), await make()
    await engine.start({"note": notes.work(Retry(first=0.02, longest=0.05, within=1.0))})
    await engine.run(NewJob(key="one", kind="note"))
    await until_gone(store.jobs.find, "one")
    tried = len(notes.tried)
    await engine.run(NewJob(key="two", kind="note"))
    await until_gone(store.jobs.find, "two")
    assert (notes.done, notes.tried.count("one")) == (["two"], tried)
    assert tried > 1


async def test_what_is_due_later_is_done_later_and_what_is_cancelled_never(store: Store, make: Maker) -> None:
    notes, engine = Notes(), await make()
    await engine.start({"note": notes.work()})
    await engine.run(NewJob(key="tomorrow", kind="note", after=86400.0))
    await engine.run(NewJob(key="cancelled", kind="note", after=1.0))
    await engine.run(NewJob(key="soon", kind="note", after=2.0))
    await engine.cancel("cancelled")
    await until_gone(store.jobs.find, "soon")
    assert notes.tried == ["soon"]
    assert await store.jobs.find("cancelled") is None
    assert await store.jobs.find("tomorrow") is not None


async def test_what_an_engine_leaves_is_done_by_the_next(store: Store, make: Maker) -> None:
    notes, engine = Notes({"one": 10**6}), await make()
    await engine.start({"note": notes.work()})
    await engine.run(NewJob(key="one", kind="note"))
    await until(lambda: bool(notes.tried), what="it was tried")
    await engine.close()
    notes, engine = Notes(), await make()
    await engine.start({"note": notes.work()})
    await until_gone(store.jobs.find, "one")
    assert notes.done == ["one"]


async def test_what_a_dead_server_had_is_done_when_its_time_is_over(store: Store, make: Maker) -> None:
    await store.jobs.add(NewJob(key="one", kind="note"))
    await store.jobs.take("dead", ["note"], 10, seconds=1.0)
    notes, engine = Notes(), await make()
    await engine.start({"note": notes.work()})
    await until_gone(store.jobs.find, "one")
    assert notes.done == ["one"]


async def test_several_servers_share_the_work(store: Store, make: Maker) -> None:
    notes = Notes()
    engines = [await make() for _ in range(3)]
    for engine in engines:
        await engine.start({"note": notes.work()})
    keys = [f"job-{number}" for number in range(12)]
    await asyncio.gather(*(engines[0].run(NewJob(key=key, kind="note")) for key in keys))
    for engine in engines:
        engine.wake()
    await until_gone(store.jobs.find, *keys)
    assert sorted(notes.done) == sorted(keys)


async def test_work_of_an_unknown_kind_is_left_to_who_knows_it(store: Store, make: Maker) -> None:
    notes, old = Notes(), await make()
    await old.start({"note": notes.work()})
    await old.run(NewJob(key="new", kind="novelty"))
    await old.run(NewJob(key="one", kind="note"))
    await until_gone(store.jobs.find, "one")
    assert await store.jobs.find("new") is not None
    newer = await make()
    await newer.start({"note": notes.work(), "novelty": notes.work()})
    await until_gone(store.jobs.find, "new")
    assert notes.done == ["one", "new"]
