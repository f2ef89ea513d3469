"""Who has the sessions of a SQLite database: the one server that has its lock."""

from collections.abc import Sequence

from ostler.base.errors import StoreUnavailable
from ostler.server.store.peers import Member
from ostler.server.store.sql.reading import values_of
from ostler.server.store.sqlite import statements
from ostler.server.store.sqlite.database import Database


class SqliteOwners:
    """Implements Owners."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, member: Member) -> None:
        """There is one server, and nobody to join."""

    async def claim(self, owner: str, session_ids: Sequence[str] | None = None) -> int:
        """Have these sessions, or all; on a full disk in the epoch there is, for with our lock nobody makes another."""
        try:
            return await self._database.write(statements.claim, owner, session_ids)
        except StoreUnavailable:
            (epoch,) = await self._database.read(lambda: values_of("SELECT value FROM counters WHERE name = 'epoch'"))
            return int(epoch)

    async def take(self, owner: str, session_id: str, epoch: int) -> int | None:
        """Have a session that somebody had in this epoch."""
        return await self._database.write(statements.take, owner, session_id, epoch)
