"""Which server has a session of a PostgreSQL database."""

from collections.abc import Sequence

from ostler.server.store.postgres import statements
from ostler.server.store.postgres.writer import Writer


class PostgresOwners:
    """Implements Owners."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def claim(self, owner: str, session_ids: Sequence[str] | None = None) -> int:
        """Have these sessions, or all that no other server has, from now on."""
        return await self._writer.submit(lambda transaction: statements.claim(transaction, owner, session_ids))

    async def take(self, owner: str, session_id: str, epoch: int) -> int | None:
        """Have a session that somebody had in this epoch."""
        return await self._writer.submit(lambda transaction: statements.take(transaction, owner, session_id, epoch))
