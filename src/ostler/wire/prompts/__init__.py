"""Prompts that people saved to use them again."""

from typing import Annotated

import msgspec

from ostler.wire.struct import Answer, Body
from ostler.wire.texts import Prompt

ARGUMENTS = "$ARGUMENTS"
"""Stands in the text of a prompt for what is given when it is used."""
NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
LONGEST_TEXT = 20_000
LONGEST_DESCRIPTION = 200
MOST_PROMPTS = 200
"""In one project."""

PromptName = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": NAME})]
_Text = Annotated[Prompt, msgspec.Meta(extra_json_schema={"maxLength": LONGEST_TEXT})]
_Line = Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": LONGEST_DESCRIPTION})]


class SavedPrompt(Answer, frozen=True, kw_only=True):
    """One prompt; `$ARGUMENTS` in its text stands for what is given when it is used."""

    name: str
    text: str
    description: str | None = None
    created_at: str
    updated_at: str


class SavedPromptList(Answer, frozen=True, kw_only=True):
    """All of a project, by name."""

    items: tuple[SavedPrompt, ...]


class SavePrompt(Body, frozen=True, kw_only=True):
    """A prompt to save: its name (lower-case letters, digits and `._-`) is what people write after a slash."""

    name: PromptName
    text: _Text
    description: _Line | None = None
    """One line for whoever looks for it."""


class EditPrompt(Body, frozen=True, kw_only=True):
    """What is to change; what is absent stays, and an empty description is none."""

    name: PromptName | None = None
    text: _Text | None = None
    description: _Line | None = None


def filled(text: str, arguments: str) -> str:
    """The text of a prompt with what was given in its places, or below it if it names none."""
    if ARGUMENTS in text:
        return text.replace(ARGUMENTS, arguments)
    return f"{text}\n\n{arguments}" if arguments else text
