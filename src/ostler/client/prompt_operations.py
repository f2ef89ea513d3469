"""The operations on saved prompts; part of the table."""

import msgspec

from ostler.client.calls import Call, delete, get, patch, post, segment
from ostler.wire.prompts import EditPrompt, SavedPrompt, SavedPromptList, SavePrompt

_prompt = msgspec.json.Decoder(SavedPrompt).decode


def list_prompts() -> Call[SavedPromptList]:
    """All saved prompts, by name."""
    return get("/prompts", msgspec.json.Decoder(SavedPromptList).decode)


def show_prompt(name: str) -> Call[SavedPrompt]:
    """One saved prompt."""
    return get(f"/prompts/{segment(name)}", _prompt)


def save_prompt(name: str, text: str, *, description: str | None = None) -> Call[SavedPrompt]:
    """Save a prompt; `$ARGUMENTS` in its text stands for what is given when it is used."""
    return post("/prompts", _prompt, SavePrompt(name=name, text=text, description=description))


def edit_prompt(
    name: str, *, new_name: str | None = None, text: str | None = None, description: str | None = None
) -> Call[SavedPrompt]:
    """Change a saved prompt; what is not given stays, and an empty description is none."""
    return patch(f"/prompts/{segment(name)}", _prompt, EditPrompt(name=new_name, text=text, description=description))


def remove_prompt(name: str) -> Call[None]:
    """Forget a saved prompt."""
    return delete(f"/prompts/{segment(name)}")
