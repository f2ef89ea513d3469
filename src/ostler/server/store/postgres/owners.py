"""Which server has a session of a PostgreSQL database."""

from collections.abc import Sequence

from ostler.server.store.peers import Member, Peers
from ostler.server.store.postgres import statements
from ostler.server.store.postgres.address import Address
from ostler.server.store.postgres.line import Line
from ostler.server.store.postgres.links import PostgresLinks
from ostler.server.store.postgres.writer import Writer
from ostler.server.store.sql.verbs import Reader


class PostgresOwners:
    """Implements Owners."""

    def __init__(self, reader: Reader, writer: Writer, address: Address) -> None:
        self._reader = reader
        self._writer = writer
        self._address = address

    async def join(self, member: Member) -> Peers:
        """Be one of the servers of this database."""
        line = Line(self._address, member, PostgresLinks(member.id, member.timeout, self._reader, self._writer))
        await line.open()
        return line

    async def claim(self, owner: str, session_ids: Sequence[str] | None = None) -> int:
        """Have these sessions, or all that no other server has, from now on."""
        return await self._writer.submit(lambda transaction: statements.claim(transaction, owner, session_ids))

    async def take(self, owner: str, session_id: str, epoch: int) -> int | None:
        """Have a session that somebody had in this epoch."""
        return await self._writer.submit(lambda transaction: statements.take(transaction, owner, session_id, epoch))
