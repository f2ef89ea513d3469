"""The operations on schedules; part of the table."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.client.calls import Call, delete, get, patch, post, segment
from ostler.wire.schedules import (
    CatchUp,
    EditSchedule,
    NewSchedule,
    Overlap,
    Schedule,
    ScheduleList,
    ScheduleRun,
    ScheduleRuns,
)

_schedule = msgspec.json.Decoder(Schedule).decode


def list_schedules() -> Call[ScheduleList]:
    """All schedules, by name, with their next times."""
    return get("/schedules", msgspec.json.Decoder(ScheduleList).decode)


def create_schedule(
    name: str,
    template: str,
    *,
    cron: str | None = None,
    at: str | None = None,
    time_zone: str = "UTC",
    inputs: Mapping[str, Any] | None = None,
    prompt: str | None = None,
    overlap: Overlap = "skip",
    catch_up: CatchUp = "last",
    jitter_seconds: int = 0,
    paused: bool = False,
) -> Call[Schedule]:
    """Begin a task of a template again and again, or once at a time."""
    body = NewSchedule(
        name=name,
        template=template,
        cron=cron,
        at=at,
        time_zone=time_zone,
        inputs=dict(inputs or {}),
        prompt=prompt,
        overlap=overlap,
        catch_up=catch_up,
        jitter_seconds=jitter_seconds,
        paused=paused,
    )
    return post("/schedules", _schedule, body)


def show_schedule(name: str) -> Call[Schedule]:
    """One schedule, by id or name."""
    return get(f"/schedules/{segment(name)}", _schedule)


def edit_schedule(
    name: str,
    *,
    template: str | None = None,
    cron: str | None = None,
    at: str | None = None,
    time_zone: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    prompt: str | None = None,
    overlap: Overlap | None = None,
    catch_up: CatchUp | None = None,
    jitter_seconds: int | None = None,
    paused: bool | None = None,
) -> Call[Schedule]:
    """Change a schedule, pause it or let it go on; what is not given stays."""
    body = EditSchedule(
        template=template,
        cron=cron,
        at=at,
        time_zone=time_zone,
        inputs=None if inputs is None else dict(inputs),
        prompt=prompt,
        overlap=overlap,
        catch_up=catch_up,
        jitter_seconds=jitter_seconds,
        paused=paused,
    )
    return patch(f"/schedules/{segment(name)}", _schedule, body)


def remove_schedule(name: str) -> Call[None]:
    """Forget a schedule; tasks that it began go on."""
    return delete(f"/schedules/{segment(name)}")


def run_schedule(name: str) -> Call[ScheduleRun]:
    """Begin its task now."""
    return post(f"/schedules/{segment(name)}/run", msgspec.json.Decoder(ScheduleRun).decode)


def list_schedule_runs(name: str) -> Call[ScheduleRuns]:
    """The last times of a schedule and what became of each, the newest first."""
    return get(f"/schedules/{segment(name)}/runs", msgspec.json.Decoder(ScheduleRuns).decode)
