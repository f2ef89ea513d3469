"""What a server asks of its store about saved prompts."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from ostler.server.store.records import PromptRow


class Prompts(Protocol):
    """The prompts that the people of a project saved; a name is there once in a project."""

    async def all(self, project: str) -> list[PromptRow]:
        """Those of a project, by name."""
        ...

    async def find(self, project: str, name: str) -> PromptRow | None:
        """One of them."""
        ...

    def add(self, new: PromptRow, most: int) -> "asyncio.Future[None]":
        """There is one more; refused with PromptExists, or TooManyPrompts if its project has so many already."""
        ...

    def change(self, project: str, name: str, changes: Mapping[str, str | None]) -> "asyncio.Future[PromptRow]":
        """One of them has these values from now on, and the others stay as they are.

        Refused with PromptNotFound, or with PromptExists if its new name is another's.
        """
        ...

    def remove(self, project: str, name: str) -> "asyncio.Future[bool]":
        """It is gone; False if there was none."""
        ...
