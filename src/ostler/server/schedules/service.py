"""Schedules at work: every server looks which times have come, and each time begins one task.

A time is a row. It is written in one transaction with the job that begins its task, and only by the server that moved
the schedule on; the session of the task has the time in its key, so a job that is done twice begins nothing twice.
"""

import asyncio
import time
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from ostler.base.clock import Clock
from ostler.base.errors import OstlerError
from ostler.base.errors.schedules import ScheduleExists, ScheduleNotFound
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.server.engine.protocol import NotDone, Retry, Work
from ostler.server.runners.placement import agent_anywhere
from ostler.server.runners.registry import Runners
from ostler.server.schedules.times import checked, fires_until, next_runs, next_time, shown
from ostler.server.sessions.live import Leases
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import Job
from ostler.server.store.schedules import FireJob, FireRow, ScheduleRow
from ostler.server.store.schedules import Schedules as Rows
from ostler.server.store.templates import Templates
from ostler.server.tasks.orders import session_of, spec_of
from ostler.server.templates.applying import startable, task_of
from ostler.wire.schedules import EditSchedule, NewSchedule, Schedule, ScheduleRun
from ostler.wire.tasks import CreateTask

log = Log(__name__)
_LONGEST_WAIT = 30.0
"""Other servers change schedules too, and clocks are set."""
_AFTER_ERROR = 5.0
_RUNS = 50
_DAYS = 24 * 3600.0
_WITHIN = 30 * _DAYS
_FEWEST_TRIES = 8
"""So often a time is tried, however old it is: the server may have been off for days."""
_JOB_SECONDS = 120.0
_OF_ITS_TASK = frozenset({"template", "inputs", "prompt"})
_LATER = 429
"""The project has as much as it may have; a time waits until there is room."""
_body = msgspec.json.Decoder(NewSchedule).decode
_job = msgspec.json.Decoder(FireJob).decode


