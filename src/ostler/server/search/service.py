"""Keeps the index of what was said up to date, outside the way that events take to the disk."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count

from ostler.base.logs import Log
from ostler.base.retry import delay_after
from ostler.base.tasks import Background
from ostler.server.search.texts import entry_of
from ostler.server.store.protocol import Store
from ostler.server.store.records import SessionName
from ostler.server.store.search import Found, Wanted

log = Log(__name__)
_GATHER_SECONDS = 0.3
"""So long events come together before they are looked at."""
_CHUNKS = 200
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_STOP_SECONDS = 1.0


class Search:
    """Follows the logs of one store, and finds what was said."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._index = store.search
        self._background = Background(log, "search.failed")
        self._woken = asyncio.Event()
        self.is_behind = True
        """Whether there may be events that cannot be found yet."""

    def start(self) -> None:
        """Follow from now on; what was said while nobody did comes first."""
        self._woken.set()
        self._background.spawn(self._follow())

    def wake(self) -> None:
        """Something was said, or a session was deleted."""
        self.is_behind = True
        self._woken.set()

    async def close(self) -> None:
        """Follow no longer."""
        await self._background.aclose(seconds=_STOP_SECONDS)

    async def find(self, wanted: Wanted) -> tuple[Sequence[Found], Mapping[str, SessionName]]:
        """What fits, the newest first, and what its sessions are called; nothing of a session that is gone."""
        found = await self._index.find(wanted)
        names = await self._store.logs.session_names(wanted.project, sorted({each.session for each in found}))
        return [each for each in found if each.session in names], names

    async def _follow(self) -> None:
        failures = count(1)
        while True:
            await self._woken.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            self._woken.clear()
            try:
                await self._index.forget_deleted()
                await self._catch_up()
            except Exception as error:  # noqa: BLE001 - the edge of a background task: the next look may go well
                log.warning("search.behind", reason=str(error))
                await asyncio.sleep(delay_after(next(failures), _FIRST_PAUSE, _LONGEST_PAUSE))
                self._woken.set()
            else:
                failures = count(1)

    async def _catch_up(self) -> None:
        """Take in what is new, a little at a time; what other servers are about to commit is looked for again."""
        while True:
            after = await self._index.position()
            completed = await self._store.logs.completed_after(after, _CHUNKS)
            if completed.upto > after:
                entries = [entry for item in completed.items if (entry := entry_of(item)) is not None]
                await self._index.add(entries, after, completed.upto)
            elif completed.is_more_to_come:
                self._woken.set()
                return
            else:
                self.is_behind = self._woken.is_set()
                return
