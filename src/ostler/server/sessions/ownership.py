"""Which server has a session: each session is had by one, and a lost server's can be taken over."""

from ostler.base.clock import Clock
from ostler.server.sessions.log.state import state_in
from ostler.server.store.peers import Bell, Peers
from ostler.server.store.protocol import Store
from ostler.server.store.records import SessionRecord


class Ownership:
    """What this server has of the store; one that is alone has all."""

    def __init__(self, store: Store, owner: str, epoch: int, clock: Clock, peers: Peers | None = None) -> None:
        """`owner` is what this server is called as the one that has sessions, `epoch` counts its starts."""
        self.owner = owner
        self.epoch = epoch
        self._store = store
        self._clock = clock
        self.peers = peers

    def is_ours(self, record: SessionRecord) -> bool:
        """Whether this server has a session."""
        return self.peers is None or record.owner == self.owner

    def is_lost(self, owner: str) -> bool:
        """Whether another server is lost, so that its sessions can be taken over."""
        return self.peers is not None and self.peers.is_lost(owner)

    async def take_over_ended(self, record: SessionRecord) -> bool:
        """Have a session of a lost server that was over before it had a runner: nothing of it is on that machine."""
        if record.runner is not None or not self.is_lost(record.owner) or not state_in(record.state).ended:
            return False
        return await self._store.owners.take(self.owner, record.id, record.epoch) is not None

    async def delete(self, record: SessionRecord) -> bool:
        """Remove a session of a lost server from the store; False if another server was first."""
        epoch = await self._store.owners.take(self.owner, record.id, record.epoch)
        if epoch is None:
            return False
        await self._store.delete_session(record.id, epoch, self._clock.now())
        self.tell_deleted(record, epoch)
        return True

    def tell_deleted(self, record: SessionRecord, epoch: int) -> None:
        """Other servers need not follow a session any more."""
        if self.peers is not None:
            self.peers.ring(Bell(record.id, 0, 0, epoch, record.project))
