"""What every store answers about schedules, and a day of the clock on each."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from ostler.base.clock import SystemClock
from ostler.server.schedules.service import Schedules
from ostler.server.schedules.times import shown
from ostler.server.store.protocol import Store
from ostler.server.store.schedules import FIRE, FireJob, FireRow, ScheduleRow
from ostler.wire.schedules import EditSchedule, NewSchedule
from tests.store.conftest import Opener
from tests.support.pushing import push

AT = "2026-01-01T00:00:00.000Z"


def _row(name: str, due: int | None = 100, project: str = "default") -> ScheduleRow:
    return ScheduleRow(id=f"{project}-{name}", project=project, name=name, body=b"{}", due=due, created_at=AT)


async def test_a_time_is_written_once_with_its_job_whoever_is_faster(opener: Opener) -> None:
    store = await opener()
    assert await store.schedules.add(_row("a"))
    assert not await store.schedules.add(replace(_row("a"), id="another"))
    row = _row("a")
    fires = [
        FireRow(schedule=row.id, due=90, state="missed", reason="late"),
        FireRow(schedule=row.id, due=100, state="waiting"),
    ]
    done = await asyncio.gather(*(store.schedules.fire(row, 160, fires, 170.0) for _ in range(4)))
    assert sorted(done) == [False, False, False, True]
    await store.close()
    store = await opener()
    (job,) = await store.jobs.take("me", [FIRE], 9, seconds=1.0)
    assert msgspec.json.decode(job.body, type=FireJob) == FireJob(project="default", schedule=row.id, due=100)
    assert [fire.state for fire in await store.schedules.fires(row.id, 9)] == ["waiting", "missed"]
    assert await store.schedules.next_due() == 160
    await store.schedules.settle(replace(fires[1], state="started", session="ses_1"))
    assert (await store.schedules.fires(row.id, 1))[0].session == "ses_1"
    await store.close()


async def test_schedules_are_of_one_project_and_go_with_their_fires(store: Store) -> None:
    for row in (_row("b", None), _row("a"), _row("a", 50, "other")):
        assert await store.schedules.add(row)
    assert [row.name for row in await store.schedules.all("default")] == ["a", "b"]
    assert [row.id for row in await store.schedules.due(100)] == ["other-a", "default-a"]
    assert await store.schedules.find("other", "default-a") is None
    assert not await store.schedules.change(replace(_row("a"), project="other", id="default-a"))
    assert await store.schedules.change(_row("a", None))
    assert [row.id for row in await store.schedules.due(100)] == ["other-a"]
    assert not await store.schedules.remove("other", "default-a")
    assert await store.schedules.remove("default", "default-a")


async def test_a_time_that_waits_is_found_however_many_came_since_and_old_ones_are_forgotten(store: Store) -> None:
    row = _row("a")
    assert await store.schedules.add(row)
    first = FireRow(schedule=row.id, due=100, state="waiting")
    skipped = [FireRow(schedule=row.id, due=100 + 60 * each, state="skipped") for each in range(1, 8)]
    assert await store.schedules.fire(row, row.due, [first, *skipped], 600.0)
    found = [fire.due for fire in await store.schedules.fires(row.id, 2)]
    assert found == [520, 460, 100]
    later = FireRow(schedule=row.id, due=40 * 24 * 3600, state="skipped")
    assert await store.schedules.fire(row, row.due, [later], float(later.due))
    assert [fire.due for fire in await store.schedules.fires(row.id, 99)] == [later.due, 100]


async def test_a_schedule_that_cannot_be_read_stops_no_other(store: Store) -> None:
    assert await store.schedules.add(replace(_row("broken", 50), body=b"no JSON"))
    body = msgspec.json.encode(NewSchedule(name="a", template="t", cron="* * * * *"))
    assert await store.schedules.add(replace(_row("a", 100), body=body))
    schedules = Schedules(store.schedules, store.templates, SystemClock(), lambda: 110.0)
    assert await schedules.tick() == 1


class _Clock:
    def __init__(self, at: str) -> None:
        self.now = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now


async def _day(store: Store, at: str, wanted: NewSchedule, minutes: int, pause: int = 0) -> list[str]:
    """Every minute of a day on two servers; for some minutes none of them is there. Gives what was begun."""
    clock = _Clock(at)
    servers = [Schedules(store.schedules, store.templates, SystemClock(), clock) for _ in range(2)]
    await push(store, "t")
    made = await servers[0].add("default", wanted)
    for minute in range(minutes):
        clock.now += 60
        if not minutes // 2 <= minute < minutes // 2 + pause:
            await asyncio.gather(*(server.tick() for server in servers))
    fires = await store.schedules.fires(made.id, 1000)
    return [shown(fire.due)[11:16] for fire in reversed(fires) if fire.state == "waiting"]


@pytest.mark.parametrize(
    ("at", "cron", "zone", "times"),
    [
        ("2026-03-28T23:00", "30 2 * * *", "Europe/Berlin", ["01:00"]),
        ("2026-03-28T23:00", "0 */2 * * *", "Europe/Berlin", ["02:00", "04:00"]),
        ("2026-10-24T22:00", "30 2 * * *", "Europe/Berlin", ["00:30"]),
        ("2026-10-24T22:00", "0 * * * *", "Europe/Berlin", ["23:00", "00:00", "01:00", "02:00", "03:00", "04:00"]),
        ("2026-04-23T21:00", "0 0 * * *", "Africa/Cairo", ["22:00"]),
    ],
)
async def test_a_day_on_which_clocks_change_begins_each_time_once(
    store: Store, at: str, cron: str, zone: str, times: list[str]
) -> None:
    wanted = NewSchedule(name="day", template="t", cron=cron, time_zone=zone)
    assert await _day(store, at, wanted, 6 * 60) == times


@pytest.mark.parametrize(
    ("catch_up", "times"),
    [
        ("last", ["00:10", "00:20", "00:30", "00:50", "01:00"]),
        ("all", ["00:10", "00:20", "00:30", "00:40", "00:50", "01:00"]),
        ("none", ["00:10", "00:20", "00:30", "01:00"]),
    ],
)
async def test_what_no_server_saw_is_caught_up_as_wanted(store: Store, catch_up: str, times: list[str]) -> None:
    body = {"name": "missed", "template": "t", "cron": "*/10 * * * *", "catchUp": catch_up}
    wanted = msgspec.convert(body, NewSchedule)
    assert await _day(store, "2026-06-01T00:05", wanted, 60, pause=17) == times


async def test_a_changed_time_counts_from_now_on(store: Store) -> None:
    clock = _Clock("2026-06-01T00:05")
    schedules = Schedules(store.schedules, store.templates, SystemClock(), clock)
    await push(store, "t")
    made = await schedules.add("default", NewSchedule(name="a", template="t", cron="*/10 * * * *"))
    assert made.next_runs[0] == "2026-06-01T00:10:00Z"
    clock.now += 3600
    changed = await schedules.edit("default", "a", EditSchedule(cron="0 9 * * *", time_zone="America/New_York"))
    assert changed.next_runs[0] == "2026-06-01T13:00:00Z"
    assert await schedules.tick() == 0
    paused = await schedules.edit("default", "a", EditSchedule(paused=True))
    assert paused.next_runs == ()
    clock.now += 7 * 24 * 3600
    assert await schedules.tick() == 0
    clock.now -= 24 * 3600
    assert (await schedules.edit("default", "a", EditSchedule(paused=False))).next_runs[0] == "2026-06-07T13:00:00Z"


async def test_a_clock_that_is_set_back_begins_nothing_twice(store: Store) -> None:
    clock = _Clock("2026-06-01T00:59")
    schedules = Schedules(store.schedules, store.templates, SystemClock(), clock)
    await push(store, "t")
    made = await schedules.add("default", NewSchedule(name="a", template="t", cron="0 * * * *"))
    for step in (60, -300, 60, 60, 60, 60, 60):
        clock.now += step
        await schedules.tick()
    assert len(await store.schedules.fires(made.id, 9)) == 1
