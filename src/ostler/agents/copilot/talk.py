"""What Copilot says and does, as items: messages, tool calls, and the files they change.

Thoughts and text of one model call are parts of one message. Each agent, the main one and every sub-agent, has a
message of its own under way; items of a sub-agent hang below the call that spawned it.
"""

import re
from collections import Counter
from pathlib import PurePath
from typing import Literal

import msgspec

from ostler.agents.adapter import Unreadable
from ostler.agents.copilot import frames
from ostler.wire.events import (
    ArtifactCreatedData,
    FileChangedData,
    ItemCompletedData,
    ItemDeltaData,
    ItemStartedData,
    TerminalOutputData,
)
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ostler.wire.running import Draft

_DOCUMENTS = {".md", ".txt", ".rst", ".html", ".pdf"}
_ACTIONS: dict[str, Literal["created", "modified", "deleted"]] = {
    "create": "created",
    "edit": "modified",
    "delete": "deleted",
}


class _Message:
    """A message under way."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.thoughts = ""
        self.words = ""

    def final(self, status: ItemStatus, thoughts: str, words: str) -> Draft:
        """It is over, with this in it."""
        parts: list[ContentPart] = []
        if thoughts:
            parts.append(ReasoningPart(text=thoughts, visibility="public"))
        if words:
            parts.append(TextPart(text=words))
        return _closed(msgspec.structs.replace(self.item, status=status, content=tuple(parts)))


class Talk:
    """The messages and tool calls of one process."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._messages: dict[str | None, _Message] = {}
        self._calls: dict[str, Item] = {}
        self._items: dict[str, str] = {}
        self._uses: Counter[str] = Counter()
        self._spawned: dict[str, str] = {}

    def item_of(self, call: str | None) -> str | None:
        """The item of a tool call."""
        return None if call is None else self._items.get(call)

    def call(self, native: str | None) -> ToolCallPart | None:
        """An open tool call."""
        item = self._calls.get(native) if native is not None else None
        parts = item.content if item is not None else ()
        return next((part for part in parts if isinstance(part, ToolCallPart)), None)

    def spawn(self, agent: str, call: str) -> None:
        """A tool call started an agent."""
        self._spawned[agent] = call

    def _parent(self, agent: str | None) -> str | None:
        return None if agent is None else self.item_of(self._spawned.get(agent))

    def begin_turn(self) -> None:
        """No message of the last turn goes on."""
        self._messages.clear()

    # Messages

    def think(self, agent: str | None, delta: frames.ReasoningDelta) -> list[Draft]:
        """A thought grows."""
        message, begun = self._message(agent, delta.reasoning_id)
        message.thoughts += delta.delta_content
        return [*begun, _grown(message.item, ReasoningPart(text=delta.delta_content, visibility="public"))]

    def say(self, agent: str | None, delta: frames.MessageDelta) -> list[Draft]:
        """A message grows."""
        message, begun = self._message(agent, delta.message_id)
        message.words += delta.delta_content
        return [*begun, _grown(message.item, TextPart(text=delta.delta_content))]

    def begin(self, agent: str | None, start: frames.MessageStart) -> list[Draft]:
        """A message opens, unless its thoughts have opened it already."""
        return self._message(agent, start.message_id)[1]

    def finish(self, agent: str | None, said: frames.AssistantMessage) -> list[Draft]:
        """A model call is over; one that only calls tools leaves no message."""
        if agent not in self._messages and not said.content and not said.reasoning_text:
            return []
        message, begun = self._message(agent, said.message_id)
        del self._messages[agent]
        return [*begun, message.final("completed", said.reasoning_text or message.thoughts, said.content)]

    def give_up(self, agent: str | None) -> list[Draft]:
        """A model call broke; what it said so far stays, as failed."""
        message = self._messages.pop(agent, None)
        return [] if message is None else [message.final("failed", message.thoughts, message.words)]

    def _message(self, agent: str | None, native: str) -> tuple[_Message, list[Draft]]:
        found = self._messages.get(agent)
        if found is not None:
            return found, []
        item = Item(
            item_id=f"itm_{self._start}_{native}",
            kind="message",
            role="assistant",
            status="in_progress",
            content=(),
            native_item_id=native,
            parent_id=self._parent(agent),
        )
        message = self._messages[agent] = _Message(item)
        return message, [_opened(item)]

    # Tools

    def begin_call(self, agent: str | None, start: frames.ToolStart) -> list[Draft]:
        """A tool is called."""
        native = start.tool_call_id
        self._uses[native] += 1
        again = f"_{self._uses[native]}" if self._uses[native] > 1 else ""  # some models count from zero each time
        self._items[native] = f"itm_{self._start}_{native}{again}"
        part = ToolCallPart(name=start.tool_name, arguments=bytes(start.arguments).decode(), call_id=native)
        item = Item(
            item_id=self._items[native],
            kind="tool_call",
            role="assistant",
            status="in_progress",
            content=(part,),
            native_item_id=native,
            parent_id=self._parent(agent) or self.item_of(start.parent_tool_call_id),
        )
        self._calls[native] = item
        return [_opened(item)]

    def output(self, printed: frames.ShellOutput) -> list[Draft]:
        """A command printed something."""
        item_id = self.item_of(printed.tool_call_id)
        data = TerminalOutputData(stream=printed.stream or "stdout", data=printed.text, item_id=item_id)
        return [Draft("terminal.output", data)]

    def end_call(self, done: frames.ToolComplete) -> list[Draft]:
        """A tool is done: its files, its end, its result."""
        call = self._calls.pop(done.tool_call_id, None)
        if call is None:
            raise Unreadable(f"No tool call {done.tool_call_id} is open", "$.params.event.data.toolCallId")
        status: ItemStatus = "completed" if _went_well(done) else "failed"
        result = Item(
            item_id=f"{call.item_id}_result",
            kind="tool_result",
            role="tool",
            status=status,
            content=(ToolResultPart(call_id=done.tool_call_id, output=_output(done)),),
            native_item_id=done.tool_call_id,
            parent_id=call.item_id,
        )
        ended = msgspec.structs.replace(call, status=status)
        begun = msgspec.structs.replace(result, status="in_progress", content=())
        return [*_changes(done, call.item_id), _closed(ended), _opened(begun), _closed(result)]


