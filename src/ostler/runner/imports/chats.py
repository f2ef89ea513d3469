"""One conversation while its file is read, line by line."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from ostler.wire.agents import EarlierTalk, EarlierTurn
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

Line: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[["Chat", Line], None]

_LONGEST = 64 * 1024
_MOST_ITEMS = 4000
_OURS = (
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<session_context>",
    "<command-",
    "<local-",
)
"""How texts begin that stand for the user, but that the agent's program wrote."""


class Chat:
    """What is known of a conversation so far."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.folder: str | None = None
        self._turns: list[tuple[str, str, list[Item]]] = []

    @property
    def title(self) -> str | None:
        """What was asked first."""
        return self._turns[0][1] if self._turns else None

    def is_known(self) -> bool:
        """Whether it can be listed."""
        return isinstance(self.id, str) and isinstance(self.folder, str) and self.title is not None

    def asked(self, time: object, text: str) -> None:
        """The user said something, which begins a turn."""
        words = text.strip()
        if words and not words.startswith(_OURS) and isinstance(time, str):
            self._turns.append((time, words[:_LONGEST], []))

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
        items = self._turns[-1][2]
        number = f"itm_earlier_{len(self._turns)}_{len(items) + 1}"
        parent = next((item.item_id for item in reversed(items) if call and item.native_item_id == call), None)
        role: Any = "tool" if kind == "tool_result" else "assistant"
        made = Item(
            item_id=number,
            kind=kind,
            role=role,
            status=status,
            content=(part,),
            native_item_id=call if kind == "tool_call" else None,
            parent_id=parent if kind == "tool_result" else None,
        )
        items.append(made)

    def whole(self) -> EarlierTalk:
        """The end of it, as much as a session takes over."""
        left, taken = _MOST_ITEMS, 0
        for _, _, items in reversed(self._turns):
            left -= len(items) + 1
            if left < 0 and taken:
                break
            taken += 1
        turns = self._turns[len(self._turns) - taken :]
        return EarlierTalk(
            turns=tuple(EarlierTurn(time=time, prompt=prompt, items=tuple(items)) for time, prompt, items in turns),
            omitted=len(self._turns) - taken,
        )


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
