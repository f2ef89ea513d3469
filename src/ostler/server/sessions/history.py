"""Reading a session's log back: page by page, folded, or retold to an agent that does not remember it."""

from collections.abc import AsyncIterator, Iterable

from msgspec.structs import replace

from ostler.server.sessions.transcript import Transcript
from ostler.server.store import queries
from ostler.server.store.records import StoredEvent
from ostler.server.store.store import Store
from ostler.wire.events import decode_event
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.running import Prompt

_PAGE = 5000
_LONGEST = 48_000
_LONGEST_PART = 4000
_BEFORE = "This conversation began earlier, and you have no memory of it. What was said and done so far:"
_AFTER = "End of what happened earlier. Go on from there; the next message is new."


async def pages(store: Store, session_id: str, offset: int) -> AsyncIterator[list[StoredEvent]]:
    """The whole log after the offset, page by page."""
    while page := await store.read(queries.session_events, session_id, offset, _PAGE, False):
        yield page
        offset = page[-1].number


async def transcript_of(store: Store, session_id: str, offset: int = 0) -> Transcript:
    """The folded log after the offset."""
    transcript = Transcript()
    async for page in pages(store, session_id, offset):
        transcript.add(decode_event(event.body) for event in page)
    return transcript


def retold(prompt: Prompt, transcript: Transcript) -> Prompt:
    """The prompt with what came before it in front; of a long conversation only the end is told."""
    items = [message.item for message in transcript.messages() if message.turn_id != prompt.turn_id]
    told = "\n\n".join(_newest(_lines(items)))
    if not told:
        return prompt
    return replace(prompt, parts=(TextPart(text=f"{_BEFORE}\n\n{told}\n\n{_AFTER}"), *prompt.parts))


def _lines(items: Iterable[Item]) -> list[str]:
    said = ((item, _said(item.content)) for item in items)
    return [f"{item.role or item.kind}: {_quoted(text)}" for item, text in said if text]


def _quoted(text: str) -> str:
    """No line begins as it did: an agent that obeys certain lines must not take what is old for an order."""
    return "\n> ".join(text.splitlines())


def _said(content: Iterable[ContentPart]) -> str:
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


def _newest(lines: list[str]) -> list[str]:
    left = _LONGEST
    kept: list[str] = []
    for line in reversed(lines):
        left -= len(line)
        if left < 0:
            return ["(The beginning is left out.)", *kept]
        kept.insert(0, line)
    return kept