def _went_well(done: frames.ToolComplete) -> bool:
    """Copilot calls a command that ran a success, whatever its exit code."""
    exit_code = done.shell_execution.exit_code if done.shell_execution is not None else None
    return done.success and not exit_code


def _output(done: frames.ToolComplete) -> str:
    if done.result is not None:
        return done.result.content
    return done.error.message if done.error is not None else ""


def _changes(done: frames.ToolComplete, item_id: str) -> list[Draft]:
    shown = (done.result.detailed_content if done.result is not None else None) or ""
    return [draft for edit in done.file_edits or () for draft in _change(edit, shown, item_id)]


def _change(edit: frames.FileEdit, shown: str, item_id: str) -> list[Draft]:
    action = _ACTIONS.get(edit.kind, "modified")
    change = FileChangedData(path=edit.path, action=action, diff=diff_of(edit.path, shown), item_id=item_id)
    if action == "deleted":
        return [Draft("file.changed", change)]
    kind = "document" if PurePath(edit.path).suffix.lower() in _DOCUMENTS else "code"
    artifact = ArtifactCreatedData(
        path=edit.path, action="write" if action == "created" else "edit", artifact_type=kind, item_id=item_id
    )
    return [Draft("file.changed", change), Draft("artifact.created", artifact)]


def diff_of(path: str, shown: str) -> str | None:
    """The part of a diff of several files that is about this one."""
    sections = re.split(r"^(?=diff --git )", shown, flags=re.MULTILINE)
    ending = f" b/{path.lstrip('/')}"
    return next((section for section in sections if section.partition("\n")[0].endswith(ending)), None)


def _opened(item: Item) -> Draft:
    return Draft("item.started", ItemStartedData(item=item))


def _closed(item: Item) -> Draft:
    return Draft("item.completed", ItemCompletedData(item=item))


def _grown(item: Item, delta: ContentPart) -> Draft:
    return Draft("item.delta", ItemDeltaData(item_id=item.item_id, delta=delta, native_item_id=item.native_item_id))
