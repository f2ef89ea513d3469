"""Which runner a session is placed on, and what it waits for if there is none."""

import math
from collections.abc import Set

from msgspec.structs import replace

from ostler.base.errors import Unprocessable
from ostler.base.errors.runners import RunnerNotFound
from ostler.server.runners.known import KnownRunner
from ostler.server.runners.registry import Runners
from ostler.wire.runners import Needs, RunnerAbout

_HOST = "workspace.executionHostId"


_NOBODY: Set[str] = frozenset()


def choose(runners: Runners, agent: str, needs: Needs, without: Set[str] = _NOBODY) -> RunnerAbout | None:
    """The best runner that can take a session of an agent now; None if it has to wait for one.

    Those `without` were tried already. Best is one that has the agent installed; if nothing is said, the one of this
    process; and the most free slots.
    """
    fitting = [known for known in runners.known if known.about.id not in without and _can_take(known, agent, needs)]
    free = {known: slots for known in fitting if (slots := _free(runners, known)) > 0}
    if len(free) < 2:  # the usual case: nobody has to be compared
        return next((known.about for known in free), None)

    def rank(known: KnownRunner) -> tuple[bool, bool, float, int]:
        is_home = needs == Needs() and known.about.id == runners.home
        return known.agents[agent].installed, is_home, free[known], -runners.used(known.about.id)

    return max(free, key=rank).about


def _can_take(known: KnownRunner, agent: str, needs: Needs) -> bool:
    about = known.about
    is_wanted = needs.host in {None, about.id, about.name} and needs.labels.items() <= about.labels.items()
    is_there = known.link is not None and not known.is_mute
    return is_wanted and is_there and not known.draining and agent in known.agents


def _free(runners: Runners, known: KnownRunner) -> float:
    slots = known.about.slots
    return math.inf if slots is None else slots - runners.used(known.about.id)


def checked_needs(runners: Runners, needs: Needs, pinned: str | None) -> Needs:
    """What a session needs, where its upload is `pinned` to a runner; raises for a runner that nobody knows."""
    if needs.host is not None:
        try:
            host = runners.find_runner(needs.host).about
        except RunnerNotFound as error:
            reason = f"'{needs.host}' is none of the runners {error.fields['known']}"
            raise Unprocessable(
                reason=f"{_HOST}: {reason}. See GET /api/v1/runners.", errors={_HOST: [reason]}
            ) from None
        if pinned not in {None, host.id}:
            reason = f"the upload is on another runner than '{needs.host}'"
            raise Unprocessable(reason=f"{_HOST}: {reason}. Leave one of them out.", errors={_HOST: [reason]})
    return needs if pinned is None else replace(needs, host=pinned)


def waiting_for(agent: str, needs: Needs) -> str:
    """What a session waits for, in words."""
    if needs.host is not None:
        return f"waiting for the runner {needs.host}"
    if needs.labels:
        return f"waiting for a runner with {', '.join(f'{name}={value}' for name, value in needs.labels.items())}"
    return f"waiting for a runner with room for {agent}"
