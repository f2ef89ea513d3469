"""What of an item people look for."""

import re

from ostler.server.store.search import CompletedItem, Entry
from ostler.wire.events import ItemCompleted, decode_event
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, FileRefPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

_MOST = 20_000
_MOST_OF_RESULT = 4_000
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
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
    return Entry(item.project, item.session, item.agent, item.first, _role(event.data.item), event.time, text)


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
