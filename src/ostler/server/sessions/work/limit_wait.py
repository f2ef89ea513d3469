"""Waits for the end of a limit that stopped the agent, and goes on with the session then.

What is waited for is in the log; so a server that ends meanwhile leaves it to the next, and one that has lost the
session cannot write that it goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from msgspec.structs import replace

from ostler.base.errors import StoreUnavailable
from ostler.base.errors.turns import NotWaiting
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.server.sessions import drafts
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.state import is_waited_for
from ostler.server.sessions.session import SessionCore
from ostler.server.store.acting import acting, deed, marked
from ostler.wire.events import ErrorData, ItemCompletedData, ItemStartedData
from ostler.wire.items import QueueEntry
from ostler.wire.parts import PromptPart, TextPart
from ostler.wire.running import Draft
from ostler.wire.workspace_events import SessionLimitData

log = Log(__name__)
_GO_ON = "The limit that stopped you is over. Go on where you stopped."
_MOST_ATTEMPTS = 5
"""So many turns in a row may end by a limit before the agent has done anything; then a person decides."""
_LOOK_SECONDS = 60.0
"""A machine that was suspended, or whose clock was set, is late by no more than this."""
_RETRY_SECONDS = 1.0
_SLACK_SECONDS = 3.0
"""Clocks differ: who comes a moment too early is refused once more, and then the time is past."""


class LimitWait:
    """The waiting of one session."""

    def __init__(self, session: SessionCore, reads: Reads, *, is_wanted: bool) -> None:
        """`is_wanted` says whether sessions go on by themselves here."""
        self._session = session
        self._reads = reads
        self._is_wanted = is_wanted
        self._task: asyncio.Task[None] | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the session goes on by itself later: what else waits does so until then."""
        return is_waited_for(self._session.state.limit)

    async def noticed(self, events: Sequence[Draft]) -> list[Draft]:
        """What is to be written with the end of a turn that failed, if a limit did it whose end is still to come."""
        until = _reported(events) or self._session.state.limit_ends
        if until is None or (self._seconds_to(until) or 0) <= 0:
            return []
        acted = any(map(_is_work, events)) or await self._has_acted()
        before = self._session.state.limit
        attempt = 1 if acted or before is None else before.attempt + 1
        waits = self._is_wanted and attempt <= _MOST_ATTEMPTS
        return [
            drafts.limit(SessionLimitData(status="reached", until=until, waits=waits, attempt=attempt, acted=acted))
        ]

    async def _has_acted(self) -> bool:
        turn = self._session.state.turn
        since = turn.first_sequence - 1 if turn is not None else self._session.last
        found = await self._reads.messages_since(self._session.id, since)
        return any(message.item.role != "user" for message in found)

    def dropped(self) -> list[Draft]:
        """That the session does not go on by itself, if it would."""
        limit = self._session.state.limit
        return deed(drafts.limit(replace(limit, waits=False))) if limit is not None and self.is_waiting else []

    def begin(self, go_on: Callable[[], Awaitable[None]]) -> None:
        """Wait beside the caller, if the log says so and nobody does; `go_on` takes the next prompt of the queue."""
        if self.is_waiting and (self._task is None or self._task.done()):
            self._task = self._session.background.spawn(self._wait(go_on))

    async def _wait(self, go_on: Callable[[], Awaitable[None]]) -> None:
        while (left := self._seconds_left()) is not None:
            if left > 0 and self._is_wanted:
                await self._session.tail.wait(self._session.last, timeout=min(left, _LOOK_SECONDS))
                continue
            try:
                await (self._queue_up() if self._is_wanted else self._session.log.append(self.dropped()))
            except StoreUnavailable as error:
                log.error("session.append_failed", session_id=self._session.id, reason=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                self._session.background.spawn(_awaited(go_on))

    def _seconds_left(self) -> float | None:
        """How long to wait; None if there is nothing to wait for here."""
        session, limit = self._session, self._session.state.limit
        is_over = session.is_leaving or session.is_ending or session.log.is_deleted or session.tail.is_closed
        if limit is None or not self.is_waiting or is_over:
            return None
        left = self._seconds_to(limit.until)
        return None if left is None else left + _SLACK_SECONDS

    def _seconds_to(self, time: str) -> float | None:
        """How long it is until then; None if that is no time."""
        try:
            return (datetime.fromisoformat(time) - datetime.fromisoformat(self._session.now())).total_seconds()
        except (ValueError, TypeError):  # no time, or one that does not say where
            return None

    async def go_on_now(self) -> None:
        """Do for a person at once what is done by itself at the end of the limit."""
        if not self.is_waiting or not await self._queue_up(by=acting()):
            raise NotWaiting(session=self._session.id)

    async def _queue_up(self, by: str | None = None) -> bool:
        """Put what the agent is to hear before all that waits; from then on the session goes on as with any prompt.

        False if something else ended the waiting meanwhile.
        """
        limit = self._session.state.limit
        parts = await self._parts()
        if limit is None or limit is not self._session.state.limit:
            return False
        entry = QueueEntry(prompt_id=new_id("prm"), parts=parts, queued_at=self._session.now(), actor=by)
        over = drafts.limit(replace(limit, status="over", waits=False))
        await self._session.log.append(marked(by, [over, drafts.queue((entry, *self._session.state.queue))]))
        return True

    async def _parts(self) -> tuple[PromptPart, ...]:
        """The prompt of the last turn again if the agent did nothing with it, else a word to go on."""
        state = self._session.state
        if state.limit is None or state.limit.acted or state.last_turn is None:
            return (TextPart(text=_GO_ON),)
        found = await self._reads.messages_since(self._session.id, state.last_turn.first_sequence - 1)
        asked = [message.item for message in found if message.item.role == "user"]
        parts = tuple(part for item in asked for part in item.content if isinstance(part, PromptPart))
        return parts or (TextPart(text=_GO_ON),)


def _reported(events: Sequence[Draft]) -> str | None:
    """When the limit ends, as the last error says that knows it."""
    times = [draft.data.resets_at for draft in events if isinstance(draft.data, ErrorData) and draft.data.resets_at]
    return times[-1] if times else None


def _is_work(draft: Draft) -> bool:
    return isinstance(draft.data, ItemStartedData | ItemCompletedData) and draft.data.item.role != "user"


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()