class Schedules:
    """The schedules of this server's store."""

    def __init__(self, rows: Rows, templates: Templates, clock: Clock, now: Callable[[], float] = time.time) -> None:
        self._rows = rows
        self._templates = templates
        self._clock = clock
        self._now = now
        self._woken = asyncio.Event()
        self._background = Background(log, "schedules.crashed")
        self._has_failed = False
        """Whether a schedule stays due, because of what is wrong with it."""

    # What people do with them

    async def all(self, project: str) -> tuple[Schedule, ...]:
        """Those of a project, by name."""
        return tuple(self._shown(row) for row in await self._rows.all(project))

    async def one(self, project: str, name: str) -> Schedule:
        """One of them."""
        return self._shown(await self._row(project, name))

    async def check(self, project: str, wanted: NewSchedule) -> NewSchedule:
        """Raise if it is no time, or if its task could not begin as the template is now."""
        body = checked(wanted)
        await startable(self._templates, project, wanted.template)
        task = CreateTask(template=wanted.template, inputs=wanted.inputs, prompt=wanted.prompt)
        await task_of(self._templates, project, task, ())
        return body

    async def add(self, project: str, wanted: NewSchedule) -> Schedule:
        """One more, unless it makes no sense."""
        body = await self.check(project, wanted)
        row = ScheduleRow(
            id=new_id("sch"),
            project=project,
            name=wanted.name,
            body=msgspec.json.encode(body),
            due=next_time(body, self._second()),
            created_at=self._clock.now(),
        )
        if not await self._rows.add(row):
            raise ScheduleExists(name=wanted.name)
        self._woken.set()
        return self._shown(row)

    async def edit(self, project: str, name: str, wanted: EditSchedule) -> Schedule:
        """Change what is given; times count from now on, and nothing is caught up."""
        row = await self._row(project, name)
        changes = {key: value for key, value in msgspec.structs.asdict(wanted).items() if value is not None}
        if "cron" in changes or "at" in changes:
            changes = {"cron": None, "at": None, **changes}
        body = checked(replace(_body(row.body), **changes))
        if _OF_ITS_TASK & changes.keys():
            await self.check(project, body)
        row = replace(row, body=msgspec.json.encode(body), due=next_time(body, self._second()))
        if not await self._rows.change(row):
            raise ScheduleNotFound(name=name)
        self._woken.set()
        return self._shown(row)

    async def remove(self, project: str, name: str) -> None:
        """Forget one; its tasks go on."""
        row = await self._row(project, name)
        await self._rows.remove(project, row.id)

    async def runs(self, project: str, name: str) -> tuple[ScheduleRun, ...]:
        """Its last times."""
        row = await self._row(project, name)
        return tuple(map(_run, await self._rows.fires(row.id, _RUNS)))

    async def run_now(self, project: str, name: str) -> ScheduleRun:
        """Begin its task now, whatever time it is."""
        row = await self._row(project, name)
        fire = FireRow(schedule=row.id, due=self._second(), state="waiting")
        await self._rows.fire(row, row.due, [fire], self._now())
        return _run(fire)

    async def _row(self, project: str, name: str) -> ScheduleRow:
        row = await self._rows.find(project, name)
        if row is None:
            raise ScheduleNotFound(name=name)
        return row

    def _shown(self, row: ScheduleRow) -> Schedule:
        body = _body(row.body)
        runs = next_runs(body, self._second())
        fields = {field: getattr(body, field) for field in body.__struct_fields__}
        return Schedule(id=row.id, created_at=row.created_at, next_runs=runs, **fields)

    def _second(self) -> int:
        return int(self._now())

    # What the clock does with them

    def start(self, wake_engine: Callable[[], None]) -> None:
        """Look at the clock from now on."""
        self._background.spawn(self._follow(wake_engine))

    async def close(self) -> None:
        """Look no more."""
        await self._background.aclose(seconds=1.0)

    async def _follow(self, wake_engine: Callable[[], None]) -> None:
        while True:
            self._woken.clear()
            try:
                if await self.tick():
                    wake_engine()
                wait = await self._wait()
            except OstlerError as error:
                log.warning("schedules.store_away", reason=str(error))
                wait = _AFTER_ERROR
            except Exception as error:  # an edge: no error ends all schedules
                log.error("schedules.failed", exc_info=error)
                wait = _AFTER_ERROR
            try:
                async with asyncio.timeout(wait):
                    await self._woken.wait()
            except TimeoutError:
                continue

    async def _wait(self) -> float:
        due = await self._rows.next_due()
        least = _AFTER_ERROR if self._has_failed else 0.05
        return _LONGEST_WAIT if due is None else min(_LONGEST_WAIT, max(least, due - self._now()))

    async def tick(self) -> int:
        """Write down every time that has come; gives how many tasks that begins."""
        now, begun, self._has_failed = self._second(), 0, False
        for row in await self._rows.due(now):
            try:
                begun += await self._tick(row, now)
            except OstlerError:
                raise
            except Exception as error:  # an edge: whatever is wrong with one schedule stops no other
                self._has_failed = True
                log.error("schedules.schedule_failed", schedule=row.id, project=row.project, exc_info=error)
        return begun

    async def _tick(self, row: ScheduleRow, now: int) -> int:
        body = _body(row.body)
        fires = await asyncio.to_thread(fires_until, row, body, now)
        is_first = await self._rows.fire(row, next_time(body, now), fires, self._now())
        return sum(fire.state == "waiting" for fire in fires) if is_first else 0


def _run(fire: FireRow) -> ScheduleRun:
    return ScheduleRun(due=shown(fire.due), state=fire.state, session=fire.session, reason=fire.reason)


