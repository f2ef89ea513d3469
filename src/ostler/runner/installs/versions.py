"""Asks programs on the PATH for their version; for the catalogue only, because it runs them."""

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ostler.agents.adapter import Installation
from ostler.runner.runtimes.runtime import Start
from ostler.runner.starting.starter import OWN, Starter
from ostler.runner.starting.ways import asked

_QUESTIONS = ("--version", "version", "-V")
_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d[\w.+-]*)")
_SECONDS = 10.0


class Versions:
    """Remembers what each program said, until its file changes."""

    def __init__(self, starter: Starter, search: Sequence[str]) -> None:
        self._starter = starter
        self._path = os.pathsep.join(search)
        self._answers: dict[tuple[str, float], asyncio.Task[str | None]] = {}

    async def of(self, installation: Installation) -> str | None:
        """The version of a program, or None if it does not tell."""
        if installation.version is not None:
            return installation.version
        if (key := _identity(installation.path)) is None:
            return None
        if key not in self._answers:
            self._answers[key] = asyncio.create_task(self._ask(installation.command))
        return await asyncio.shield(self._answers[key])

    async def _ask(self, command: tuple[str, ...]) -> str | None:
        with tempfile.TemporaryDirectory(prefix="ostler-", ignore_cleanup_errors=True) as home:
            for question in _QUESTIONS:
                start = Start(grant=OWN, argv=(*command, question), env={"PATH": self._path}, home=home, cwd=home)
                code, output = await self._starter.start(start, asked(_SECONDS))
                if code is None:  # one that hangs is not asked again
                    break
                if code == 0 and (found := _VERSION.search(output.decode(errors="replace"))):
                    return found[1]
        return None


def _identity(path: str) -> tuple[str, float] | None:
    try:
        return path, Path(path).stat().st_mtime
    except OSError:
        return None
