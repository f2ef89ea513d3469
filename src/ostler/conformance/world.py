"""What an agent does beside its events: files in its workspace, and what it tells its model."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ostler.conformance.model import ScriptedModel
from ostler.conformance.outcomes import Unmet

_LONGEST_SECONDS = 30.0
_LOOK_SECONDS = 0.05


class World(Protocol):
    """What a case can do and see beside the events."""

    @property
    def cwd(self) -> Path:
        """The workspace."""

    def put(self, name: str, content: bytes) -> None:
        """Make a file before the agent looks."""

    def content(self, name: str) -> str | None:
        """What a file holds; None if there is none."""

    def reached_model(self, pattern: str, told: str = "") -> bool:
        """Whether this was in a request to the model; an agent that has no model may have told it."""

    def efforts(self, told: str = "") -> set[str]:
        """The efforts that the model was asked for; an agent that has no model may have told it."""

    async def appears(self, name: str) -> None:
        """Wait until a file is there; raises Unmet."""

    async def known(self, native_session_id: str) -> None:
        """Wait until whoever keeps conversations has this one; raises Unmet."""


class LiveWorld:
    """The real workspace and the scripted model of one agent."""

    def __init__(self, cwd: Path, model: ScriptedModel) -> None:
        self.cwd = cwd
        self._model = model

    def put(self, name: str, content: bytes) -> None:
        """Make a file before the agent looks."""
        (self.cwd / name).write_bytes(content)

    def content(self, name: str) -> str | None:
        """What a file holds; None if there is none."""
        path = self.cwd / name
        return path.read_text() if path.is_file() else None

    def reached_model(self, pattern: str, told: str = "") -> bool:
        """Whether this was in a request to the model; an agent that has no model may have told it."""
        requests = self._model.requests
        heard = str([request["body"] for request in requests]) if requests else told
        return re.search(pattern, heard) is not None

    def efforts(self, told: str = "") -> set[str]:
        """The efforts that the model was asked for; an agent that has no model may have told it."""
        requests = self._model.requests
        return set(_efforts([request["body"] for request in requests])) if requests else set(re.findall(r"\w+", told))

    async def appears(self, name: str) -> None:
        """Wait until a file is there."""
        await _until((self.cwd / name).exists, f"there is no file '{name}'")

    async def known(self, native_session_id: str) -> None:
        """Wait until whoever keeps conversations has this one."""
        await _until(
            lambda: self._model.knows(native_session_id), f"its service has no conversation {native_session_id}"
        )


async def _until(holds: Callable[[], bool], otherwise: str) -> None:
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            while not holds():  # noqa: ASYNC110  it happens in other processes and threads
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise Unmet(otherwise) from None


def _efforts(value: Any) -> list[str]:
    """Every text under a name that speaks of effort."""
    if isinstance(value, list):
        return [found for each in value for found in _efforts(each)]
    if not isinstance(value, dict):
        return []
    own = [each for name, each in value.items() if "effort" in name.lower() and isinstance(each, str)]
    return own + [found for each in value.values() for found in _efforts(each)]
