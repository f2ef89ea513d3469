"""What the model is told before everything else; the words are data beside this file."""

from pathlib import Path

from ostler.agent.operations import Operations, ToolFailed
from ostler.agent.skills import Skill, as_instructions

PLANNING = (
    "You are in plan mode: look and think, but change nothing. Tools that change something will refuse. When you know "
    "enough, show your plan with `exit_plan_mode`."
)
SUB_AGENT = (
    "You are a sub-agent: another agent gave you this task, and reads only your last message. Nobody can be asked. "
    "Answer with all that it needs to know, with paths and lines, and nothing else."
)
_BASE = Path(__file__).with_name("base.md")
_RULES = "AGENTS.md"
_MOST_RULES = 32 * 2**10


def system_prompt(workspace: Operations, found: list[Skill], *, base: str | None, instructions: str | None) -> str:
    """Who the model is, where it works, and the rules of the workspace and of the session; `base` is for our own."""
    parts = [(base or _BASE.read_text()).strip(), _surroundings(workspace)]
    if rules := _rules(workspace):
        parts.append(f"The rules of this workspace, from its {_RULES}:\n\n{rules}")
    if skills := as_instructions(found):
        parts.append(skills)
    if instructions:
        parts.append(f"The instructions of this session:\n\n{instructions}")
    return "\n\n".join(parts)


def _surroundings(workspace: Operations) -> str:
    return f"The workspace is {workspace.root}, on {workspace.machine}."


def _rules(workspace: Operations) -> str:
    try:
        content = workspace.read(_RULES, 64 * _MOST_RULES)
    except ToolFailed:
        return ""
    cut = "\n[the rest is cut]" if len(content) > _MOST_RULES else ""
    return content[:_MOST_RULES].decode(errors="replace").strip() + cut
