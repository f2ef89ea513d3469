"""All tools by their names."""

from collections.abc import Iterable
from typing import Any

from ostler.agent.operations import ToolFailed
from ostler.agent.tools.files import EDIT, READ, WRITE
from ostler.agent.tools.people import ASK, PLAN
from ostler.agent.tools.propose import PROPOSE
from ostler.agent.tools.sandbox import SANDBOX
from ostler.agent.tools.search import FIND, GREP
from ostler.agent.tools.shell import BASH
from ostler.agent.tools.task import TASK
from ostler.agent.tools.todo import TODO
from ostler.agent.tools.tool import Tool

_TOOLS = (READ, WRITE, EDIT, BASH, GREP, FIND, SANDBOX, TODO, TASK, ASK, PROPOSE, PLAN)
ALL: dict[str, Tool[Any]] = {tool.name: tool for tool in _TOOLS}
_PEOPLE = frozenset({ASK.name, PROPOSE.name, PLAN.name})
_LOOKING = frozenset({READ.name, GREP.name, FIND.name, SANDBOX.name})
_CHANGING = frozenset({WRITE.name, EDIT.name, BASH.name})


def chosen(names: tuple[str, ...] | None, *, plans: bool) -> dict[str, Tool[Any]]:
    """The tools that a model is offered, sorted, so that requests begin alike; a plan needs a way to be shown."""
    wanted = set(ALL) if names is None else {*names}
    wanted = (wanted | {PLAN.name}) if plans else (wanted - {PLAN.name})
    return {name: ALL[name] for name in sorted(wanted) if name in ALL}


def of_sub_agent(names: Iterable[str], *, may_change: bool) -> tuple[str, ...]:
    """Which of the tools that an agent has its sub-agent has too: it asks nobody and has no sub-agents."""
    possible = _LOOKING | _CHANGING if may_change else _LOOKING
    return tuple(sorted(possible.intersection(names)))


def runs_beside_others(tool: Tool[Any], written: str) -> bool:
    """Whether a call may run beside others like it: they only look, and nobody is asked."""
    if tool.changes != "nothing" or tool.name in _PEOPLE:
        return False
    try:
        return not tool.is_alone(tool.read(written))
    except ToolFailed:
        return True  # it will not be run
