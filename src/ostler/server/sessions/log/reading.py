"""What can be read of a session's log; each of these costs as much as it answers, however long the log is."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from ostler.server.sessions.log.history import PAGE_BYTES, messages_of, pages
from ostler.server.store.protocol import Store
from ostler.server.store.records import SessionRecord, StoredEvent
from ostler.wire.items import Item
from ostler.wire.sessions import Ask, Message, Turn
from ostler.wire.workspaces import Snapshot

_PAGE = 200
_PAGES_AT_ONCE = 2
"""Pages of events that are read and not yet taken by who asked: however many ask, no more of them are in memory."""


class Reading:
    """The reading half of the sessions."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pages = asyncio.Semaphore(_PAGES_AT_ONCE)

    async def messages(self, session_id: str, offset: int, limit: int) -> tuple[list[Message], bool]:
        """A part of the folded transcript, and whether there is more of it."""
        items = await self.store.logs.items_after(session_id, offset, limit + 1)
        return await messages_of(self.store, session_id, items[:limit]), len(items) > limit

    async def messages_since(self, session_id: str, sequence: int) -> list[Message]:
        """The messages that began after an event."""
        return await messages_of(self.store, session_id, await self.store.logs.items_since(session_id, sequence))

    async def message_pages(self, session_id: str) -> AsyncIterator[list[Item]]:
        """The finished messages of the conversation in the order they were finished, page by page."""
        sequence = 0
        while items := await self.store.logs.messages_after(session_id, sequence, _PAGE):
            yield [message.item for message in await messages_of(self.store, session_id, items)]
            sequence = items[-1].last

    def pages(self, session_id: str, offset: int) -> AsyncIterator[list[StoredEvent]]:
        """The whole log after the offset, page by page."""
        return pages(self.store, session_id, offset)

    async def events(
        self, session_id: str, offset: int, limit: int, *, raw: bool = False, max_bytes: int = PAGE_BYTES
    ) -> list[StoredEvent]:
        """Stored events after the offset; fewer than `limit` of them if they are large."""
        async with self._pages:
            return await self.store.logs.events(session_id, offset, limit, raw=raw, max_bytes=max_bytes)

    async def project_events(
        self, project: str, offset: int, limit: int, *, raw: bool = False, max_bytes: int = PAGE_BYTES
    ) -> list[StoredEvent]:
        """Stored events of all sessions after a position; fewer than `limit` of them if they are large."""
        async with self._pages:
            return await self.store.logs.project_events(project, offset, limit, max_bytes)

    async def lines(self, session_id: str, limit: int) -> list[StoredEvent]:
        """The newest events that a log tells in a line."""
        return await self.store.logs.lines(session_id, limit)

    async def artifacts(self, session_id: str, limit: int) -> list[StoredEvent]:
        """The newest reference to each file that the agent made."""
        return await self.store.logs.artifacts(session_id, limit)

    async def snapshots(self, session_id: str) -> list[Snapshot]:
        """All snapshots of a session."""
        return await self.store.logs.snapshots(session_id)

    async def turns(self, session_id: str) -> list[Turn]:
        """All turns of a session."""
        return await self.store.logs.turns(session_id)

    async def turn_around(self, session_id: str, sequence: int) -> Turn | None:
        """The last turn that began at the sequence or before it."""
        return await self.store.logs.turn_around(session_id, sequence)

    async def branching_turns(self, session_id: str) -> list[Turn]:
        """The turns that go on from another one than the one before them, in order."""
        return await self.store.logs.branching_turns(session_id)

    async def turns_within(self, session_id: str, spans: list[tuple[int, int]]) -> list[Turn]:
        """The turns whose numbers are in one of the spans."""
        return await self.store.logs.turns_within(session_id, spans)

    async def find_turn(self, session_id: str, which: int | str) -> Turn | None:
        """A turn by its number or its id."""
        return await self.store.logs.find_turn(session_id, which)

    async def branches(self, root: SessionRecord, keys: tuple[str, str], limit: int) -> tuple[list[SessionRecord], int]:
        """The newest sessions that branched off from one, and how many keys of such are taken."""
        return await self.store.find_branches(root.project, root.id, keys, limit)

    async def known_asks(self, session_id: str, ask_ids: Iterable[str]) -> list[Ask]:
        """Those of the asks that the session knows, open or decided."""
        found = [await self.store.logs.find_ask(session_id, ask_id) for ask_id in ask_ids]
        return [ask for ask in found if ask is not None]

    async def asks(self, project: str, session_id: str | None, *, only_open: bool) -> list[Ask]:
        """The inbox."""
        return await self.store.logs.asks(project, session_id, only_open=only_open)
