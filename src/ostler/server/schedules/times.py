"""The times of schedules: one calendar for every server and every database, and nothing of it reads a clock."""

import hashlib
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from ostler.base.errors import Unprocessable
from ostler.base.ids import NO_NAME, is_name
from ostler.server.store.schedules import FireRow, ScheduleRow
from ostler.wire.schedules import NewSchedule

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS = 5
_PUNCTUAL = 60
"""So many seconds late a time is not missed."""
_LAST_WITHIN = 3600
"""The newest missed time is begun if it is not older."""
_LOOKED_BACK = 7 * 24 * 3600
"""What was missed before that is forgotten."""
_MOST_MISSED = 100


def checked(wanted: NewSchedule) -> NewSchedule:
    """A schedule whose times can be told; all that is wrong with them is told at once."""
    errors: dict[str, list[str]] = {} if is_name(wanted.name) else {"name": [NO_NAME]}
    if (wanted.cron is None) == (wanted.at is None):
        errors["cron"] = ["or at is needed, and not both"]
    zone = _zone(wanted.time_zone)
    if zone is None:
        errors["timeZone"] = [f"'{wanted.time_zone[:80]}' is no time zone: use a name such as Europe/Berlin or UTC"]
    if wanted.cron is not None and (reason := _cron_fault(wanted.cron)) is not None:
        errors["cron"] = [f"'{wanted.cron[:80]}' {reason}"]
    if wanted.at is not None and _instant(wanted.at) is None:
        errors["at"] = [f"'{wanted.at[:80]}' is no time: use one such as 2030-01-31T09:00:00Z"]
    if errors:
        reason = "; ".join(f"{field} {reasons[0]}" for field, reasons in errors.items())
        raise Unprocessable(reason=f"{reason}.", errors=errors)
    return wanted


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):  # no name, none that is known, or a folder
        return None


def _cron_fault(cron: str) -> str | None:
    expression = NICKNAMES.get(cron, cron)
    if len(expression.split()) != _FIELDS:
        return "must have five fields: minute, hour, day, month, weekday"
    try:
        next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        return f"is no schedule: {error}"
    except StopIteration:
        return "never comes"
    return None


def _instant(at: str) -> int | None:
    try:
        found = datetime.fromisoformat(at)
        return int(found.astimezone(UTC).timestamp()) if found.tzinfo is not None else None
    except (ValueError, OverflowError):  # also one that is in another millennium in UTC
        return None


def times_after(wanted: NewSchedule, after: int) -> Iterator[int]:
    """The times after one, in order: fixed times once a day, at the end of a gap and the first of an overlap."""
    if wanted.at is not None:
        at = _instant(wanted.at)
        return iter([at] if at is not None and at > after else [])
    start = datetime.fromtimestamp(after, ZoneInfo(wanted.time_zone))
    return (int(found.timestamp()) for found in CronSim(NICKNAMES.get(wanted.cron or "", wanted.cron or ""), start))


def next_time(wanted: NewSchedule, after: int) -> int | None:
    """The first time after one; None if there is none, or it is paused."""
    return None if wanted.paused else next(times_after(wanted, after), None)


def shown(second: int) -> str:
    """A time for people and programs."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def next_runs(wanted: NewSchedule, now: int, count: int = 5) -> tuple[str, ...]:
    """The next few times."""
    return () if wanted.paused else tuple(map(shown, islice(times_after(wanted, now), count)))


def fires_until(row: ScheduleRow, wanted: NewSchedule, now: int) -> list[FireRow]:
    """What becomes of the times of a schedule that have times since it was looked at."""
    if row.due is None or row.due > now:
        return []
    times: deque[int] = deque(maxlen=_MOST_MISSED)
    if row.due >= now - _LOOKED_BACK:
        times.append(row.due)
    for time in times_after(wanted, max(row.due, now - _LOOKED_BACK)):
        if time > now:
            break
        times.append(time)
    return [_fire(row, wanted, time, now, is_newest=time == times[-1]) for time in times]


def _fire(row: ScheduleRow, wanted: NewSchedule, time: int, now: int, *, is_newest: bool) -> FireRow:
    late = now - time
    begins = (
        (late <= _PUNCTUAL and is_newest)
        or wanted.catch_up == "all"
        or (wanted.catch_up == "last" and is_newest and late <= _LAST_WITHIN)
    )
    if not begins:
        return FireRow(schedule=row.id, due=time, state="missed", reason=f"no server ran; seen {late} seconds later")
    return FireRow(schedule=row.id, due=time, state="waiting", after=_jitter(row.id, time, wanted.jitter_seconds))


def _jitter(schedule: str, time: int, most: int) -> int:
    """Always the same for one time, so that a restart does not move it."""
    digest = hashlib.sha256(f"{schedule}:{time}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % (most + 1)
