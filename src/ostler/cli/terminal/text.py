"""Pieces of a session as lines of text; pure, shared by everything that shows one."""

import json
from datetime import datetime
from typing import NamedTuple

from ostler.cli.output import clean
from ostler.wire.events import FileChangedData, PermissionData, Question, QuestionData, QuestionOption, UsageUpdatedData
from ostler.wire.items import Item, PlanEntry
from ostler.wire.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.workspace_events import SessionLimitData

_WIDTH = 100


class Marks(NamedTuple):
    """The signs in front of lines."""

    tool: str
    good: str
    bad: str
    ask: str
    file: str
    bar: str
    user: str
    pending: str
    working: str


UNICODE = Marks("●", "✓", "✗", "?", "±", "│", ">", "☐", "▸")
ASCII = Marks("*", "+", "x", "?", "~", "|", ">", "-", ">")


def marks_for(encoding: str | None) -> Marks:
    """Signs that the terminal can show."""
    try:
        "".join(UNICODE).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


def cut(text: str, width: int = _WIDTH) -> str:
    """The beginning of a text on one line."""
    line = " ".join(clean(text).split())
    return line if len(line) <= width else line[: width - 3] + "..."


def tool_title(call: ToolCallPart) -> str:
    """The tool and the gist of its arguments."""
    return f"{cut(call.name, 40)} {cut(_gist(call.arguments))}".rstrip()


def _gist(arguments: str) -> str:
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return arguments
    if not isinstance(value, dict):
        return arguments
    if len(value) == 1:
        return _plain(next(iter(value.values())))
    return " ".join(f"{name}={_plain(each)}" for name, each in value.items())


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def result_gist(output: str) -> str:
    """The first line of an output and how much more there is."""
    lines = [line for line in clean(output).splitlines() if line.strip()]
    if not lines:
        return "done"
    return cut(lines[0]) + (f" (+{len(lines) - 1} lines)" if len(lines) > 1 else "")


def file_gist(change: FileChangedData) -> str:
    """A changed file with the number of lines it gained and lost."""
    lines = (change.diff or "").splitlines()
    gained = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    lost = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    counts = f" +{gained} -{lost}" if change.diff else ""
    return f"{cut(change.path)} {change.action}{counts}"


def plan_line(entry: PlanEntry, marks: Marks) -> str:
    """One step of a plan."""
    sign = {"pending": marks.pending, "in_progress": marks.working, "completed": marks.good}[entry.status]
    return f"  {sign} {cut(entry.content)}"


def usage_gist(usage: UsageUpdatedData) -> str:
    """Tokens and cost, as far as known."""
    tokens = [(usage.input_tokens, "in"), (usage.output_tokens, "out")]
    known = " / ".join(f"{count:,} {way}" for count, way in tokens if count is not None)
    cost = f"{max(usage.cost.amount, 0.0001):.4f} {usage.cost.currency}" if usage.cost and usage.cost.amount else ""
    return ", ".join(filter(None, (f"{known} tokens" if known else "", cost)))


def permission_gist(ask: PermissionData) -> str:
    """What the agent wants to do; many agents begin that with the tool's name themselves."""
    names_tool = not ask.tool or ask.action.lower().startswith(ask.tool.lower())
    return cut(ask.action) if names_tool else f"{cut(ask.tool or '', 40)}: {cut(ask.action)}"


def questions_of(ask: QuestionData) -> tuple[Question, ...]:
    """All questions of an ask; an old agent has only the first."""
    if ask.questions:
        return ask.questions
    options = tuple(QuestionOption(label=label) for label in ask.options)
    return (Question(question=ask.prompt, options=options, multi_select=False, free_text=not options),)


def item_text(item: Item) -> str:
    """The words of an item."""
    return "".join(part.text for part in item.content if isinstance(part, TextPart))


def item_thoughts(item: Item) -> str:
    """What the model thought aloud."""
    return "".join(part.text for part in item.content if isinstance(part, ReasoningPart))


def item_call(item: Item) -> ToolCallPart | None:
    """The tool call of an item."""
    return next((part for part in item.content if isinstance(part, ToolCallPart)), None)


def item_result(item: Item) -> str:
    """What a tool answered."""
    return "\n".join(part.output for part in item.content if isinstance(part, ToolResultPart)) or item_text(item)


def seconds_between(start: str, end: str) -> float:
    """Seconds from one event's time to another's."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def limit_gist(until: str, waits: bool) -> str:
    """Until when a limit holds, and whether that is waited for."""
    time = f"{until[:16].replace('T', ' ')} UTC"
    return f"waits for its limit until {time}" if waits else f"limited until {time}"


def limit_line(data: SessionLimitData) -> str:
    """What the log tells of a limit."""
    return "The limit is over; going on." if data.status == "over" else limit_gist(data.until, data.waits)
