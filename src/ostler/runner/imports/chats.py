"""One conversation while its file is read, line by line."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from ostler.wire.agents import EarlierTalk, EarlierTurn
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

Line: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[["Chat", Line], None]

_LONGEST = 64 * 1024
_MOST_ITEMS = 4000
_MOST_TEXT = 8 * 2**20
_OURS = (
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<session_context>",
    "<command-",
    "<local-",
)
"""How texts begin that stand for the user, but that the agent's program wrote."""


class _Turn(NamedTuple):
    """A prompt and what followed."""

    time: str
    prompt: str
    items: list[Item]


class Chat:
    """What is known of a conversation so far; of a long one only the end."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.folder: str | None = None
        self.name: str | None = None
        """What the agent's program calls it, if it does."""
        self._first: str | None = None
        self._turns: list[_Turn] = []
        self._omitted = 0
        self._made = 0
        self._items = 0
        self._text = 0

    @property
    def title(self) -> str | None:
        """What it is called, or what was asked first."""
        return self.name or self._first

    def is_known(self) -> bool:
        """Whether it can be listed."""
        return isinstance(self.id, str) and isinstance(self.folder, str) and self._first is not None

    def asked(self, time: object, text: str) -> None:
        """The user said something, which begins a turn."""
        words, at = text.strip(), _time(time) or (self._turns[-1].time if self._turns else None)
        if words and not words.startswith(_OURS) and at is not None:
            self._first = self._first or words[:_LONGEST]
            self._turns.append(_Turn(at, words[:_LONGEST], []))
            self._count(len(self._turns[-1].prompt))

    def spoke(self, text: object) -> None:
        """The agent said something."""
        if isinstance(text, str) and text.strip():
            self._add("message", TextPart(text=text[:_LONGEST]))

    def thought(self, text: object) -> None:
        """The model thought aloud."""
        if isinstance(text, str) and text.strip():
            self._add("message", ReasoningPart(text=text[:_LONGEST], visibility="public"))

    def called(self, call: object, name: object, arguments: object) -> None:
        """The agent used a tool."""
        given = arguments if isinstance(arguments, str) else json.dumps(arguments)
        self._add("tool_call", ToolCallPart(name=str(name), arguments=given[:_LONGEST], call_id=str(call)), str(call))

    def answered(self, call: object, output: object, *, failed: bool = False) -> None:
        """The tool answered."""
        part = ToolResultPart(call_id=str(call), output=text_of(output)[:_LONGEST])
        self._add("tool_result", part, str(call), status="failed" if failed else "completed")

    def _add(self, kind: Any, part: ContentPart, call: str | None = None, *, status: ItemStatus = "completed") -> None:
        if not self._turns:
            return
        items = self._turns[-1].items
        self._made += 1
        parent = next((item.item_id for item in reversed(items) if call and item.native_item_id == call), None)
        role: Any = "tool" if kind == "tool_result" else "assistant"
        made = Item(
            item_id=f"itm_earlier_{self._omitted + len(self._turns)}_{self._made}",
            kind=kind,
            role=role,
            status=status,
            content=(part,),
            native_item_id=call if kind == "tool_call" else None,
            parent_id=parent if kind == "tool_result" else None,
        )
        items.append(made)
        self._count(_length(made))

    def _count(self, length: int) -> None:
        """One more; the oldest turns make room for it, but never the last."""
        self._items += 1
        self._text += length
        while len(self._turns) > 1 and (self._items > _MOST_ITEMS or self._text > _MOST_TEXT):
            gone = self._turns.pop(0)
            self._omitted += 1
            self._items -= 1 + len(gone.items)
            self._text -= len(gone.prompt) + sum(_length(item) for item in gone.items)
        if self._items > _MOST_ITEMS or self._text > _MOST_TEXT:
            first = self._turns[0].items.pop(0)
            self._items -= 1
            self._text -= _length(first)

    def whole(self) -> EarlierTalk:
        """The end of it, as much as a session takes over."""
        turns = (EarlierTurn(time=each.time, prompt=each.prompt, items=tuple(each.items)) for each in self._turns)
        return EarlierTalk(turns=tuple(turns), omitted=self._omitted)


def _time(given: object) -> str | None:
    """A time as programs write it, a text or milliseconds since 1970, in the words of the log."""
    try:
        match given:
            case str():
                found = datetime.fromisoformat(given)
                return moment((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
            case int() | float() if not isinstance(given, bool):
                return moment(given / 1000)
    except (OverflowError, OSError, ValueError):
        pass
    return None


def moment(seconds: float) -> str:
    """Seconds since 1970 as the log writes them."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _length(item: Item) -> int:
    match item.content[0]:
        case TextPart(text=text) | ReasoningPart(text=text):
            return len(text)
        case ToolCallPart(arguments=text) | ToolResultPart(output=text):
            return len(text)
        case _:
            return 0


def text_of(content: object) -> str:
    """The words of a content: a text, or a list of parts with texts, or whatever it is as JSON."""
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
        case {"output": str(output)}:
            return output
        case _:
            return json.dumps(content)
