"""Claude Code's messages, tool calls and file changes as items and drafts; nothing here keeps state."""

from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.claude_code.frames import Block, FileResult, TodoInput
from ostler.wire.items import Item
from ostler.wire.parts import ReasoningPart, TextPart
from ostler.wire.running import Draft


def words(block: Block) -> TextPart | ReasoningPart:
    """The part that a block of text or thinking is."""
    if block.type == "thinking":
        return say.thought(block.thinking)
    return TextPart(text=block.text)


def answered(made: Item, block: Block) -> list[Draft]:
    """The call is over and has its result."""
    return say.answered(made, _output(block.content), failed=bool(block.is_error))


def _output(content: str | list[Block] | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text if block.type == "text" else f"[{block.type}]" for block in content or ())


def file_changes(result: Any, item_id: str) -> list[Draft]:
    """What a tool's own result says about a file it wrote; nothing for all other tools."""
    try:
        written = msgspec.convert(result, FileResult)
    except msgspec.ValidationError:
        return []
    action: say.Action = "created" if written.type == "create" else "modified"
    return say.changed(written.path, action, _diff(written), item_id, "edit" if written.type is None else "write")


def _diff(written: FileResult) -> str | None:
    if not written.patch:
        return None if written.content is None else say.diff_of(written.path, written.original or "", written.content)
    lines = [f"--- {written.path}", f"+++ {written.path}"]
    for hunk in written.patch:
        lines.append(f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@")
        lines += hunk.lines
    return "\n".join(lines) + "\n"


def todo_list(block: Block) -> list[Draft]:
    """The plan that a call of the todo tool sets; nothing for all other tools."""
    if block.name != "TodoWrite":
        return []
    try:
        todos = msgspec.json.decode(block.input, type=TodoInput).todos
    except msgspec.DecodeError:
        return []  # the model got the arguments wrong; the tool will tell it
    return [say.plan(say.step(todo.content, todo.status) for todo in todos)]
