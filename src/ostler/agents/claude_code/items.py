"""Claude Code's messages, tool calls and file changes as items and drafts; nothing here keeps state."""

from collections.abc import Sequence
from difflib import unified_diff
from pathlib import PurePath
from typing import Any, Literal

import msgspec

from ostler.agents.claude_code.frames import Block, FileResult, Todo, TodoInput
from ostler.wire.events import (
    ArtifactCreatedData,
    FileChangedData,
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    PlanEntry,
    PlanUpdatedData,
)
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.running import Draft

_DOCUMENTS = {".md", ".txt", ".rst", ".html", ".pdf"}
_PLAN_STATUS: dict[str, Literal["pending", "in_progress", "completed"]] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
}


def opened(item: Item) -> Draft:
    """The item begins."""
    return Draft("item.started", ItemStartedData(item=item))


def closed(item: Item) -> Draft:
    """The item is final."""
    return Draft("item.completed", ItemCompletedData(item=item))


def grown(item_id: str, native: str, delta: ContentPart) -> Draft:
    """The item grows."""
    return Draft("item.delta", ItemDeltaData(item_id=item_id, delta=delta, native_item_id=native))


def words(block: Block) -> ContentPart:
    """The part that a block of text or thinking is."""
    if block.type == "thinking":
        return ReasoningPart(text=block.thinking, visibility="public")
    return TextPart(text=block.text)


def message(item_id: str, native: str, parent_id: str | None, parts: Sequence[ContentPart], status: ItemStatus) -> Item:
    """A message of the assistant, without its empty parts."""
    return Item(
        item_id=item_id,
        kind="message",
        role="assistant",
        status=status,
        content=tuple(part for part in parts if getattr(part, "text", "")),
        native_item_id=native,
        parent_id=parent_id,
    )


def call(item_id: str, parent_id: str | None, block: Block) -> Item:
    """A tool call that has begun."""
    arguments = bytes(block.input).decode()
    return Item(
        item_id=item_id,
        kind="tool_call",
        role="assistant",
        status="in_progress",
        content=(ToolCallPart(name=block.name, arguments=arguments, call_id=block.id),),
        native_item_id=block.id,
        parent_id=parent_id,
    )


def answered(made: Item, block: Block) -> list[Draft]:
    """The call is over and has its result."""
    status: ItemStatus = "failed" if block.is_error else "completed"
    result = Item(
        item_id=f"{made.item_id}_result",
        kind="tool_result",
        role="tool",
        status=status,
        content=(ToolResultPart(call_id=block.tool_use_id, output=_output(block.content)),),
        native_item_id=block.tool_use_id,
        parent_id=made.item_id,
    )
    begun = msgspec.structs.replace(result, status="in_progress", content=())
    return [closed(msgspec.structs.replace(made, status=status)), opened(begun), closed(result)]


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
    created = written.type == "create"
    change = FileChangedData(
        path=written.path, action="created" if created else "modified", diff=_diff(written), item_id=item_id
    )
    artifact = ArtifactCreatedData(
        path=written.path,
        action="edit" if written.type is None else "write",
        artifact_type="document" if PurePath(written.path).suffix.lower() in _DOCUMENTS else "code",
        item_id=item_id,
    )
    return [Draft("file.changed", change), Draft("artifact.created", artifact)]


def _diff(written: FileResult) -> str | None:
    if not written.patch:
        before = [] if written.original is None else written.original.splitlines()
        return None if written.content is None else text_diff(written.path, before, written.content.splitlines())
    lines = [f"--- {written.path}", f"+++ {written.path}"]
    for hunk in written.patch:
        lines.append(f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@")
        lines += hunk.lines
    return "\n".join(lines) + "\n"


def text_diff(path: str, before: Sequence[str], after: Sequence[str]) -> str:
    """A unified diff of two texts, given as lines."""
    source = path if before else "/dev/null"
    return "\n".join([*unified_diff(before, after, source, path, lineterm=""), ""])


def todo_list(block: Block) -> list[Draft]:
    """The plan that a call of the todo tool sets; nothing for all other tools."""
    if block.name != "TodoWrite":
        return []
    try:
        todos = msgspec.json.decode(block.input, type=TodoInput).todos
    except msgspec.DecodeError:
        return []  # the model got the arguments wrong; the tool will tell it
    return [Draft("plan.updated", PlanUpdatedData(entries=tuple(map(_entry, todos))))]


def _entry(todo: Todo) -> PlanEntry:
    return PlanEntry(content=todo.content, status=_PLAN_STATUS.get(todo.status, "pending"))
