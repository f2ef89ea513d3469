"""The sessions that wait for a runner: oldest first, and fair between projects."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ostler.server.store.records import SessionRecord
from ostler.wire.runners import Needs


class WaitingSession(NamedTuple):
    """What has to be known of it to find a runner."""

    id: str
    project: str
    agent: str
    needs: Needs


class Waiting:
    """Every session of this process that is on no runner yet."""

    def __init__(self) -> None:
        self._sessions: dict[str, WaitingSession] = {}
        self.changed: Callable[[], object] = lambda: None
        """Called when one comes."""

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, record: SessionRecord) -> None:
        """One more, which came after those that are there."""
        self._sessions[record.id] = WaitingSession(record.id, record.project, record.agent, record.needs)
        self.changed()

    def remove(self, session_id: str) -> None:
        """It has a runner, or is over."""
        self._sessions.pop(session_id, None)

    def in_turn(self, at_work: Counter[str]) -> Iterator[WaitingSession]:
        """Each of them: the oldest of the project that has the fewest at work, and then of the next.

        `at_work` counts sessions by project; whoever places one counts it there.
        """
        left: dict[str, list[WaitingSession]] = {}
        for session in self._sessions.values():
            left.setdefault(session.project, []).append(session)
        for sessions in left.values():
            sessions.reverse()
        while left:
            project = min(left, key=lambda name: (at_work[name], left[name][-1].id))
            yield left[project].pop()
            if not left[project]:
                del left[project]
