"""Asks programs on the PATH for their version; for the catalogue only, because it runs them."""

import asyncio
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ostler.agents.adapter import Installation
from ostler.runner.installs.toolbox import answer

_QUESTIONS = ("--version", "version", "-V")
_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d[\w.+-]*)")
_SECONDS = 10.0


class Versions:
    """Remembers what each program said, until its file changes."""

    def __init__(self, environ: Mapping[str, str], search: Sequence[str]) -> None:
        self._environ = {name: environ[name] for name in ("LANG", "TZ") if name in environ}
        self._environ["PATH"] = ":".join(search)
        self._answers: dict[tuple[str, float], asyncio.Task[str | None]] = {}

    async def of(self, installation: Installation) -> str | None:
        """The version of a program, or None if it does not tell."""
        if installation.version is not None:
            return installation.version
        if (key := _identity(installation.path)) is None:
            return None
        if key not in self._answers:
            self._answers[key] = asyncio.create_task(asyncio.to_thread(self._ask, installation.command))
        return await asyncio.shield(self._answers[key])

    def _ask(self, command: Sequence[str]) -> str | None:
        with tempfile.TemporaryDirectory(prefix="ostler-", ignore_cleanup_errors=True) as home:
            environ = {**self._environ, "HOME": home, "TMPDIR": home}
            answers = (answer((*command, question), environ, seconds=_SECONDS) for question in _QUESTIONS)
            with suppress(TimeoutError):  # one that hangs is not asked again
                return next((found[1] for text in answers if (found := _VERSION.search(text or ""))), None)
        return None


def _identity(path: str) -> tuple[str, float] | None:
    try:
        return path, Path(path).stat().st_mtime
    except OSError:
        return None
