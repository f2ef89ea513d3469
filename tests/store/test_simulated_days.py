"""Days on which clocks are changed, lived through by servers with a clock of their own: each time begins one task."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from ostler.base.clock import SystemClock
from ostler.server.schedules.service import Schedules
from ostler.server.store.postgres.store import PostgresStore
from ostler.server.store.protocol import Store
from ostler.server.store.schedules import FIRE
from ostler.server.store.sqlite.store import SqliteStore
from ostler.wire.schedules import NewSchedule
from tests.support.databases import shared_cluster
from tests.support.pushing import push

SPRING, AUTUMN = "2026-03-29", "2026-10-25"
"""Of Berlin: an hour is left out at 01:00Z, and one comes twice, from 00:00Z and from 01:00Z on."""
DAYS = [
    ("Europe/Berlin", SPRING, "30 2 * * *", ["01:00"]),
    ("Europe/Berlin", SPRING, "0 */2 * * *", ["23:00", *[f"{hour:02}:00" for hour in range(2, 21, 2)]]),
    ("Europe/Berlin", SPRING, "0 * * * *", 23),
    ("Europe/Berlin", SPRING, "*/30 * * * *", 46),
    ("Europe/Berlin", AUTUMN, "30 2 * * *", ["00:30"]),
    ("Europe/Berlin", AUTUMN, "0 * * * *", 25),
    ("Europe/Berlin", AUTUMN, "*/30 * * * *", 50),
    ("America/New_York", "2026-03-08", "30 2 * * *", ["07:00"]),
    ("America/New_York", "2026-11-01", "30 1 * * *", ["05:30"]),
    ("Australia/Lord_Howe", "2026-10-04", "*/15 * * * *", 94),
    ("Australia/Lord_Howe", "2026-04-05", "*/15 * * * *", 98),
    ("Africa/Cairo", "2026-04-24", "0 0 * * *", ["22:00"]),
]


async def _stores(kind: str, folder: Path) -> list[Store]:
    """One store, or the same one as two servers have it."""
    if kind == "sqlite":
        return [await SqliteStore.open(folder / "ostler.db", sync="normal", boot="now")]
    url = shared_cluster().new_database()
    for name in ("a", "b"):
        (folder / name).mkdir()
    return [await PostgresStore.open(url, folder / name, boot="now") for name in ("a", "b")]


@pytest.mark.lane("server")
@pytest.mark.parametrize("kind", ["sqlite", "two servers"])
async def test_every_time_of_a_day_on_which_clocks_are_changed_begins_one_task(kind: str, tmp_path: Path) -> None:
    stores = await _stores(kind, tmp_path)
    await push(stores[0], "tea")
    for number, (zone, day, cron, expected) in enumerate(DAYS):
        wanted = NewSchedule(
            name=f"day-{number}", template="tea", cron=cron, time_zone=zone, overlap="queue", catch_up="all"
        )
        found = await _lived_through(stores, wanted, day)
        assert (found if isinstance(expected, list) else len(found)) == expected, (zone, day, cron, found)
    for store in stores:
        await store.close()


async def _lived_through(stores: list[Store], wanted: NewSchedule, day: str) -> list[str]:
    """The times in UTC at which tasks began on a day of the schedule's zone; all servers look at every one."""
    begin, end = _bounds(wanted.time_zone, day)
    now = begin - 1
    servers = [
        Schedules(store.schedules, store.templates, SystemClock(), now=lambda: float(now)) for store in (stores * 2)[:2]
    ]
    made = await servers[0].add("default", wanted)
    rows = stores[0].schedules
    while (due := await rows.next_due()) is not None and due < end:
        now = due
        begun = await asyncio.gather(*(server.tick() for server in servers))
        assert sum(begun) == 1, "one server begins it"
    fires = await rows.fires(made.id, 1000)
    jobs = await stores[0].jobs.take("me", [FIRE], 1000, seconds=60.0)
    assert len(jobs) == len(fires)
    for job in jobs:
        await stores[0].jobs.finish(job.key)
    await servers[0].remove("default", made.id)
    return [
        datetime.fromtimestamp(fire.due, UTC).strftime("%H:%M") for fire in sorted(fires, key=lambda fire: fire.due)
    ]


def _bounds(zone: str, day: str) -> tuple[int, int]:
    """A day from midnight to midnight there."""
    first = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone))
    after = (first + timedelta(days=1)).replace(tzinfo=ZoneInfo(zone))
    return int(first.timestamp()), int(after.timestamp())
