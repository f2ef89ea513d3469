"""A session's log as the stream of another protocol."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ostler.server.sessions.log.feed import Follower
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import StoredEvent

_HEARTBEAT = b": still here\n\n"


class Rendering:
    """A log as the bytes of an event stream in some other protocol; `render` gives what a few events become."""

    def __init__(
        self,
        follower: Follower,
        render: Callable[[Sequence[StoredEvent]], bytes],
        *,
        heartbeat: float,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._follower = follower
        self._render = render
        self._heartbeat = heartbeat
        self._is_over = is_over

    async def next(self) -> bytes | None:
        """The next bytes to write, a heartbeat when nothing happens, None when nothing will."""
        clock = asyncio.get_running_loop().time
        due = clock() + self._heartbeat
        while not self._is_over():
            found = await self._follower.next(timeout=self._heartbeat)
            if found is None:
                return None
            if written := self._render(found):
                return written
            if clock() >= due or not found:
                return _HEARTBEAT  # a lot may happen that is not for this client
        return None


class Boundary(NamedTuple):
    """A place in a log where nothing is open, so that a projection can start with it."""

    offset: int = 0
    turns: int = 0
    """How many turns there are before it."""


async def turn_boundary(sessions: Sessions, session_id: str, offset: int) -> Boundary:
    """Where the turn around an offset begins."""
    turn = await sessions.store.logs.turn_around(session_id, offset)
    return Boundary(turn.first_sequence - 1, turn.number - 1) if turn is not None else Boundary()
