"""All tools by their names."""

from typing import Any

from ostler.agent.tools.files import EDIT, READ, WRITE
from ostler.agent.tools.people import ASK, PLAN
from ostler.agent.tools.sandbox import SANDBOX
from ostler.agent.tools.search import FIND, GREP
from ostler.agent.tools.shell import BASH
from ostler.agent.tools.todo import TODO
from ostler.agent.tools.tool import Tool

_TOOLS = (READ, WRITE, EDIT, BASH, GREP, FIND, SANDBOX, TODO, ASK, PLAN)
ALL: dict[str, Tool[Any]] = {tool.name: tool for tool in _TOOLS}
_PEOPLE = frozenset({ASK.name, PLAN.name})


def chosen(names: tuple[str, ...] | None, *, plans: bool) -> dict[str, Tool[Any]]:
    """The tools that a model is offered, sorted, so that requests begin alike; a plan needs a way to be shown."""
    wanted = set(ALL) if names is None else {*names}
    wanted = (wanted | {PLAN.name}) if plans else (wanted - {PLAN.name})
    return {name: ALL[name] for name in sorted(wanted) if name in ALL}


def runs_beside_others(tool: Tool[Any]) -> bool:
    """Whether several calls of it may run at once: they only look, and nobody is asked."""
    return tool.changes == "nothing" and tool.name not in _PEOPLE
