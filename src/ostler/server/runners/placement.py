"""Which runner a session is placed on, and what it waits for if there is none."""

import math
from collections.abc import Set

from msgspec.structs import replace

from ostler.base.errors import Unprocessable, UnsupportedAgent
from ostler.base.errors.runners import RunnerNotFound
from ostler.base.errors.servers import OwnedElsewhere
from ostler.server.runners.agents import agent_named
from ostler.server.runners.known import KnownRunner, is_for
from ostler.server.runners.registry import Runners
from ostler.wire.agents import Agent
from ostler.wire.runners import Needs, RunnerAbout

_HOST = "workspace.executionHostId"
AUTO, OWN, MOCK = "auto", "ostler", "mock"
_GIVE_A_KEY = (
    "No agent was chosen and Ostler's own has no key of a model provider, so this is a mock. "
    "Give it one: ostler agents login ostler --key - --variable ANTHROPIC_API_KEY "
    "(or OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY)."
)

_NOBODY: Set[str] = frozenset()


class Slots:
    """How many slots of each runner are in use: looked at once, and then counted by whoever gives them out."""

    def __init__(self, runners: Runners) -> None:
        self._runners = runners
        self._used: dict[str, int] = {}

    def used(self, runner_id: str) -> int:
        """How many sessions have one, or are about to."""
        if runner_id not in self._used:
            self._used[runner_id] = self._runners.used(runner_id)
        return self._used[runner_id]

    def take(self, runner_id: str) -> None:
        """One more session has one."""
        self._used[runner_id] = self.used(runner_id) + 1


def choose(
    runners: Runners,
    agent: str,
    needs: Needs,
    tenant: str | None = None,
    without: Set[str] = _NOBODY,
    slots: Slots | None = None,
) -> RunnerAbout | None:
    """The best runner that can take a session of an agent now; None if it has to wait for one.

    Those `without` were tried already. Best is one that has the agent installed; if nothing is said, the one of this
    process; and the most free slots.
    """
    slots = slots or Slots(runners)
    fitting = [
        known
        for known in runners.known
        if known.about.id not in without and _is_there(known, agent) and fits(known.about, needs, tenant)
    ]
    free = {known: left for known in fitting if (left := _free(slots, known)) > 0}
    if len(free) < 2:  # the usual case: nobody has to be compared
        return next((known.about for known in free), None)

    def rank(known: KnownRunner) -> tuple[bool, bool, float, int]:
        is_home = needs == Needs() and known.about.id == runners.home
        return known.agents[agent].installed, is_home, free[known], -slots.used(known.about.id)

    return max(free, key=rank).about


def fits(about: RunnerAbout, needs: Needs, tenant: str | None) -> bool:
    """Whether a session may be on a runner: one that is for a tenant has only sessions of that tenant."""
    is_wanted = needs.host in {None, about.id, about.name} and needs.labels.items() <= about.labels.items()
    return is_wanted and is_for(about, tenant)


def _is_there(known: KnownRunner, agent: str | None = None) -> bool:
    is_linked = known.link is not None and not known.is_mute and not known.draining
    return is_linked and (agent is None or agent in known.agents)


def takes_sessions(runners: Runners, runner_id: str) -> bool:
    """Whether a runner is there, and was not silent."""
    known = runners.get(runner_id)
    return known is not None and _is_there(known)


def has_room(runners: Runners) -> bool:
    """Whether a runner of this server could take a session."""
    slots = Slots(runners)
    return any(_is_there(known) and _free(slots, known) > 0 for known in runners.known)


async def server_with_room(runners: Runners, agent: str, needs: Needs, tenant: str | None) -> str | None:
    """Another server that has a runner for a session, as far as we know."""
    await runners.refresh()
    for known in runners.known:
        link = known.elsewhere
        if link is None or known.is_lost_elsewhere or known.draining or agent not in link.load.agents:
            continue
        used, slots = sum(link.load.at_work.values()), known.about.slots
        if fits(known.about, needs, tenant) and (slots is None or used < slots):
            return link.server
    return None


