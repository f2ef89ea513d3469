"""What can be read of a session's log; each of these costs as much as it answers, however long the log is."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec.structs import replace

from ostler.server.sessions.log.transcript import Transcript
from ostler.server.store.protocol import Store
from ostler.server.store.records import DONE, StoredEvent, StoredItem
from ostler.wire.events import ItemCompleted, ItemStarted, decode_event
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.running import Prompt
from ostler.wire.sessions import Ask, Message

_PAGE = 200


_EVENTS_AT_ONCE = 5000
_PAGES_AT_ONCE = 2
"""Pages of events that are read and not yet taken by who asked: however many ask, no more of them are in memory."""
PAGE_BYTES = 256 * 1024
"""What is read from the store at a time, but for an event that is larger."""


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


_FEW = 100
_NO_NUMBER = 2**53
_LONGEST = 48_000
_LONGEST_PART = 4000
_BEFORE = "This conversation began earlier, and you have no memory of it. What was said and done so far:"
_AFTER = "End of what happened earlier. Go on from there; the next message is new."


async def pages(store: Store, session_id: str, offset: int, *, raw: bool = False) -> AsyncIterator[list[StoredEvent]]:
    """The whole log after the offset, page by page."""
    while page := await store.logs.events(session_id, offset, _EVENTS_AT_ONCE, raw=raw, max_bytes=PAGE_BYTES):
        yield page
        offset = page[-1].number


async def transcript_of(store: Store, session_id: str, offset: int = 0) -> Transcript:
    """The folded log after the offset."""
    transcript = Transcript()
    async for page in pages(store, session_id, offset):
        transcript.add(decode_event(event.body) for event in page)
    return transcript


async def messages_of(store: Store, session_id: str, items: Sequence[StoredItem]) -> list[Message]:
    """Items with their content; of one that still grows, what the log has from its beginning on."""
    first_open = min((item.last for item in items if item.is_open), default=None)
    grown: dict[str, Message] = {}
    if first_open is not None:
        transcript = await transcript_of(store, session_id, first_open - 1)
        grown = {message.item.item_id: message for message in transcript.messages()}
    found = (_message(stored, grown) for stored in items)
    return [message for message in found if message is not None]


def _message(stored: StoredItem, grown: dict[str, Message]) -> Message | None:
    event = decode_event(stored.body)
    if not isinstance(event, ItemStarted | ItemCompleted):
        return None
    item, last = event.data.item, stored.last
    if stored.is_open and (known := grown.get(item.item_id)) is not None:
        item, last = known.item, known.last_sequence
    return Message(item=item, first_sequence=stored.first, last_sequence=last, turn_id=stored.turn_id)


async def newest_first(store: Store, session_id: str) -> AsyncIterator[Message]:
    """The messages of the conversation, from its end."""
    number = _NO_NUMBER
    while items := await store.logs.items_before(session_id, number, _FEW):
        for message in await messages_of(store, session_id, items):
            yield message
        number = items[-1].number


async def with_history(store: Store, session_id: str, prompt: Prompt) -> Prompt:
    """The prompt with what came before it in front; of a long conversation only the end is included."""
    lines: list[str] = []
    left = _LONGEST
    async for message in newest_first(store, session_id):
        line = _line(message.item) if message.turn_id != prompt.turn_id else None
        if line is None:
            continue
        left -= len(line)
        lines.append(line if left >= 0 else "(The beginning is left out.)")
        if left < 0:
            break
    if not lines:
        return prompt
    before = "\n\n".join(reversed(lines))
    return replace(prompt, parts=(TextPart(text=f"{_BEFORE}\n\n{before}\n\n{_AFTER}"), *prompt.parts))


def _line(item: Item) -> str | None:
    text = _text(item.content)
    return f"{item.role or item.kind}: {_quoted(text)}" if text else None


def _quoted(text: str) -> str:
    """No line begins as it did: an agent that obeys certain lines must not take what is old for an order."""
    return "\n> ".join(text.splitlines())


def _text(content: Iterable[ContentPart]) -> str:
    return "\n".join(filter(None, map(_part, content)))


def _part(part: ContentPart) -> str:
    match part:
        case TextPart(text=text):
            return _cut(text)
        case ToolCallPart(name=name, arguments=arguments):
            return _cut(f"[called {name}: {arguments}]")
        case ToolResultPart(output=output):
            return _cut(f"[result: {output}]")
        case _:
            return ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART]} ... (cut)"
