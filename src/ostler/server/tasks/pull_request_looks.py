"""Looks at open pull requests again while nobody does, so that whoever comes finds them as they are.

Each server looks at those of its own sessions; calmly, and ever more rarely while nothing becomes of one.
"""

import asyncio
import heapq
from contextlib import suppress

import msgspec

from ostler.base.errors import OstlerError, SessionNotFound
from ostler.base.errors.servers import OwnedElsewhere
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.server.runners.registry import Runners
from ostler.server.sessions.live import Leases
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.tasks.pull_requests import pull_request_of, refresh

log = Log(__name__)
_FIND_SECONDS = 600.0
"""How often all sessions are gone through for pull requests that nobody told of."""
_LONGEST_PAUSE = 1800.0
_MORE_RARELY = 1.5
_MOST_AT_ONCE = 4
_MOST_IN_A_ROUND = 20
_STOP_SECONDS = 2.0
_MARK = b'"pull_request":'


def is_open(state: SessionState) -> bool:
    """Whether something may become of a session's pull request that people want to see."""
    found = pull_request_of(state)
    return found is not None and found.state in {"open", "draft"} and not state.archived


class _Watched(msgspec.Struct):
    """One that is looked at."""

    project: str
    due: float
    pause: float


class PullRequestLooks:
    """Knows which pull requests are open, and when to look at each."""

    def __init__(self, runners: Runners, seconds: float) -> None:
        """`seconds` is the shortest time between two looks at one; 0 for no look at all."""
        self._runners = runners
        self._seconds = seconds
        self._watched: dict[str, _Watched] = {}
        self._woken = asyncio.Event()
        self._find_at = 0.0
        self._background = Background(log, "pull_requests.crashed")

    def start(self, sessions: Sessions) -> None:
        """Begin; after the sessions of an earlier server were taken over."""
        if self._seconds:
            self._background.spawn(self._run(sessions))

    def watch(self, session: SessionCore) -> None:
        """Look soon at the pull request of a session, if it has one then."""
        if self._seconds:
            self._add(session.id, session.record.project)
            self._woken.set()

    async def close(self) -> None:
        """Leave the rest to the next server."""
        await self._background.aclose(seconds=_STOP_SECONDS)

    def _add(self, session_id: str, project: str) -> None:
        due = asyncio.get_running_loop().time() + self._seconds
        self._watched[session_id] = _Watched(project=project, due=due, pause=self._seconds)

    async def _run(self, sessions: Sessions) -> None:
        clock = asyncio.get_running_loop()
        while True:
            self._woken.clear()
            try:
                if clock.time() >= self._find_at:
                    self._find_at = clock.time() + _FIND_SECONDS
                    await self._find(sessions)
                await self._round(sessions)
            except Exception as error:  # the edge of a background task
                log.error("pull_requests.failed", exc_info=error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), max(self._next() - clock.time(), self._seconds))
                await asyncio.sleep(min(1.0, self._seconds))  # several may end together

    def _next(self) -> float:
        return min((self._find_at, *(each.due for each in self._watched.values())))

    async def _find(self, sessions: Sessions) -> None:
        records = await sessions.store.sessions_in_state(lambda _, state: _MARK in state)
        ours = {record.id: record for record in records if sessions.ownership.is_ours(record)}
        for session_id, record in ours.items():
            if session_id not in self._watched and is_open(sessions.registry.state_of(record)[0]):
                self._add(session_id, record.project)
        for session_id in self._watched.keys() - ours.keys():
            del self._watched[session_id]

    async def _round(self, sessions: Sessions) -> None:
        now = asyncio.get_running_loop().time()
        due = [(each.due, name) for name, each in self._watched.items() if each.due <= now]
        names = [name for _, name in heapq.nsmallest(_MOST_IN_A_ROUND, due)]
        room = asyncio.Semaphore(_MOST_AT_ONCE)
        async with asyncio.TaskGroup() as looks:
            for name in names:
                looks.create_task(self._look(sessions, name, room))

    async def _look(self, sessions: Sessions, session_id: str, room: asyncio.Semaphore) -> None:
        watched = self._watched[session_id]
        async with room:
            try:
                is_news = await self._looked_at(sessions, session_id, watched)
            except (SessionNotFound, OwnedElsewhere):
                self._watched.pop(session_id, None)
                return
            except OstlerError as error:
                log.info("pull_request.not_looked_at", session_id=session_id, reason=str(error))
                is_news = False
            except Exception as error:  # of one, and the others are still looked at
                log.error("pull_request.look_failed", session_id=session_id, exc_info=error)
                is_news = False
        longest = max(_LONGEST_PAUSE, self._seconds)
        watched.pause = self._seconds if is_news else min(watched.pause * _MORE_RARELY, longest)
        watched.due = asyncio.get_running_loop().time() + watched.pause

    async def _looked_at(self, sessions: Sessions, session_id: str, watched: _Watched) -> bool:
        """Whether something was new; one of which nothing more can be new is forgotten."""
        with Leases():
            live = await sessions.registry.live(watched.project, session_id)
            if not is_open(live.core.state):
                if watched.pause > self._seconds:  # else it may not be written down yet
                    self._watched.pop(session_id, None)
                return False
            is_news = await refresh(self._runners.workspaces(live.core.record.runner), live.core)
            if not is_open(live.core.state):
                self._watched.pop(session_id, None)
            return is_news
