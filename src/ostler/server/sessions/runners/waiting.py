"""The sessions that wait for a runner: oldest first, and fair between projects."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ostler.base.clock import Histogram
from ostler.server.store.peers import Offer
from ostler.server.store.records import SessionRecord
from ostler.wire.runners import Needs

_CLASSES = (0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3600.0)


class WaitingSession(NamedTuple):
    """What has to be known of it to find a runner."""

    id: str
    project: str
    share: str
    """Whose share of the slots it takes."""
    agent: str
    needs: Needs
    tenant: str | None = None
    epoch: int | None = None
    """In which another server has it; None for one that is ours."""


class Waiting:
    """Every session of this server that is on no runner yet, and those of others that it may take."""

    def __init__(self, heard: Callable[[], object] = lambda: None) -> None:
        """`heard` is called when one comes."""
        self._sessions: dict[str, WaitingSession] = {}
        self._offered: dict[str, WaitingSession] = {}
        self._since: dict[str, float] = {}
        self.times = Histogram(_CLASSES)
        """How long sessions have waited that have a runner now."""
        self.heard: list[Callable[[], object]] = [heard]
        """Called when one comes."""

    def __len__(self) -> int:
        return len(self._sessions) + len(self._offered)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._sessions or session_id in self._offered

    @property
    def has_own(self) -> bool:
        """Whether one of ours waits."""
        return bool(self._sessions)

    def offer(self, offers: Iterable[Offer]) -> None:
        """Those that wait at other servers, and no others."""
        self._offered = {
            each.id: WaitingSession(each.id, each.project, each.share, each.agent, each.needs, each.tenant, each.epoch)
            for each in offers
            if each.id not in self._sessions
        }

    def add(self, record: SessionRecord) -> None:
        """One more, which came after those that are there."""
        self._offered.pop(record.id, None)
        self._sessions[record.id] = WaitingSession(
            record.id, record.project, record.share, record.agent, record.needs, record.tenant
        )
        self._since.setdefault(record.id, time.monotonic())
        for heard in self.heard:
            heard()

    def all(self) -> tuple[WaitingSession, ...]:
        """Each of them, the oldest first."""
        return tuple(self._sessions.values())

    def everybody(self) -> tuple[WaitingSession, ...]:
        """Ours, and those of other servers that may be taken."""
        return (*self._sessions.values(), *self._offered.values())

    def remove(self, session_id: str) -> None:
        """It has a runner, or is over."""
        self._sessions.pop(session_id, None)
        self._offered.pop(session_id, None)
        self._since.pop(session_id, None)

    def placed(self, session_id: str) -> None:
        """It has a runner."""
        if (since := self._since.get(session_id)) is not None:
            self.times.observe(time.monotonic() - since)
        self.remove(session_id)

    @property
    def own(self) -> int:
        """How many of ours wait."""
        return len(self._sessions)

    @property
    def oldest_seconds(self) -> float:
        """How long the one that came first waits at this server; 0 if none does."""
        return time.monotonic() - min(self._since.values()) if self._since else 0.0

    def in_turn(self, at_work: Counter[str]) -> Iterator[WaitingSession]:
        """Each of them: the oldest of the share that has the fewest at work, and then of the next.

        `at_work` counts sessions by share; whoever places one counts it there.
        """
        left: dict[str, list[WaitingSession]] = {}
        everybody = list(self.everybody())
        if self._offered:
            everybody.sort(key=lambda session: session.id)
        for session in everybody:
            left.setdefault(session.share, []).append(session)
        for sessions in left.values():
            sessions.reverse()
        while left:
            share = min(left, key=lambda name: (at_work[name], left[name][-1].id))
            yield left[share].pop()
            if not left[share]:
                del left[share]
