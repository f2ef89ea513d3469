"""What of an item people look for."""

import functools
import re

import msgspec

from ostler.server.store.search import CompletedItem, Entry
from ostler.wire.events import ItemCompleted, decode_event
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, FileRefPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

_MOST = 20_000
_MOST_OF_RESULT = 4_000
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")


class _Past(msgspec.Struct):
    """The part of a session's state that says who had it before."""

    earlier_agents: tuple[tuple[str, int], ...] = ()


_past = msgspec.json.Decoder(_Past)
_ROLES = {"message": "assistant", "tool_call": "tool", "tool_result": "tool"}


def entry_of(item: CompletedItem) -> Entry | None:
    """What the index remembers of an item; None if there are no words in it."""
    event = decode_event(item.body)
    if not isinstance(event, ItemCompleted) or event.data.item.kind not in _ROLES:
        return None
    text = "\n".join(filter(None, map(_words, event.data.item.content)))
    text = _CONTROL.sub(" ", text[:_MOST]).strip()
    if not text:
        return None
    return Entry(item.project, item.session, _agent_of(item), item.first, _role(event.data.item), event.time, text)


def _agent_of(item: CompletedItem) -> str:
    """Whoever had the session when the item began: it may have been handed over since."""
    earlier = _earlier_agents(item.state)
    return next((agent for agent, until in earlier if item.first < until), item.agent)


@functools.lru_cache(maxsize=256)
def _earlier_agents(state: bytes) -> tuple[tuple[str, int], ...]:
    return _past.decode(state).earlier_agents


def _role(item: Item) -> str:
    is_thought = bool(item.content) and all(isinstance(part, ReasoningPart) for part in item.content)
    return "thought" if is_thought else "user" if item.role == "user" else _ROLES[item.kind]


def _words(part: ContentPart) -> str:
    match part:
        case TextPart() | ReasoningPart():
            return part.text
        case ToolCallPart():
            return f"{part.name} {part.arguments}"
        case ToolResultPart():
            return part.output[:_MOST_OF_RESULT]
        case FileRefPart():
            return part.path
    return ""
