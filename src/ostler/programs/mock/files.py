"""Directives of the mock agent that change files in its folder."""

import difflib
from pathlib import Path

from ostler.programs.mock.talk import needed, unescape
from ostler.programs.mock.turn import BadDirective, Turn


def write(turn: Turn, text: str) -> None:
    """Write a file."""
    name, _, content = text.partition(" ")
    write_file(turn, needed(name, "a path"), unescape(content))


def write_file(turn: Turn, name: str, content: str) -> None:
    """Write a file as a tool call, unless the mode forbids it."""
    if not turn.options.may_write():
        turn.say(f"I am in plan mode, so I did not write {name}.")
        return
    tool = turn.start_tool("write", {"path": name, "content": content})
    try:
        path = _inside(name)
        before = path.read_text() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    except (OSError, ValueError) as problem:
        turn.end_tool(tool, str(problem), ok=False)
        return
    _tell(turn, tool, name, before, content, operation="write")
    turn.end_tool(tool, f"Wrote {len(content.encode())} bytes to {name}.")


def edit(turn: Turn, text: str) -> None:
    """Replace a text in a file."""
    name, _, change = text.partition(" ")
    old, arrow, new = change.partition(" -> ")
    if not arrow or not old.strip():
        raise BadDirective("It needs a path, an old text, an arrow and a new text.")
    if not turn.options.may_write():
        turn.say(f"I am in plan mode, so I did not edit {name}.")
        return
    _replace(turn, name, unescape(old), unescape(new))


def _replace(turn: Turn, name: str, old: str, new: str) -> None:
    tool = turn.start_tool("edit", {"path": name, "old": old, "new": new})
    try:
        path = _inside(name)
        before = path.read_text()
        after = _replaced(name, before, old, new)
        path.write_text(after)
    except (OSError, ValueError) as problem:
        turn.end_tool(tool, str(problem), ok=False)
        return
    _tell(turn, tool, name, before, after, operation="edit")
    turn.end_tool(tool, f"Edited {name}.")


def _replaced(name: str, before: str, old: str, new: str) -> str:
    if old not in before:
        raise ValueError(f"{name} does not contain '{old}'.")
    return before.replace(old, new, 1)


def _inside(name: str) -> Path:
    folder = Path.cwd().resolve()
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise ValueError(f"{name} is outside my folder.")
    return path


def _tell(turn: Turn, tool: int, name: str, before: str | None, after: str, *, operation: str) -> None:
    action = "created" if before is None else "modified"
    turn.send("file", tool=tool, path=name, action=action, operation=operation, diff=_diff(name, before, after))


def _diff(name: str, before: str | None, after: str) -> str:
    origin = "/dev/null" if before is None else f"a/{name}"
    lines = difflib.unified_diff(_lines(before or ""), _lines(after), origin, f"b/{name}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _lines(text: str) -> list[str]:
    return text.split("\n")[: -1 if text.endswith("\n") else None] if text else []
