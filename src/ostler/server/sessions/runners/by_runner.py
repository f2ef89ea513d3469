"""The sessions that are in use, by the runner that they are on."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

from ostler.base.errors.runners import LinkLost
from ostler.server.sessions.directory import Directory
from ostler.server.sessions.live import Leases, LiveSession
from ostler.server.sessions.runners.waiting import WaitingSession
from ostler.server.store.peers import Bell


class ByRunner(Directory):
    """Finds what is on a runner."""

    async def load_for(
        self, leases: Leases, runner: str, terminal: Iterable[str], wanted: Callable[[str, bytes], bool]
    ) -> list[LiveSession]:
        """Use the sessions of a runner that are wanted, and all of it that are live."""
        async with self._steady():
            for record in await self.store.unfinished_sessions(runner, terminal, wanted):
                if self.is_ours(record) and record.id not in self._live:
                    self.load(record)
            return [leases.hold(live) for live in self.live_on(runner)]

    async def claim_all_on(self, runner: str) -> None:
        """Have all sessions of a runner, whoever had them: its link is here. Raises LinkLost if it is not any more."""
        if self._peers is not None:
            async with self._steady():
                for live in self.live_on(runner):
                    found = await self.store.find_session(live.record.project, live.id)
                    if found is None or (found.owner, found.epoch) != (self._owner, live.record.epoch):
                        self._lose(live.id)  # another server had it meanwhile
                if not await self._peers.links.claim(runner, [live.id for live in self.live_on(runner)]):
                    raise LinkLost(reason="the runner is linked to another server since")

    async def claim_home(self, runner: str) -> None:
        """Have what another server took of the runner of this process when this server was given up."""
        if self._peers is not None:
            others = [owner for owner in await self._peers.links.owners_on(runner) if owner != self._owner]
            if others:
                await self._peers.links.take_all_on(runner, others)

    async def take_lost_on(self, runner: str) -> bool:
        """Have what lost servers have on a runner; whether there was anything."""
        if self._peers is None:
            return False
        lost = [owner for owner in await self._peers.links.owners_on(runner) if self._peers.is_lost(owner)]
        if not lost:
            return False
        async with self._steady():
            taken = await self._peers.links.take_all_on(runner, lost)
            for session_id in taken:
                self._lose(session_id)  # what we had of it before the other server did
        return bool(taken)

    def _heard(self, bell: Bell | None) -> None:
        if bell is None or not bell.session:
            self._steps.when_offered()
        if bell is None or bell.session:
            super()._heard(bell)

    async def take_waiting(self, waiting: WaitingSession) -> bool:
        """Have a session that waits at another server; False if somebody was first."""
        if self._peers is None or waiting.epoch is None:
            return False
        async with self._steady():
            if await self._peers.links.take_offer(waiting.id, waiting.epoch) is None:
                return False
            self._lose(waiting.id)  # what we had of it before another server did
            return True

    def live_on(self, runner: str) -> list[LiveSession]:
        """The sessions of a runner that are in use."""
        return [live for live in self._live.values() if live.record.runner == runner]

    def at_work_by_share(self) -> Counter[str]:
        """How many sessions are at work, by share."""
        return Counter(live.record.share for live in self._live.values() if live.is_at_work)

    def at_work(self) -> dict[str, str]:
        """What to call each session with a turn under way in this process, by id."""
        busy = [live for live in self.live_on(self._runners.home) if live.state.turn]
        return {live.id: f"{live.record.agent} ({live.state.title or live.record.key})" for live in busy}

    async def close_agents(self) -> None:
        """End every turn and every agent of this process; the sessions stay, and so does what other runners have."""
        ours = self.live_on(self._runners.home)
        self.leave()
        await asyncio.gather(*(live.lifecycle.shut_down() for live in ours), return_exceptions=True)