class Fires:
    """Begins the tasks of times that have come."""

    def __init__(self, sessions: Sessions, runners: Runners) -> None:
        self._rows = sessions.store.schedules
        self._sessions = sessions
        self._runners = runners

    @property
    def work(self) -> Work:
        """How an engine does it; a time that waits for the task before is asked for again."""
        return Work(run=self._do, retry=Retry(first=1.0, longest=15.0, within=_WITHIN), seconds=_JOB_SECONDS)

    async def _do(self, job: Job) -> None:
        with Leases():
            await self._settle(job)

    async def _settle(self, job: Job) -> None:
        wanted = _job(job.body)
        row = await self._rows.find(wanted.project, wanted.schedule)
        fires = [] if row is None else await self._rows.fires(row.id, 10 * _RUNS)
        fire = next((each for each in fires if each.due == wanted.due), None)
        if row is None or fire is None or fire.state != "waiting":
            return
        known = await self._sessions.store.find_session(row.project, fire.key)
        if known is not None:  # a server was killed between the task and this
            await self._rows.settle(replace(fire, state="started", session=known.id))
            return
        try:
            await self._rows.settle(await self._decided(row, fire, fires))
        except NotDone as error:
            if job.age < _WITHIN - _DAYS or job.tries < _FEWEST_TRIES:
                raise
            await self._rows.settle(replace(fire, state="failed", reason=str(error)))  # the engine gives up soon

    async def _decided(self, row: ScheduleRow, fire: FireRow, fires: list[FireRow]) -> FireRow:
        body = _body(row.body)
        if (reason := await self._held_back(row, body, fire, fires)) is not None:
            return replace(fire, state="skipped", reason=reason)
        return await self._begun(row, body, fire)

    async def _begun(self, row: ScheduleRow, body: NewSchedule, fire: FireRow) -> FireRow:
        labels = {"schedule": row.name}
        task = CreateTask(template=body.template, inputs=body.inputs, prompt=body.prompt, labels=labels)
        try:
            session = await self._begin(row.project, task, fire.key)
        except OstlerError as error:
            if error.status >= 500 or error.status == _LATER:
                raise NotDone(str(error)) from error
            return replace(fire, state="failed", reason=str(error))
        return replace(fire, state="started", session=session)

    async def _begin(self, project: str, task: CreateTask, key: str) -> str:
        """Begin a task whose session has this key; gives the session's id."""
        order = await task_of(self._sessions.store.templates, project, task, ())
        agent = await agent_anywhere(self._runners, order.worker.type)
        live, _ = await self._sessions.creation.create(
            project, replace(session_of(order, agent), key=key), spec_of(order)
        )
        return live.core.record.id

    async def _held_back(self, row: ScheduleRow, body: NewSchedule, fire: FireRow, fires: list[FireRow]) -> str | None:
        """Why a time begins nothing, if another task of its schedule is at work or waits."""
        earlier = [each for each in fires if fire.due - _WITHIN - _DAYS < each.due < fire.due]  # before that: given up
        waiting = [each for each in earlier if each.state == "waiting"]
        if body.overlap == "cancelOld":
            for each in waiting:
                await self._rows.settle(replace(each, state="skipped", reason="a later time came first"))
        elif waiting and body.catch_up == "all":
            raise NotDone("an earlier time of its schedule waits")
        elif waiting:
            return "an earlier time waits"
        for session in [each.session for each in earlier[:5] if each.session is not None]:
            if await self._is_at_work(row.project, session):
                if body.overlap == "skip":
                    return f"session {session} is at work"
                if body.overlap == "queue":
                    raise NotDone(f"session {session} is at work")
                await self._cancel(row.project, session)
        return None

    async def _cancel(self, project: str, session: str) -> None:
        try:
            live = await self._sessions.registry.live(project, session)
        except OwnedElsewhere as error:  # that server may take this job next
            raise NotDone(str(error)) from error
        await live.lifecycle.cancel()

    async def _is_at_work(self, project: str, session: str) -> bool:
        record = await self._sessions.store.find_session(project, session)
        return record is not None and record.status not in TERMINAL
