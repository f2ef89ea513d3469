"""One event as one line for people."""

from collections.abc import Callable
from typing import Any

import msgspec

from ostler.cli.output import cell
from ostler.cli.terminal.text import (
    cut,
    file_gist,
    item_call,
    item_result,
    item_text,
    item_thoughts,
    limit_line,
    permission_gist,
    questions_of,
    result_gist,
    tool_title,
    usage_gist,
)
from ostler.client import SessionEvent
from ostler.wire import events as ev
from ostler.wire.items import Item
from ostler.wire.parts import ReasoningPart, TextPart

_MACHINERY = ("id", "native", "phase", "trace")
"""How the names of fields begin or end that people need --json for."""


def event_line(event: SessionEvent, *, with_session: bool = False) -> str:
    """Number, time of day, type, and what it is about."""
    session = f"  {event.session_id}" if with_session else ""
    when = event.time[:19].replace("T", " ")
    return f"{event.sequence:>6}  {when}{session}  {event.type:<20}  {cut(_gist(event), 160)}".rstrip()


def _gist(event: SessionEvent) -> str:
    """The words of it, or else its fields."""
    shown = _GISTS.get(event.type)
    return shown(event.data) if shown is not None and not isinstance(event, ev.UnknownEvent) else _fields(event)


def _delta(data: ev.ItemDeltaData) -> str:
    return data.delta.text if isinstance(data.delta, TextPart | ReasoningPart) else data.delta.type


def _permission(data: ev.PermissionData) -> str:
    decided = "" if data.status == "requested" else f": {data.status}"
    return f"{permission_gist(data)}{decided}"


def _question(data: ev.QuestionData) -> str:
    return " / ".join(each.question for each in questions_of(data))


def _item(item: Item) -> str:
    call = item_call(item)
    match item.kind:
        case "tool_call" if call is not None:
            words = tool_title(call)
        case "tool_result":
            words = result_gist(item_result(item)) if item.status != "in_progress" else ""
        case _:
            words = item_text(item) or item_thoughts(item)
    return f"{item.role or item.kind}: {words}" if words else f"{item.role or item.kind}"


def _fields(event: SessionEvent) -> str:
    data = msgspec.to_builtins(event.data)  # as the API sent it, also inside
    known = data.items() if isinstance(data, dict) else ()
    shown = [(name, value) for name, value in known if value not in (None, (), [], {}) and not _is_machinery(name)]
    return " ".join(f"{name}={cut(cell(value), 60)}" for name, value in shown)


def _is_machinery(name: str) -> bool:
    return name.startswith(_MACHINERY) or name.endswith("_id")


_GISTS: dict[str, Callable[[Any], str]] = {
    "item.started": lambda data: _item(data.item),
    "item.completed": lambda data: _item(data.item),
    "item.delta": _delta,
    "terminal.output": lambda data: data.data,
    "permission.requested": _permission,
    "permission.resolved": _permission,
    "question.requested": _question,
    "question.resolved": _question,
    "file.changed": file_gist,
    "plan.updated": lambda data: " / ".join(f"{each.content} ({each.status})" for each in data.entries),
    "usage.updated": usage_gist,
    "session.limit": limit_line,
    "queue.updated": lambda data: f"{len(data.entries)} waiting",
    "comment.updated": lambda data: f"{data.comment.path}: {data.comment.text}",
}
