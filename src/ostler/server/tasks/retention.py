"""Removes workspaces of sessions that ended long ago, are too many, or take too much room; the sessions stay."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Self

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import OstlerError, WorkspaceNotFound
from ostler.base.errors.runners import RunnerUnavailable
from ostler.base.logs import Log
from ostler.base.settings import Settings
from ostler.base.tasks import Background
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.wire.workspace_events import WorkspaceRemovedData

log = Log(__name__)
_PAUSE_SECONDS = 600.0
_GATHER_SECONDS = 0.5
_DAY_SECONDS = 86400.0
_STOP_SECONDS = 2.0


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of workspaces whose sessions have ended; 0 means no limit."""

    count: int = 0
    days: float = 0.0
    bytes: int = 0

    @classmethod
    def reading(cls, settings: Settings) -> Self:
        """As the settings say."""
        return cls(
            count=settings.kept_workspaces, days=settings.kept_workspaces_days, bytes=settings.kept_workspaces_bytes
        )


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace whose session has ended."""

    project: str
    session: str
    workspace: str
    ended_at: str
    runner: str | None = None
    size: int = 0


def too_much(found: Sequence[Ended], keep: Keep, now: str) -> Iterator[tuple[Ended, WorkspaceRemovedData]]:
    """What goes, and why; of two the one that ended first."""
    room = 0
    for number, each in enumerate(sorted(found, key=lambda each: each.ended_at, reverse=True), start=1):
        room += each.size
        if keep.days and _seconds_between(each.ended_at, now) > keep.days * _DAY_SECONDS:
            yield each, _because(each, "age", f"its session ended more than {keep.days:g} days ago")
        elif keep.count and number > keep.count:
            yield each, _because(each, "count", f"{keep.count} newer workspaces of ended sessions are kept")
        elif keep.bytes and room > keep.bytes:
            yield each, _because(each, "disk", f"workspaces of ended sessions may take {keep.bytes} bytes")


def _because(each: Ended, reason: str, message: str) -> WorkspaceRemovedData:
    data = {"workspace_id": each.workspace, "reason": reason, "message": message}
    return msgspec.convert(data, WorkspaceRemovedData)


def _seconds_between(one: str, other: str) -> float:
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()


class Retention:
    """Looks now and then, and soon after a session has ended."""

    def __init__(self, runners: Runners, keep: Keep, clock: Clock) -> None:
        self._runners = runners
        self._keep = keep
        self._clock = clock
        self._woken = asyncio.Event()
        self._background = Background(log, "retention.crashed")

    def start(self, sessions: Sessions) -> None:
        """Begin; after the sessions of an earlier server were taken over."""
        self._background.spawn(self._run(sessions))

    def wake(self) -> None:
        """A session has ended."""
        self._woken.set()

    async def close(self) -> None:
        """Leave the rest to the next server."""
        await self._background.aclose(seconds=_STOP_SECONDS)

    async def _run(self, sessions: Sessions) -> None:
        while True:
            self._woken.clear()
            try:
                await self._sweep(sessions)
            except Exception as error:  # the edge of a background task
                log.error("retention.failed", exc_info=error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), _PAUSE_SECONDS)
                await asyncio.sleep(_GATHER_SECONDS)

    async def _sweep(self, sessions: Sessions) -> None:
        if self._keep == Keep():
            return
        records = filter(sessions.ownership.is_ours, await sessions.store.ended_with_workspace(TERMINAL))
        found = []
        for record in records:
            state = sessions.registry.state_of(record)[0]
            if record.is_in_place:  # the files are a person's own
                continue
            if (workspace := state.workspace_id) is not None and state.ended_at is not None:
                found.append(
                    Ended(
                        project=record.project,
                        session=record.id,
                        workspace=workspace,
                        ended_at=state.ended_at,
                        runner=record.runner,
                    )
                )
        if self._keep.bytes:
            sizes = await self._sizes(found)
            found = [msgspec.structs.replace(each, size=sizes.get(each.workspace, 0)) for each in found]
        for each, data in too_much(found, self._keep, self._clock.now()):
            with Leases():
                await self._remove(await sessions.registry.live(each.project, each.session), data)

    async def _sizes(self, found: Sequence[Ended]) -> Mapping[str, int]:
        sizes: dict[str, int] = {}
        for each in found:
            with suppress(OstlerError):  # what is lost takes no room
                sizes[each.workspace] = await self._runners.workspaces(each.runner).size(each.workspace)
        return sizes

    async def _remove(self, live: LiveSession, data: WorkspaceRemovedData) -> None:
        await live.chores.alone(lambda: self._remove_alone(live.core, data))

    async def _remove_alone(self, session: SessionCore, data: WorkspaceRemovedData) -> None:
        """The log first: what a killed server did not come to is removed by the next one."""
        if session.state.workspace_id != data.workspace_id:
            return
        await session.note([drafts.removed(data)])
        with suppress(WorkspaceNotFound, RunnerUnavailable):  # a runner that is away removes it when it is back
            await self._runners.workspaces(session.record.runner).destroy(data.workspace_id)
        log.info("workspace.removed", session_id=session.id, reason=data.reason)
