"""Whether the sessions that sleep on a runner of a pool find a place on others, so that it need not stay for them."""

from collections import Counter
from itertools import count

from ostler.server.runners.placement import choose
from ostler.server.runners.registry import Runners
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.runners.leaving import must_stay
from ostler.server.store.protocol import Store
from ostler.server.store.records import SessionRecord

_MOST = 100
"""A runner with more of them stays: to look at all of them again and again would cost more than it does."""


async def open_sessions(store: Store, runner: str) -> list[SessionRecord]:
    """The sessions on a runner that are not over; one more than are looked at, if there are more."""
    seen = count()
    return await store.unfinished_sessions(runner, TERMINAL, lambda *_: next(seen) <= _MOST)


def could_leave(runners: Runners, runner: str, records: list[SessionRecord]) -> bool:
    """Whether each of them could be on another runner that is there now."""
    if len(records) > _MOST or any(map(must_stay, records)):
        return False
    taken: Counter[str] = Counter()
    for record in records:
        full = {
            known.about.id for known in runners.known if _is_full(runners, known.about.id, known.about.slots, taken)
        }
        place = choose(runners, record.agent, record.needs, record.tenant, {runner, *full})
        if place is None:
            return False
        taken[place.id] += 1
    return True


def _is_full(runners: Runners, runner: str, slots: int | None, taken: Counter[str]) -> bool:
    return slots is not None and taken[runner] > 0 and runners.used(runner) + taken[runner] >= slots
