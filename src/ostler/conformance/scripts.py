"""How the lines of a case become a prompt: for agents with the scripted model, and for the mock agent without one."""

import re
import sys
from collections.abc import Callable, Sequence

from ostler.conformance.outcomes import expect


def scripted(lines: Sequence[str]) -> str:
    """A script that the scripted model plays (model/__init__.py)."""
    return "\n".join(f"SCRIPT: {line}" for line in lines)


def sleeping(seconds: float, *, mark: str | None = None) -> str:
    """A command that takes so long and leaves a mark first; some agents refuse a plain `sleep`."""
    first = f'open("{mark}", "w").close(); ' if mark else ""
    return f"{sys.executable} -c 'import time; {first}time.sleep({seconds})'"


def for_mock(lines: Sequence[str]) -> str:
    """The same script as directives of the mock agent, which is its own model."""
    actions = [action for line in lines for action in re.split(r"\s+;;\s+", line)]
    return "\n".join(f"mock: {directive}" for action in actions for directive in _directives(action))


def _directives(action: str) -> list[str]:
    verb, _, rest = action.partition(" ")
    expect(verb in MOCK, f"the mock agent has no directive for '{verb}'")
    return MOCK[verb](rest)


def _slow(rest: str) -> list[str]:
    count, seconds = rest.split()
    return [f"stream {count} words {1 / float(seconds):g}/s"]


def _edit(rest: str) -> list[str]:
    return [f"edit {rest.replace(' => ', ' -> ')}"]


MOCK: dict[str, Callable[[str], list[str]]] = {
    "say": lambda rest: [f"say {rest}", "usage 10 5"],
    "think": lambda rest: [f"think {rest}"],
    "slow": _slow,
    "bash": lambda rest: [f"permission {rest}", f"run {rest}"],
    "read": lambda rest: [f"run cat {rest}"],
    "write": lambda rest: [f"write {rest}"],
    "edit": _edit,
    "ask": lambda rest: [f"question {rest}"],
    "plan": lambda rest: [f"question {rest} | Approve | Reject"],
    "recall": lambda _: ["recall", "about"],
    "watchword": lambda _: ["instructions"],
    "error": lambda rest: [f"error The provider answered {rest}"],
}
"""Action of the script -> directives of the mock agent."""
