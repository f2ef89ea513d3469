"""Finds conversations in a home folder, and copies one into the home of a session. Everything here blocks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from ostler.base.errors.runners import ConversationNotFound
from ostler.runner.imports.files import Files
from ostler.runner.imports.formats import FORMATS
from ostler.runner.imports.opencode import OpenCodeDatabase
from ostler.wire.agents import Conversation, EarlierTalk

_LONGEST_TITLE = 80


class Archive(Protocol):
    """Where one agent's own program has its conversations; nothing in there is ever changed."""

    def found(self, home: Path, environ: Mapping[str, str]) -> Iterator[Conversation]:
        """Those that can be gone on with; what is damaged or of another version is left out."""

    def bring(self, home: Path, environ: Mapping[str, str], conversation_id: str, into: Path) -> EarlierTalk | None:
        """Copy one into the home of a session; gives what was said, or None if there is no such conversation."""


ARCHIVES: Mapping[str, Archive] = {
    **{agent: Files(agent, form) for agent, form in FORMATS.items()},
    "opencode": OpenCodeDatabase(),
}


def conversation(home: Path, environ: Mapping[str, str], agent: str, conversation_id: str) -> Conversation:
    """One of them."""
    for each in _of_agent(home, environ, agent):
        if each.conversation_id == conversation_id:
            return each
    raise ConversationNotFound(agent=agent, conversation=conversation_id[:200])


def conversations(home: Path, environ: Mapping[str, str]) -> list[Conversation]:
    """Those that can be gone on with, the newest first."""
    found = [each for agent in ARCHIVES for each in _of_agent(home, environ, agent)]
    return sorted(found, key=lambda each: each.updated_at, reverse=True)


def bring(home: Path, environ: Mapping[str, str], agent: str, conversation_id: str, into: Path) -> EarlierTalk:
    """Copy a conversation into the home of a session, where the agent finds it again; gives what was said."""
    archive = ARCHIVES.get(agent)
    talk = archive.bring(home, environ, conversation_id, into) if archive is not None else None
    if talk is None:
        raise ConversationNotFound(agent=agent, conversation=conversation_id[:200])
    return talk


def _of_agent(home: Path, environ: Mapping[str, str], agent: str) -> Iterator[Conversation]:
    archive = ARCHIVES.get(agent)
    for each in archive.found(home, environ) if archive is not None else ():
        yield msgspec.structs.replace(each, title=_short(each.title))


def _short(title: str) -> str:
    line = " ".join(title.split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1].rstrip() + "…"
