"""What a session's workspace needs around its turns, and who sees to it: one thing at a time, and no turn meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from ostler.base.errors import InvalidTransition
from ostler.base.logs import Log
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.pipeline import Pipeline

log = Log(__name__)
_FINISH_SECONDS = 120.0
REQUEST_SECONDS = 30.0
"""How long somebody who asks for an answer waits for work that is not theirs."""
_PREPARED = frozenset({"queued", "provisioning"})
T = TypeVar("T")


def is_due(state: SessionState) -> bool:
    """Whether the log says that something is to be done before the next turn."""
    if state.workspace is None or state.is_between_runners:
        return state.status in _PREPARED
    waits = state.restoring is not None or state.settled < state.turn_count
    return state.turn is None and state.status in {"running", "paused"} and waits


def files_in_use(session_id: str) -> InvalidTransition:
    """That other work on a session's files takes longer than a request waits."""
    verb = "do this until that is done. Try again later, or cancel the session"
    return InvalidTransition(session=session_id, status="at work on its files", verb=verb)


class Chores:
    """The work of one session."""

    def __init__(self, session: SessionCore, agent: SessionAgent, work: Pipeline) -> None:
        self._session = session
        self._agent = agent
        self._work = work
        self._lock = asyncio.Lock()
        self._current: asyncio.Task[object] | None = None
        self._tried = -1
        """The turn after which it was tried to settle; if that failed, it is not tried for ever."""
        self._is_over = False

    @property
    def are_blocking(self) -> bool:
        """Whether the next turn must wait."""
        return self._lock.locked() or self.are_due

    @property
    def are_due(self) -> bool:
        """Whether there is something to do."""
        state = self._session.state
        waits = is_due(state) and not self._is_over and not self._agent.is_away
        is_new = state.workspace is None or state.is_between_runners or state.restoring is not None
        return waits and (is_new or self._tried != state.turn_count)

    def keep(self) -> None:
        """Have what there is now uploaded, where that is wanted; nobody waits for it."""
        if not self._is_over and (uploads := self._work.uploads) is not None:
            uploads.keep(self._session)

    async def do(self, *, patience: float | None = None) -> None:
        """Do what is due; whoever comes meanwhile waits for it, for so many seconds."""
        async with self._turn_of(patience):
            if self.are_due:
                await self._watched(self._due)

    async def alone(self, work: Callable[[], Awaitable[T]], *, patience: float | None = None) -> T:
        """Do something else while no turn can begin; it is done to its end even if the caller gives up.

        What is being done now is waited for, for so many seconds: it may wait for a remote that never answers.
        """
        async with self._turn_of(patience):
            try:
                return await self._watched(work)
            except asyncio.CancelledError as error:
                if not self._is_ended_by_others():
                    raise
                verb = "finish what was asked for; look at what is there, and ask again if it is still wanted"
                raise InvalidTransition(session=self._session.record.id, status="being ended", verb=verb) from error

    @asynccontextmanager
    async def _turn_of(self, patience: float | None) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(patience):
                await self._lock.acquire()
        except TimeoutError as error:
            raise files_in_use(self._session.id) from error
        try:
            yield
        finally:
            self._lock.release()

    def _is_ended_by_others(self) -> bool:
        """Whether the work was broken off with the session, while its caller still waits for an answer."""
        caller = asyncio.current_task()
        is_wanted = caller is not None and not caller.cancelling()
        return is_wanted and self._is_over and not self._session.is_leaving

    async def before_turn(self) -> None:
        """What is done between the beginning of a turn and its prompt."""
        await self._work.before_turn(self._session)

    async def finish_rewind(self) -> None:
        """The second half of a rewind; for work that is alone already."""
        await self._work.restore(self._session)

    async def finish(self) -> None:
        """Let what is being done come to its end, keep and deliver what there is, and begin nothing more."""
        try:
            if self._session.state.workspace is not None and not self._is_over:
                async with asyncio.timeout(_FINISH_SECONDS), self._lock:
                    await self._watched(lambda: self._work.wrap_up(self._session))
        except TimeoutError:
            log.warning("session.not_wrapped_up", session_id=self._session.record.id, seconds=_FINISH_SECONDS)
        except asyncio.CancelledError:
            if not self._is_over:  # else somebody was in a hurry
                raise
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Break off what is being done, and begin nothing more."""
        self.leave()
        if self._current is not None:
            await asyncio.wait([self._current])

    def leave(self) -> None:
        """Break it off without waiting; another server begins it again."""
        if self._current is not None and not self._is_over:  # a second time it would cut off the cleaning up
            self._current.cancel()
        self._is_over = True

    async def dispose(self) -> None:
        """Remove everything; what cannot be removed now is removed when the server starts again."""
        try:
            await self._work.dispose(self._session)
        except Exception as error:  # the session is deleted already, so nobody could try again
            log.error("workspace.not_removed", session_id=self._session.record.id, exc_info=error)

    async def _due(self) -> None:
        state = self._session.state
        if state.is_between_runners:
            await self._work.arrive(self._session)
        elif state.workspace is None:
            await self._work.prepare(self._session)
        elif state.restoring is not None:
            await self._work.restore(self._session)
        else:
            self._tried = self._session.state.turn_count
            if not await self._work.settle(self._session, self._agent):
                self._tried = -1

    async def _watched(self, work: Callable[[], Awaitable[T]]) -> T:
        task = asyncio.ensure_future(work())
        self._session.hold()
        task.add_done_callback(lambda _: self._session.release())
        self._current = task
        try:
            return await asyncio.shield(task)
        finally:
            if self._current is task:
                self._current = None
            self._work.paused()
