"""Saved prompts: what they may be called and hold."""

import re
from typing import Any

from ostler.base.clock import Clock
from ostler.base.errors import InvalidRequest
from ostler.base.errors.prompts import PromptNotFound
from ostler.server.store.prompts import Prompts
from ostler.server.store.records import PromptRow
from ostler.wire.prompts import (
    LONGEST_DESCRIPTION,
    LONGEST_TEXT,
    MOST_PROMPTS,
    NAME,
    EditPrompt,
    SavedPrompt,
    SavePrompt,
)

_NAME = re.compile(NAME)


async def every(store: Prompts, project: str) -> tuple[SavedPrompt, ...]:
    """Those of a project, by name."""
    return tuple(map(_shown, await store.all(project)))


async def one(store: Prompts, project: str, name: str) -> SavedPrompt:
    """The one of that name."""
    found = await store.find(project, name)
    if found is None:
        raise PromptNotFound(name=name)
    return _shown(found)


async def save(store: Prompts, project: str, wanted: SavePrompt, clock: Clock) -> SavedPrompt:
    """Add one."""
    now = clock.now()
    new = PromptRow(
        project=project,
        name=_name(wanted.name),
        text=_text(wanted.text),
        description=_description(wanted.description or ""),
        created_at=now,
        updated_at=now,
    )
    await store.add(new, MOST_PROMPTS)
    return _shown(new)


async def edit(store: Prompts, project: str, name: str, wanted: EditPrompt, clock: Clock) -> SavedPrompt:
    """Change what is given."""
    changes: dict[str, Any] = {"updated_at": clock.now()}
    if wanted.name is not None:
        changes["name"] = _name(wanted.name)
    if wanted.text is not None:
        changes["text"] = _text(wanted.text)
    if wanted.description is not None:
        changes["description"] = _description(wanted.description)
    return _shown(await store.change(project, name, changes))


async def remove(store: Prompts, project: str, name: str) -> None:
    """Forget one."""
    if not await store.remove(project, name):
        raise PromptNotFound(name=name)


def _shown(row: PromptRow) -> SavedPrompt:
    return SavedPrompt(
        name=row.name,
        text=row.text,
        description=row.description,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        reason = "is no name: use up to 64 lower-case letters, digits and ._- and begin with a letter or digit"
        raise _refused("name", f"'{name[:80]}' {reason}")
    return name


def _text(text: str) -> str:
    if not text.strip():
        raise _refused("text", "is empty. Say what the agent should do")
    if len(text) > LONGEST_TEXT:
        raise _refused("text", f"has {len(text)} characters, and no more than {LONGEST_TEXT} are kept")
    return text


def _description(description: str) -> str | None:
    shown = (letter if letter.isprintable() else " " for letter in description)
    line = " ".join("".join(shown).split())
    if len(line) > LONGEST_DESCRIPTION:
        raise _refused("description", f"has {len(line)} characters, and no more than {LONGEST_DESCRIPTION} are kept")
    return line or None


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})
