"""Idle agents are put to sleep for sessions that wait for a slot."""

from ostler.server.runners.placement import full_here
from ostler.server.runners.registry import Runners
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.registry import Registry
from ostler.server.sessions.runners.waiting import WaitingSession


class MakingRoom:
    """One look at the agents of full runners: those that fall asleep just now, and those that could."""

    def __init__(self, registry: Registry, runners: Runners) -> None:
        self._registry = registry
        self._runners = runners
        self._falling: dict[str, int] = {}
        """How many slots of each runner are about to be free, and are meant for nobody yet."""
        self._idle: dict[str, list[LiveSession]] = {}
        """The idle sessions of each, that which was used last first."""

    def make_room_for(self, waiting: WaitingSession) -> None:
        """See that a slot becomes free for a session, if that costs nobody a turn."""
        full = [known.about.id for known in full_here(self._runners, waiting.agent, waiting.needs, waiting.tenant)]
        for runner in full:
            self._look_at(runner)
        if falling := next((runner for runner in full if self._falling[runner] > 0), None):
            self._falling[falling] -= 1
        elif idle := next((runner for runner in full if self._idle[runner]), None):
            self._idle[idle].pop().agent.fall_asleep()

    def _look_at(self, runner: str) -> None:
        if runner not in self._idle:
            lives = self._registry.live_on(runner)
            self._falling[runner] = sum(live.agent.falls_asleep for live in lives)
            self._idle[runner] = sorted(filter(_is_idle, lives), key=lambda live: live.core.updated_at, reverse=True)


def _is_idle(live: LiveSession) -> bool:
    return live.is_idle
