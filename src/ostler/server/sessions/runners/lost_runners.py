"""Watches the runners that are not linked: after a while their sessions leave them, if anybody wants them."""

import asyncio
from contextlib import suppress

import msgspec

from ostler.base.errors import OstlerError
from ostler.base.logs import Log
from ostler.server.runners.registry import Runners
from ostler.server.sessions.live import Leases
from ostler.server.sessions.log.state import TERMINAL, SessionState
from ostler.server.sessions.runners.leaving import leave
from ostler.server.sessions.runners.recovery import needs_recovery
from ostler.server.sessions.service import Sessions
from ostler.wire.runners import RunnerAbout

log = Log(__name__)
_LOOK_SECONDS = 1.0
_END_SECONDS = 10.0
_state = msgspec.json.Decoder(SessionState)


def patience(after: float, beat: float) -> tuple[float, float]:
    """How long a runner may be without a link, and after which time of that its agents have to stand still.

    Its end of the link may notice three beats later than ours that it is cut, and its clock may be slow.
    """
    longest = max(after, 4 * beat + 1) if after else 0.0
    return longest, 0.9 * longest - 3 * beat if longest else 0.0


class LostRunners:
    """Every runner but the one of this process."""

    def __init__(self, sessions: Sessions, runners: Runners, after: float) -> None:
        """`after` so many seconds a runner is lost for good; 0 for never, unless somebody says so."""
        self._sessions = sessions
        self._runners = runners
        self._after = after
        self._watching: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Know the runners that an earlier server had sessions on; each has its time from now on to come back."""
        for runner_id, name in (await self._sessions.store.runner_keys.with_sessions(TERMINAL)).items():
            if not self._runners.is_linked(runner_id):
                self.lost(RunnerAbout(id=runner_id, name=name))

    def lost(self, about: RunnerAbout) -> None:
        """The link to a runner is gone, or was not there when this server began."""
        if about.id != self._runners.home and self._after:
            why = f"the runner '{about.name}' was not linked for {self._after:g} seconds"
            self._watch(about, self._after, why)

    def gone(self, about: RunnerAbout, why: str) -> None:
        """Somebody says that a runner will not come back."""
        self._watch(about, 0.0, why)

    async def end_agents(self, about: RunnerAbout) -> None:
        """Nothing may work on there when the sessions go on elsewhere; one that does not answer freezes by itself."""
        ending = [live.agent.disconnect(force=True) for live in self._sessions.live_on(about.id)]
        if ending and about.id != self._runners.home:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await asyncio.gather(*ending, return_exceptions=True)

    def back(self, runner_id: str) -> None:
        """A runner is linked: what is on it stays there."""
        if (watching := self._watching.pop(runner_id, None)) is not None:
            watching.cancel()

    def _watch(self, about: RunnerAbout, after: float, why: str) -> None:
        self.back(about.id)
        self._watching[about.id] = self._sessions.background.spawn(self._move_all(about, after, why))

    async def _move_all(self, about: RunnerAbout, after: float, why: str) -> None:
        await asyncio.sleep(after)
        log.warning("runner.given_up", runner_id=about.id, name=about.name, reason=why)
        is_loaded = False
        while True:  # one that slept moves when somebody wants something of it
            try:
                with Leases() as leases:
                    if not is_loaded:
                        await self._sessions.load_for(leases, about.id, TERMINAL, _is_wanted)
                        is_loaded = True
                    await self._move_live(about, why)
            except OstlerError as error:
                log.warning("sessions.not_moved", runner_id=about.id, reason=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    async def _move_live(self, about: RunnerAbout, why: str) -> None:
        for live in self._sessions.live_on(about.id):
            if not self._runners.is_linked(about.id) and needs_recovery(live.state):
                await leave(self._sessions, live, why)


def _is_wanted(_: str, state: bytes) -> bool:
    return needs_recovery(_state.decode(state))
