"""What an agent does beside its events: files in its workspace, and what it tells its model."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ostler.conformance.model import ScriptedModel
from ostler.conformance.outcomes import Unmet

_LONGEST_SECONDS = 30.0
_LOOK_SECONDS = 0.05
_REST_SECONDS = 0.7
_HEARD_SECONDS = 4.0


class World(Protocol):
    """What a case can do and see beside the events."""

    @property
    def cwd(self) -> Path:
        """The workspace."""

    def put(self, name: str, content: bytes) -> None:
        """Make a file before the agent looks."""

    def content(self, name: str) -> str | None:
        """What a file holds; None if there is none."""

    def reached_model(self, pattern: str, answer: str = "") -> bool:
        """Whether this was in a request to the model; an agent that has no model may answer it."""

    def efforts(self, answer: str = "") -> set[str]:
        """The efforts that the model was asked for; an agent that has no model may answer it."""

    async def appears(self, name: str) -> None:
        """Wait until a file is there; raises Unmet."""

    async def answers(self, pattern: str, heard: Callable[[], bool]) -> None:
        """Wait until the model answers such a request, and for a moment until that is heard; raises Unmet."""

    async def known(self, native_session_id: str) -> None:
        """Wait until whoever keeps conversations has this one; raises Unmet."""


class LiveWorld:
    """The real workspace and the scripted model of one agent."""

    def __init__(self, folder: Path, model: ScriptedModel) -> None:
        self.cwd = folder / "workspace"
        self._home = folder / "home"
        self._model = model

    def put(self, name: str, content: bytes) -> None:
        """Make a file before the agent looks."""
        (self.cwd / name).write_bytes(content)

    def content(self, name: str) -> str | None:
        """What a file holds; None if there is none."""
        path = self.cwd / name
        return path.read_text() if path.is_file() else None

    def reached_model(self, pattern: str, answer: str = "") -> bool:
        """Whether this was in a request to the model; an agent that has no model may answer it."""
        requests = self._model.requests
        heard = str([request["body"] for request in requests]) if requests else answer
        return re.search(pattern, heard) is not None

    def efforts(self, answer: str = "") -> set[str]:
        """The efforts that the model was asked for; an agent that has no model may answer it."""
        requests = self._model.requests
        return set(_efforts([request["body"] for request in requests])) if requests else set(re.findall(r"\w+", answer))

    async def answers(self, pattern: str, heard: Callable[[], bool]) -> None:
        """Wait until the model answers; agents that tell only whole messages are heard too late."""
        await _until(lambda: heard() or self._was_asked(pattern), "the model was not asked")
        with suppress(Unmet):
            await _until(heard, "", longest=_HEARD_SECONDS)

    def _was_asked(self, pattern: str) -> bool:
        return any(re.search(pattern, str(request["body"])) for request in self._model.requests)

    async def appears(self, name: str) -> None:
        """Wait until a file is there."""
        await _until((self.cwd / name).exists, f"there is no file '{name}'")

    async def known(self, native_session_id: str) -> None:
        """Wait until whoever keeps conversations has this one: a service, or files that some agents write late."""
        await _until(
            lambda: self._model.knows(native_session_id), f"its service has no conversation {native_session_id}"
        )
        settled = SettledFolder(self._home)
        await _until(settled.is_quiet, "it never stops writing to its home", every=_REST_SECONDS / 2)


class SettledFolder:
    """Watches a folder until nothing in it has changed for a while."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, int]] = {}
        self._since = time.monotonic()

    def is_quiet(self) -> bool:
        """Look once more."""
        now = dict(_looked_at(self._folder))
        if now != self._seen:
            self._seen, self._since = now, time.monotonic()
        return time.monotonic() - self._since >= _REST_SECONDS


def _looked_at(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    for path in folder.rglob("*"):
        with suppress(OSError):  # gone in between
            facts = path.lstat()
            yield str(path), (facts.st_size, facts.st_mtime_ns)


async def _until(
    holds: Callable[[], bool], otherwise: str, *, every: float = _LOOK_SECONDS, longest: float = _LONGEST_SECONDS
) -> None:
    try:
        async with asyncio.timeout(longest):
            while not holds():  # noqa: ASYNC110  it happens in other processes and threads
                await asyncio.sleep(every)
    except TimeoutError:
        raise Unmet(otherwise) from None


def _is_effort(name: str) -> bool:
    return "effort" in name.lower() or name == "thinkingLevel"


def _efforts(value: Any) -> list[str]:
    """Every text under a name that speaks of effort, or of thinking as Gemini does."""
    if isinstance(value, list):
        return [found for each in value for found in _efforts(each)]
    if not isinstance(value, dict):
        return []
    own = [each for name, each in value.items() if _is_effort(name) and isinstance(each, str)]
    return own + [found for each in value.values() for found in _efforts(each)]
