"""How a session pauses, goes on and ends.

Every decision is taken and put into the log's queue without an await in between, so two clients can never both win.
"""

import asyncio

from ostler.base.errors import InvalidTransition
from ostler.base.errors.turns import TurnUnderWay
from ostler.server.sessions import drafts
from ostler.server.sessions.agent import SessionAgent
from ostler.server.sessions.continuing import open_items
from ostler.server.sessions.log.statuses import TRANSITIONS
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.turns import Turns, comments_back
from ostler.server.sessions.work.chores import REQUEST_SECONDS, Chores
from ostler.server.sessions.work.limit_wait import LimitWait
from ostler.server.store.acting import deed
from ostler.wire.events import SessionStatus
from ostler.wire.running import Draft

_INTERRUPT_SECONDS = 5.0
_WRAP_UP = (
    "This session is about to be stopped. Begin nothing new: finish the step that you are at, leave the files in a "
    "state that others can go on from, say in a sentence or two what is done and what is not, and end your turn. You "
    "are interrupted in {seconds:g} seconds."
)


class Lifecycle:
    """The status of one session."""

    def __init__(
        self,
        session: SessionCore,
        agent: SessionAgent,
        chores: Chores,
        turns: Turns,
        limit: LimitWait,
        wrap_up_seconds: float,
    ) -> None:
        self._session = session
        self._agent = agent
        self._chores = chores
        self._turns = turns
        self._limit = limit
        self._wrap_up_seconds = wrap_up_seconds
        self._hurried = asyncio.Event()

    async def pause(self) -> None:
        """Freeze the agent where it stands; prompts wait until it goes on."""
        self._agent.refuse_if_away()
        await self._move("pausing", "be paused")
        await self.finish_pause()

    async def finish_pause(self) -> None:
        """The second half of a pause."""
        if self._agent.connection is not None:
            await self._agent.connection.freeze()
        await self._move("paused", "be paused")

    async def resume(self) -> None:
        """Let a paused session go on."""
        self._agent.refuse_if_away()
        await self._move("resuming", "be resumed")
        await self.finish_resume()

    async def finish_resume(self) -> None:
        """The second half of a resume."""
        if self._agent.connection is not None:
            await self._agent.connection.thaw()
        await self._move("running", "be resumed")
        await self._turns.begin_next()

    async def go_on_now(self) -> None:
        """Wait no longer for the end of a limit: what would be done then is done now."""
        self._session.refuse_if_over("prompts")
        await self._limit.go_on_now()
        await self._turns.go_on()

    async def restart(self, *, force: bool) -> None:
        """End the agent's process, so that the next turn begins a new one, which goes on with the agent's memory."""
        self._session.refuse_if_over("restarts")
        self._agent.refuse_if_away()
        if self._session.state.status != "running":
            status = self._session.state.status
            hint = "resume it first" if status in {"pausing", "paused"} else "try again when it runs"
            raise InvalidTransition(session=self._session.id, status=status, verb=f"restart its agent; {hint}")
        self._refuse_restart(force)
        await self._chores.alone(lambda: self._restart(force=force), patience=REQUEST_SECONDS)
        await self._turns.go_on()

    def _refuse_restart(self, force: bool) -> None:
        turn = self._session.state.turn
        if turn is not None and not force:
            raise TurnUnderWay(session=self._session.id, turn=turn.turn_id)

    async def _restart(self, *, force: bool) -> None:
        self._refuse_restart(force)
        if self._session.state.turn is not None and self._agent.connection is not None:
            self._session.interrupted()
            await self._agent.connection.interrupt()
            await self._turn_over(_INTERRUPT_SECONDS, unless_asked=False)
        await self._agent.disconnect(force=force)
        await self._session.note(
            deed(*await self._turn_cut_off("restarted"), *self._limit.dropped(), drafts.restarted())
        )

    async def finish_stop(self) -> None:
        """Go on with a stop that an earlier server began."""
        if not self._session.is_ending:  # nobody asked for it again meanwhile
            self._session.end(self._wind_down("stopped", "stopped", force=False))

    async def stop(self) -> None:
        """Ask the agent to wrap up, then end the session."""
        await self._end("stopping", "stopped", force=False)

    async def cancel(self) -> None:
        """End the session at once."""
        await self._end("cancelled", "cancelled", force=True)

    async def _end(self, first: SessionStatus, final: SessionStatus, *, force: bool) -> None:
        if self._session.shown.status == final:  # not before it is durable: whoever asked is told what is shown
            return
        ending = self._session.ending
        if ending is None or ending.done():
            if self._session.state.status == first:
                first = final  # as an earlier server said, which had no time to do it
            self._check_move(first, "be stopped" if first == "stopping" else "be cancelled")
            ending = self._session.end(self._wind_down(first, final, force=force))
        elif force:
            self._hurried.set()
            await self._agent.disconnect(force=True)
            await self._chores.stop()
        await asyncio.shield(ending)

    async def _wind_down(self, first: SessionStatus, final: SessionStatus, *, force: bool) -> None:
        self._agent.stay_awake()
        paused = self._session.state.status in {"pausing", "paused"}
        if first != final:
            await self._session.log.append(deed(drafts.status(first)))
        if force:
            await self._chores.stop()
        elif self._agent.connection is not None and (paused or first == final):
            await self._agent.connection.thaw()
        if not force:
            await self._wrap_up(asks=first != final)
        await self._agent.disconnect(force=force)
        waiting = {entry.prompt_id for entry in self._session.state.queue}
        cleared = [drafts.queue(()), *comments_back(self._session, waiting)] if waiting else []
        if cut := [*await self._turn_cut_off("interrupted"), *cleared]:
            await self._session.note(deed(*cut))
        if not force:
            await self._chores.finish()
        # else it is over, or the next server goes on
        if not self._session.state.ended and not self._session.is_leaving:
            await self._session.note(deed(drafts.status(final), drafts.ended_by_us()))

    async def _wrap_up(self, *, asks: bool) -> None:
        """Let the agent end its turn; one that takes too long, or waits for a human, is interrupted."""
        telling = self._session.background.spawn(self._tell_to_wrap_up()) if asks else None
        await self._turn_over(self._wrap_up_seconds, unless_asked=True)
        if telling is not None:
            telling.cancel()
            await asyncio.wait([telling])
        if self._agent.connection is not None and self._session.state.turn is not None and not self._hurried.is_set():
            self._session.interrupted()
            await self._agent.connection.interrupt()
            await self._turn_over(_INTERRUPT_SECONDS, unless_asked=False)

    async def _tell_to_wrap_up(self) -> None:
        """An agent that cannot hear it in the middle of its turn has the same time."""
        if not self._session.state.asks and self._wrap_up_seconds > 0:
            await self._turns.tell(_WRAP_UP.format(seconds=self._wrap_up_seconds))

    async def _turn_over(self, seconds: float, *, unless_asked: bool) -> None:
        """Wait for the end of the turn, but not for ever."""
        hurry = asyncio.ensure_future(self._hurried.wait())
        waiting = asyncio.ensure_future(self._until_over(unless_asked=unless_asked))
        try:
            await asyncio.wait({hurry, waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()
            waiting.cancel()

    async def _until_over(self, *, unless_asked: bool) -> None:
        while self._session.state.turn is not None and self._agent.connection is not None:
            if unless_asked and self._session.state.asks:
                return
            await self._session.tail.wait(self._session.last, timeout=_INTERRUPT_SECONDS)

    async def _turn_cut_off(self, reason: str) -> list[Draft]:
        left = await open_items(self._session)
        state = self._session.state
        ended = [drafts.turn_ended(state.turn.turn_id, "interrupted", reason)] if state.turn else []
        return [*left, *drafts.asks_dropped(state.asks, reason), *ended]

    async def delete(self) -> None:
        """End everything; the caller removes what is stored."""
        self._session.log.mark_deleted()
        self._agent.stay_awake()
        await self._chores.stop()
        await self._agent.disconnect(force=True)
        self._session.log.feed.close()

    async def shut_down(self) -> None:
        """The server stops for good: end the turn and the agent, keep the session."""
        self.leave()
        await self._chores.stop()
        await self._agent.disconnect(force=False)
        if cut := await self._turn_cut_off("server_stopping"):
            await self._session.log.append(cut)

    def leave(self) -> None:
        """The server stops: begin nothing more; another server goes on."""
        self._session.leave()
        self._agent.stay_awake()
        self._chores.leave()

    async def _move(self, status: SessionStatus, verb: str) -> None:
        self._check_move(status, verb)
        await self._session.log.append(deed(drafts.status(status)))

    def _check_move(self, status: SessionStatus, verb: str) -> None:
        current = self._session.state.status
        if status not in TRANSITIONS[current]:
            raise InvalidTransition(session=self._session.id, status=current, verb=verb)
