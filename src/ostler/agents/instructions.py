"""A session's instructions: a file of its home, or the words before the first prompt of an agent that takes no file."""

import msgspec

from ostler.base.context import Context, wrapped
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Prompt

_FILE = ".ostler/instructions.md"


def path_of(spec: AgentSpec) -> str | None:
    """Where they lie, for agents that are told the path of a file; None if there are none."""
    return f"{spec.home}/{_FILE}" if spec.instructions else None


def files_of(spec: AgentSpec, name: str = _FILE) -> dict[str, str]:
    """The file of a session's home that holds them, if there are any."""
    return {name: spec.instructions} if spec.instructions else {}


def has_own_home(spec: AgentSpec) -> bool:
    """Whether the agent looks for its own files where Ostler writes them; a session may name another home."""
    return "HOME" not in spec.env


def instructed(prompt: Prompt, spec: AgentSpec) -> Prompt:
    """The prompt with the session's instructions in front, if it has any."""
    context = wrapped(Context(instructions=spec.instructions or ""))
    return prompt if context is None else msgspec.structs.replace(prompt, parts=(TextPart(text=context), *prompt.parts))
