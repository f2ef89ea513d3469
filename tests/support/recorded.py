"""Recordings of real agents: what was written to them and what they answered, line by line."""

import json
from pathlib import Path
from typing import Any, Literal

import msgspec

FOLDER = Path(__file__).parents[1] / "fixtures" / "agents"
Direction = Literal["in", "out", "err", "http", "sse", "note"]


class Line(msgspec.Struct, frozen=True):
    """One message of a recording."""

    dir: Direction
    data: Any
    t: float = 0.0

    @property
    def frame(self) -> bytes:
        """The message as it stood on the wire."""
        return self.data.encode() if isinstance(self.data, str) else json.dumps(self.data).encode()


class Recording(msgspec.Struct, frozen=True):
    """One case of one agent."""

    agent: str
    case: str
    header: dict[str, Any]
    lines: tuple[Line, ...]


def recordings(agent: str) -> list[Recording]:
    """All recordings of an agent; a new one is only a new file."""
    return [read(agent, path) for path in sorted((FOLDER / agent).glob("*.jsonl"))]


def read(agent: str, path: Path) -> Recording:
    """One file."""
    first, *rest = path.read_bytes().splitlines()
    lines = tuple(msgspec.json.decode(line, type=Line) for line in rest)
    return Recording(agent, path.stem, json.loads(first)["header"], lines)
