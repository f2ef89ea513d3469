"""Sessions that other servers have: their logs are read here, and a bell says when there is more."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ostler.base.errors import StoreUnavailable
from ostler.base.logs import Log
from ostler.base.tasks import Background
from ostler.server.sessions.log.feed import Feed, Tail
from ostler.server.sessions.log.reads import Reads
from ostler.server.sessions.log.session_log import ProjectFeeds
from ostler.server.store.peers import Bell
from ostler.server.store.records import SessionRecord

log = Log(__name__)
_LOOK_SECONDS = 2.0
"""Between two looks at what is followed: a bell may be lost."""


class ForeignSession:
    """A session of another server, as long as somebody here follows its log."""

    def __init__(self, record: SessionRecord, tail: Tail, feed: Feed) -> None:
        self.record = record
        self.tail = tail
        self.feed = feed
        self.users = 0


class Elsewhere:
    """The logs of other servers' sessions that are followed here, and which of our own became theirs."""

    def __init__(
        self, reads: Reads, projects: ProjectFeeds, background: Background, lost: Callable[[], Awaitable[None]]
    ) -> None:
        """`lost` lets go of what other servers have by now: its readers would wait for what is written elsewhere."""
        self._reads = reads
        self._lost = lost
        self._projects = projects
        self._followed: dict[str, ForeignSession] = {}
        self._missed = asyncio.Event()
        self._background = background

    def start(self) -> None:
        """Look now and then, beside what is heard."""
        self._background.spawn(self._look_now_and_then())

    def follow(self, record: SessionRecord) -> "Following":
        """Follow a session's log until `release`."""
        found = self._followed.get(record.id)
        if found is None:
            feed = Feed(last=record.last_sequence, limit_bytes=0)
            tail = Tail(feed, functools.partial(self._reads.events, record.id))
            found = self._followed[record.id] = ForeignSession(record, tail, feed)
        return Following(self, found)

    def leave(self, found: ForeignSession) -> None:
        """One reader fewer; nothing stays of what nobody reads."""
        found.users -= 1
        if not found.users and self._followed.get(found.record.id) is found:
            del self._followed[found.record.id]

    def heard(self, bell: Bell | None) -> None:
        """Something was written somewhere, or we do not know what was."""
        if bell is None:
            self._missed.set()
            return
        self._projects.notice(bell.project, bell.position)
        if (found := self._followed.get(bell.session)) is not None:
            _move_on(found.feed, bell.last)

    def close(self) -> None:
        """Let every stream end."""
        for found in self._followed.values():
            found.feed.close()

    async def _look_now_and_then(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._missed.wait(), _LOOK_SECONDS)
            self._missed.clear()
            try:
                await self._look()
            except StoreUnavailable as error:
                log.debug("elsewhere.not_seen", reason=str(error))

    async def _look(self) -> None:
        await self._lost()
        if wanted := list(self._followed):
            lasts = await self._reads.store.logs.last_sequences(wanted)
            for session_id in wanted:
                if (found := self._followed.get(session_id)) is not None:
                    _move_on(found.feed, lasts.get(session_id, 0))
        if self._projects.is_watched:
            self._projects.notice_all(await self._reads.store.logs.last_position())


class Following:
    """One reader of a session that another server has."""

    def __init__(self, elsewhere: Elsewhere, found: ForeignSession) -> None:
        self._elsewhere = elsewhere
        self._found = found

    @property
    def record(self) -> SessionRecord:
        """Its row when it was first read here."""
        return self._found.record

    @property
    def tail(self) -> Tail:
        """The end of its log."""
        return self._found.tail

    def hold(self) -> None:
        """Somebody reads it."""
        self._found.users += 1

    def release(self) -> None:
        """Nobody does any more."""
        self._elsewhere.leave(self._found)


def _move_on(feed: Feed, last: int) -> None:
    """There are events up to this one; without any the session is deleted."""
    if not last:
        feed.close()
    elif last > feed.last:
        feed.skip(last)