async def agent_anywhere(runners: Runners, name: str) -> Agent:
    """An agent by its id or another name of it; raises OwnedElsewhere if only runners of another server have it."""
    try:
        return agent_named(runners, name)
    except UnsupportedAgent:
        await runners.refresh()
        links = [known.elsewhere for known in runners.known if not known.is_lost_elsewhere]
        server = next((link.server for link in links if link is not None and name in link.load.agents), None)
        if server is None:
            raise
        raise OwnedElsewhere(what=f"the runner with agent '{name}'", owner=server) from None


def default_agent(runners: Runners, setting: str) -> str:
    """The agent of who names none."""
    if setting != AUTO:
        return setting
    own = (known.agents.get(OWN) for known in runners.known)
    return OWN if any(agent is not None and agent.logged_in for agent in own) else MOCK


def default_agent_hint(runners: Runners, setting: str) -> str:
    """What to do so that the default agent is no mock; empty if it is none, or was chosen."""
    return _GIVE_A_KEY if setting == AUTO and default_agent(runners, setting) == MOCK else ""


def _free(slots: Slots, known: KnownRunner) -> float:
    most = known.about.slots
    if most is None:
        return math.inf
    return 0 if known.is_being_taken_over else most - slots.used(known.about.id)


async def checked_needs(runners: Runners, needs: Needs, pinned: str | None) -> Needs:
    """What a session needs, where its upload is `pinned` to a runner; raises for a runner that nobody knows."""
    if needs.host is not None:
        try:
            host = (await _found(runners, needs.host)).about
        except RunnerNotFound as error:
            reason = f"'{needs.host}' is none of the runners {error.fields['known']}"
            raise Unprocessable(
                reason=f"{_HOST}: {reason}. See GET /api/v1/runners.", errors={_HOST: [reason]}
            ) from None
        if pinned not in {None, host.id}:
            reason = f"the upload is on another runner than '{needs.host}'"
            raise Unprocessable(reason=f"{_HOST}: {reason}. Leave one of them out.", errors={_HOST: [reason]})
        if host.id == runners.home and runners.server is not None:  # every server has one of that name
            needs = replace(needs, host=host.id)
    return needs if pinned is None else replace(needs, host=pinned)


async def _found(runners: Runners, id_or_name: str) -> KnownRunner:
    """A runner, also one that registered at another server a moment ago."""
    try:
        return runners.find_runner(id_or_name)
    except RunnerNotFound:
        await runners.refresh()
        return runners.find_runner(id_or_name)


def full_here(runners: Runners, agent: str, needs: Needs, tenant: str | None) -> list[KnownRunner]:
    """The runners of this server that could take a session if they had a free slot."""
    slots = Slots(runners)
    return [
        known
        for known in runners.known
        if known.about.slots
        and not known.is_being_taken_over
        and _is_there(known, agent)
        and fits(known.about, needs, tenant)
        and _free(slots, known) <= 0
    ]


def _full_elsewhere(runners: Runners, agent: str, needs: Needs, tenant: str | None) -> list[KnownRunner]:
    """Those of other servers, as far as we know."""
    found = []
    for known in runners.known:
        link = known.elsewhere
        if link is None or known.is_lost_elsewhere or known.draining or agent not in link.load.agents:
            continue
        is_full = bool(known.about.slots) and sum(link.load.at_work.values()) >= (known.about.slots or 0)
        if is_full and fits(known.about, needs, tenant):
            found.append(known)
    return found


def waiting_for(runners: Runners, agent: str, needs: Needs, tenant: str | None) -> str:
    """What a session waits for, in words."""
    asked = (runners, agent, needs, tenant)
    if full := sorted(f"'{known.about.name}'" for known in (*full_here(*asked), *_full_elsewhere(*asked))):
        if len(full) == 1:
            return f"waiting for a slot: the runner {full[0]} is full"
        return f"waiting for a slot: the runners {', '.join(full)} are full"
    if needs.host is not None:
        return f"waiting for the runner {needs.host}"
    if needs.labels:
        return f"waiting for a runner with {', '.join(f'{name}={value}' for name, value in needs.labels.items())}"
    return f"waiting for a runner with room for {agent}"
