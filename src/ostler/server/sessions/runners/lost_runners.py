"""Watches the runners that are not linked: after a while their sessions leave them, if anybody wants them."""

import asyncio
from contextlib import suppress
from itertools import count
from typing import NamedTuple

from ostler.base.errors import OstlerError
from ostler.base.logs import Log
from ostler.server.runners.known import KnownRunner
from ostler.server.runners.registry import Runners
from ostler.server.sessions.live import Leases
from ostler.server.sessions.log.state import SessionState, state_in
from ostler.server.sessions.log.statuses import TERMINAL
from ostler.server.sessions.runners.leaving import leave
from ostler.server.sessions.runners.recovery import needs_recovery
from ostler.server.sessions.runners.takeover import Takeover
from ostler.server.sessions.service import Sessions
from ostler.server.store.peers import Peers
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
_LOOK_SECONDS = 1.0
_LOOKS_AT_SERVERS = 5
_LOOK_AT_OTHERS_SECONDS = 2.0
_BEAT_SECONDS = 3.0
"""So long after a sign of life of a runner it may be that the server which it is linked to says so."""
_END_SECONDS = 10.0


def patience(after: float, beat: float) -> tuple[float, float]:
    """How long a runner may be without a link, and after which time of that its agents have to stand still.

    Its end of the link may notice three beats later than ours that it is cut, and its clock may be slow.
    """
    longest = max(after, 4 * beat + 1) if after else 0.0
    return longest, 0.9 * longest - 3 * beat if longest else 0.0


class _Watch(NamedTuple):
    """A runner that is not linked."""

    about: RunnerAbout
    task: "asyncio.Task[None]"
    is_gone: bool
    """Whether it will not come back."""


class LostRunners:
    """Every runner but those that are part of servers: these have no one else who could say that they are gone."""

    def __init__(
        self, sessions: Sessions, runners: Runners, takeover: Takeover, after: float, peers: Peers | None = None
    ) -> None:
        """`after` so many seconds a runner is lost for good; 0 for never, unless somebody says so."""
        self._sessions = sessions
        self._runners = runners
        self._takeover = takeover
        self._after = after
        self._peers = peers
        self._watching: dict[str, _Watch] = {}

    async def start(self) -> None:
        """Know the runners that an earlier server had sessions on; each has its time from now on to come back."""
        for runner_id, name in (await self._sessions.store.runner_keys.with_sessions(TERMINAL)).items():
            about = RunnerAbout(id=runner_id, name=name)
            if self._runners.get(runner_id) is None and not self._is_part_of_server(runner_id):
                self.removed(about)
            elif not self._is_somewhere(runner_id):
                self.lost(about)
        if self._peers is not None:
            self._sessions.background.spawn(self._look_now_and_then(self._peers))

    def _is_part_of_server(self, runner_id: str) -> bool:
        is_other = self._peers is not None and self._peers.address_of(runner_id) is not None
        return is_other or runner_id == self._runners.home

    def _is_somewhere(self, runner_id: str) -> bool:
        """Whether it is linked to any server."""
        known = self._runners.get(runner_id)
        return known is not None and (known.link is not None or _is_elsewhere(known))

    def lost(self, about: RunnerAbout, already: float = 0.0) -> None:
        """The link to a runner is gone since so many seconds, or was not there when this server began."""
        if self._after and not self._is_part_of_server(about.id):
            why = f"the runner '{about.name}' was not linked for {self._after:g} seconds"
            self._watch(about, max(0.0, self._after - already), why)

    def removed(self, about: RunnerAbout) -> None:
        """Its key was revoked."""
        self.gone(about, f"the runner '{about.name}' was removed")

    def gone(self, about: RunnerAbout, why: str) -> None:
        """Somebody says that a runner will not come back."""
        self._watch(about, 0.0, why, is_gone=True)

    async def end_agents(self, about: RunnerAbout) -> None:
        """Nothing may work on there when the sessions go on elsewhere; one that does not answer freezes by itself."""
        ending = [live.agent.disconnect(force=True) for live in self._sessions.registry.live_on(about.id)]
        if ending and about.id != self._runners.home:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await asyncio.gather(*ending, return_exceptions=True)

    def back(self, runner_id: str) -> None:
        """A runner is linked: what is on it stays there."""
        if (watch := self._watching.pop(runner_id, None)) is not None:
            watch.task.cancel()

    def _watch(self, about: RunnerAbout, after: float, why: str, *, is_gone: bool = False) -> None:
        known = self._watching.get(about.id)
        if known is not None and known.is_gone:
            return  # who said so first knows why
        self.back(about.id)
        task = self._sessions.background.spawn(self._move_all(about, after, why))
        self._watching[about.id] = _Watch(about, task, is_gone)

    # What other servers know

    async def _look_now_and_then(self, peers: Peers) -> None:
        while True:
            await asyncio.sleep(_LOOK_AT_OTHERS_SECONDS)
            await self._runners.refresh()
            for known in self._runners.known:
                self._look_at(peers, known)
            for about, _, is_gone in list(self._watching.values()):
                if not is_gone and self._runners.get(about.id) is None:
                    self.removed(about)

    def _look_at(self, peers: Peers, known: KnownRunner) -> None:
        """A runner may be lost together with the server that it was linked to; then nobody else sees to it."""
        if known.link is None and known.elsewhere is not None:
            if _is_elsewhere(known):
                self.back(known.about.id)
            elif known.about.id not in self._watching:
                # its server had a while to say that it is there, and its agents stand still a while after its link
                self.lost(known.about, peers.links.silence(known.elsewhere) - _BEAT_SECONDS)

    # Moving

    async def _move_all(self, about: RunnerAbout, after: float, why: str) -> None:
        await asyncio.sleep(after)
        log.warning("runner.given_up", runner_id=about.id, name=about.name, reason=why)
        must_load = True
        for look in count():  # one that slept moves when somebody wants something of it
            try:
                with Leases() as leases:
                    if look % _LOOKS_AT_SERVERS == 0:
                        must_load |= await self._takeover.take_lost_on(about.id)
                        if not await self._has_sessions(about.id):
                            self._forget_gone(about.id)
                            return
                    if must_load:
                        await self._sessions.registry.load_for(leases, about.id, TERMINAL, _is_stored_wanted)
                        must_load = False
                    await self._move_live(about, why)
            except OstlerError as error:
                log.warning("sessions.not_moved", runner_id=about.id, reason=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    def _forget_gone(self, runner_id: str) -> None:
        """Nothing is left to do for one that does not come back."""
        if (watch := self._watching.get(runner_id)) is not None and watch.is_gone:
            del self._watching[runner_id]

    async def _has_sessions(self, runner_id: str) -> bool:
        seen = count()
        return bool(await self._sessions.store.unfinished_sessions(runner_id, TERMINAL, lambda *_: next(seen) < 1))

    async def _move_live(self, about: RunnerAbout, why: str) -> None:
        for live in self._sessions.registry.live_on(about.id):
            if not self._runners.is_linked(about.id) and _is_wanted(live.core.state):
                await leave(self._sessions, live, why)


def _is_elsewhere(known: KnownRunner) -> bool:
    return known.elsewhere is not None and not known.is_lost_elsewhere


def _is_wanted(state: SessionState) -> bool:
    """Whether a session cannot wait for its runner: it was at work, or could not be resumed where it is."""
    return needs_recovery(state) or state.status == "paused"


def _is_stored_wanted(_: str, state: bytes) -> bool:
    return _is_wanted(state_in(state))
