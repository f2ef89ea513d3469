"""A reader's place in a session's log: events in order, first from the store, then as they become durable."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log import unframed
from ostler.server.sessions.service import Sessions
from ostler.server.store.records import StoredEvent

_READ_BYTES = 32 * 1024
_PAGE = 1000
_HEARTBEAT = b": still here\n\n"


class Follower:
    """Moves through one log; holds no events, only a number."""

    def __init__(self, sessions: Sessions, live: LiveSession, *, offset: int, raw: bool = False) -> None:
        self.offset = offset
        self.live = live
        self._sessions = sessions
        self._raw = raw

    async def next(self, *, timeout: float) -> list[StoredEvent] | None:
        """What follows; nothing when the time is up, None when there will be no more."""
        feed = self.live.log.feed
        if self.offset >= feed.last and not feed.closed:
            await feed.wait(self.offset, timeout=timeout)
        if self.offset < feed.last:
            return await self._read()
        return None if feed.closed else []

    async def _read(self) -> list[StoredEvent]:
        feed = self.live.log.feed
        frames = None if self._raw else feed.after(self.offset, _READ_BYTES)
        if frames is not None:
            found = [StoredEvent(number, unframed(frame)) for number, frame in enumerate(frames, self.offset + 1)]
        else:
            found = await self._sessions.events(self.live.id, self.offset, _PAGE, raw=self._raw)
        self.offset = found[-1].number if found else feed.last  # a deleted session has nothing to read
        return found


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
        while not self._is_over():
            found = await self._follower.next(timeout=self._heartbeat)
            if not found:
                return None if found is None else _HEARTBEAT
            if written := self._render(found):
                return written
        return None


class Boundary(NamedTuple):
    """A place in a log where nothing is open, so that a projection can start with it."""

    offset: int = 0
    turns: int = 0
    """How many turns there are before it."""


async def turn_boundary(sessions: Sessions, session_id: str, offset: int) -> Boundary:
    """Where the turn around an offset begins."""
    turn = await sessions.turn_around(session_id, offset)
    return Boundary(turn.first_sequence - 1, turn.number - 1) if turn is not None else Boundary()
