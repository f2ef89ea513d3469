"""What a model can do in one reply."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ostler.conformance.model.conversation import Json, Tool


@dataclass(frozen=True)
class Think:
    """Reasoning."""

    text: str


@dataclass(frozen=True)
class Say:
    """Text."""

    text: str
    chunks: int = 0  # 0: split into words
    interval: float = 0.0


@dataclass(frozen=True)
class Wait:
    """Silence."""

    seconds: float


@dataclass(frozen=True)
class Call:
    """A call of one of the agent's tools."""

    tool: Tool
    arguments: Json | str  # str for a freeform tool
    broken: bool = False

    @property
    def written(self) -> str:
        """The arguments as the model writes them, which may be no JSON."""
        text = json.dumps(self.arguments)
        return text[:-2] if self.broken else text


Block = Think | Say | Wait | Call


@dataclass(frozen=True)
class Fault:
    """A reply that is not a reply."""

    kind: str  # "status", "malformed", "cut", "quiet", "inside" or "limit"
    status: int = 0
    seconds: int = 0  # until a limit ends
    after: float | None = None  # seconds that a status tells to wait
    words: str = ""  # instead of the usual ones


@dataclass
class Reply:
    """One reply of the model."""

    blocks: list[Block]
    fault: Fault | None = None
    stop: str | None = None  # "refusal" or "length", instead of a usual end

    @property
    def has_call(self) -> bool:
        return any(isinstance(b, Call) for b in self.blocks)


class ScriptError(Exception):
    """The script asks for something this request cannot give (a missing tool...)."""
