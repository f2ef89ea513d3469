"""What a server asks of its store about templates."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec


class RevisionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a template, without its files."""

    project: str
    name: str
    revision: str
    about: bytes
    """What it says of itself, as JSON."""
    created_at: str


class TagRow(msgspec.Struct, frozen=True):
    """A tag of a template, and which revision has it."""

    name: str
    tag: str
    revision: str


class Templates(Protocol):
    """The templates of projects; a revision never changes once it is there."""

    def add(self, new: RevisionRow, content: bytes, tags: Sequence[str]) -> "asyncio.Future[bool]":
        """There is this revision, and it has these tags from now on; False if it was there before."""
        ...

    def tag(self, project: str, name: str, tag: str, revision: str) -> "asyncio.Future[None]":
        """A revision has a tag from now on, and no other has it any more."""
        ...

    def remove(self, project: str, name: str) -> "asyncio.Future[bool]":
        """All of a template is gone; False if there was none."""
        ...

    async def revisions(self, project: str, name: str | None = None) -> list[RevisionRow]:
        """The revisions of one template or of all, the newest first."""
        ...

    async def tags(self, project: str, name: str | None = None) -> list[TagRow]:
        """The tags of one template or of all."""
        ...

    async def content(self, project: str, name: str, revision: str) -> bytes | None:
        """The files of one revision."""
        ...
