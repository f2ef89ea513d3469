"""What can be read of a session's log; each of these costs as much as it answers, however long the log is."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from ostler.server.sessions.log.history import PAGE_BYTES, messages_of
from ostler.server.store.protocol import Store
from ostler.server.store.records import DONE, StoredEvent
from ostler.wire.items import Item
from ostler.wire.sessions import Ask, Message

_PAGE = 200
_PAGES_AT_ONCE = 2
"""Pages of events that are read and not yet taken by who asked: however many ask, no more of them are in memory."""


class Reads:
    """Reads of logs that are more than one question to the store."""

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

    async def known_asks(self, session_id: str, ask_ids: Iterable[str]) -> list[Ask]:
        """Those of the asks that the session knows, open or decided."""
        found = [await self.store.logs.find_ask(session_id, ask_id) for ask_id in ask_ids]
        return [ask for ask in found if ask is not None]

    async def outcome_of(self, claim: str | None) -> bytes | None:
        """What came of an act that an earlier server did and had no time to answer for."""
        known = await self.store.find_response(DONE, claim) if claim is not None else None
        return known.body if known is not None else None
