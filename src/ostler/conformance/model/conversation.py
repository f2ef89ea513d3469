"""The request of an agent, whatever dialect it was written in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A tool the agent offers to the model."""

    name: str
    schema: Json = field(default_factory=dict)
    freeform: bool = False  # Responses "custom" tool: the input is raw text, not JSON
    namespace: str | None = None  # Responses: tools may be grouped in a namespace
    finds_tools: bool = False  # Responses "tool_search": more tools are offered once it was called


@dataclass
class Turn:
    """One side's contribution: consecutive items of one side are merged."""

    side: str  # "user" or "model"
    text: str = ""
    calls: int = 0  # tool calls made (model side)
    searches: int = 0  # searches for tools (model side); they take no line of the script
    results: list[str] = field(default_factory=list)  # tool results (user side)
    images: int = 0


@dataclass
class Conversation:
    """Everything the model is told."""

    model: str
    stream: bool
    system: str
    turns: list[Turn]
    tools: list[Tool]
    signs: bool = False  # thoughts are signed, and what comes back is looked at
    counted: tuple[int, int] | None = None  # tokens of the request, and how many of them were cached

    @property
    def last_user_text(self) -> str:
        return next((t.text for t in reversed(self.turns) if t.side == "user" and t.text), "")

    @property
    def last_result(self) -> str | None:
        for turn in reversed(self.turns):
            if turn.side == "user" and turn.results:
                return turn.results[-1]
        return None


class TurnList:
    """Builds the turn list, merging consecutive items of one side."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []

    def at(self, side: str) -> Turn:
        if not self.turns or self.turns[-1].side != side:
            self.turns.append(Turn(side))
        return self.turns[-1]

    def say(self, side: str, text: str) -> None:
        if side == "user" and SCRIPT_LINE.search(text):
            # A script never merges with the one before it: after an interrupt two
            # user messages may follow each other, and only the last one counts.
            self.turns.append(Turn(side))
        turn = self.at(side)
        turn.text = f"{turn.text}\n{text}" if turn.text else text


# Agents may put a prefix ("[[PLAN]] ", "<message>") before the user's words.
SCRIPT_LINE = re.compile(r"(?:^|[ \t>\]])SCRIPT:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
