"""What this server has of the sessions on a runner, when that changes all at once."""

from ostler.base.errors.runners import LinkLost
from ostler.server.sessions.runners.waiting import WaitingSession
from ostler.server.sessions.service import Sessions


class Takeover:
    """Takes sessions from other servers, and lets go of what they took."""

    def __init__(self, sessions: Sessions) -> None:
        self._store = sessions.store
        self._registry = sessions.registry
        self._ownership = sessions.ownership
        self._peers = sessions.ownership.peers

    async def claim_all_on(self, runner: str) -> None:
        """Have all sessions of a runner, whoever had them: its link is here. Raises LinkLost if it is not any more."""
        if self._peers is not None:
            async with self._registry.steady():
                for live in self._registry.live_on(runner):
                    found = await self._store.find_session(live.core.record.project, live.core.id)
                    if found is None or (found.owner, found.epoch) != (self._ownership.owner, live.core.record.epoch):
                        self._registry.lose(live.core.id)  # another server had it meanwhile
                if not await self._peers.links.claim(runner, [live.core.id for live in self._registry.live_on(runner)]):
                    raise LinkLost(reason="the runner is linked to another server since")

    async def claim_home(self, runner: str) -> None:
        """Have what another server took of the runner of this process when this server was given up."""
        if self._peers is not None:
            others = [owner for owner in await self._peers.links.owners_on(runner) if owner != self._ownership.owner]
            if others:
                await self._peers.links.take_all_on(runner, others)

    async def take_lost_on(self, runner: str) -> bool:
        """Have what lost servers have on a runner; whether there was anything."""
        if self._peers is None:
            return False
        lost = [owner for owner in await self._peers.links.owners_on(runner) if self._peers.is_lost(owner)]
        if not lost:
            return False
        async with self._registry.steady():
            taken = await self._peers.links.take_all_on(runner, lost)
            for session_id in taken:
                self._registry.lose(session_id)  # what we had of it before the other server did
        return bool(taken)

    async def take_waiting(self, waiting: WaitingSession) -> bool:
        """Have a session that waits at another server; False if somebody was first."""
        if self._peers is None or waiting.epoch is None:
            return False
        async with self._registry.steady():
            if await self._peers.links.take_offer(waiting.id, waiting.epoch) is None:
                return False
            self._registry.lose(waiting.id)  # what we had of it before another server did
            return True
