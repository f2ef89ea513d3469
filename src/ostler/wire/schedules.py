"""Schedules: tasks that begin by the clock, and what became of each time."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.prompts import NAME
from ostler.wire.struct import Answer, Body
from ostler.wire.texts import Prompt

Overlap = Literal["skip", "queue", "cancelOld"]
CatchUp = Literal["last", "all", "none"]
FireState = Literal["waiting", "started", "skipped", "missed", "failed"]
MOST_JITTER = 3600

ScheduleName = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": NAME})]
_Jitter = Annotated[int, msgspec.Meta(ge=0, le=MOST_JITTER)]


class NewSchedule(Body, frozen=True, kw_only=True, omit_defaults=True):
    """When a task begins, and with which template."""

    name: ScheduleName
    cron: str | None = None
    """Five fields (minute, hour, day, month, weekday) or a word such as `@daily`; instead of `at`."""
    at: str | None = None
    """One time, in RFC 3339; instead of `cron`."""
    time_zone: str = "UTC"
    """What the fields of `cron` are read in, such as `Europe/Berlin`."""
    template: str
    """`name`, `name@tag` or `name@sha256:...`; the revision is chosen each time."""
    inputs: dict[str, Any] = msgspec.field(default_factory=dict)
    prompt: Prompt | None = None
    """Instead of the template's prompt."""
    overlap: Overlap = "skip"
    """If the task before is still at work: leave this time out, begin when it is over, or cancel it."""
    catch_up: CatchUp = "last"
    """After a time in which no server ran: begin the newest missed time (not older than an hour), all, or none."""
    jitter_seconds: _Jitter = 0
    """Begin up to so much later, always the same for one time."""
    paused: bool = False


class EditSchedule(Body, frozen=True, kw_only=True, omit_defaults=True):
    """What is to change; what is absent stays. Another time counts from now on."""

    cron: str | None = None
    at: str | None = None
    time_zone: str | None = None
    template: str | None = None
    inputs: dict[str, Any] | None = None
    prompt: Prompt | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    jitter_seconds: _Jitter | None = None
    paused: bool | None = None


class Schedule(Answer, frozen=True, kw_only=True):
    """A schedule as it is now."""

    id: str
    name: str
    cron: str | None = None
    at: str | None = None
    time_zone: str = "UTC"
    template: str
    inputs: dict[str, Any] = msgspec.field(default_factory=dict)
    prompt: str | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    jitter_seconds: int = 0
    paused: bool = False
    next_runs: tuple[str, ...] = ()
    """The next five, in UTC and without jitter; none while it is paused."""
    created_at: str


class ScheduleList(Answer, frozen=True, kw_only=True):
    """All of a project, by name."""

    items: tuple[Schedule, ...]


class ScheduleRun(Answer, frozen=True, kw_only=True):
    """One time of a schedule, and what became of it."""

    due: str
    """Without jitter."""
    state: FireState
    session: str | None = None
    """The session of the task that it began."""
    reason: str | None = None
    """Why there is none, if so."""


class ScheduleRuns(Answer, frozen=True, kw_only=True):
    """The last times of a schedule, the newest first."""

    items: tuple[ScheduleRun, ...]
