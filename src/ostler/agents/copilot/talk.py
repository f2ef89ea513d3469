"""What Copilot says and does, as items: messages, tool calls, and the files they change.

Thoughts and text of one model call are parts of one message. Each agent, the main one and every sub-agent, has a
message of its own under way; items of a sub-agent hang below the call that spawned it.
"""

import re
from collections import Counter

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Unreadable
from ostler.agents.copilot import frames
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, TextPart, ToolCallPart
from ostler.wire.running import Draft

_ACTIONS: dict[str, say.Action] = {
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

    def grown(self, delta: ContentPart) -> Draft:
        """It goes on."""
        return say.grown(self.item.item_id, delta, self.item.native_item_id)

    def final(self, status: ItemStatus, thoughts: str, words: str) -> Draft:
        """It is over, with this in it."""
        parts: list[ContentPart] = []
        if thoughts:
            parts.append(say.thought(thoughts))
        if words:
            parts.append(TextPart(text=words))
        return say.closed(msgspec.structs.replace(self.item, content=tuple(parts)), status)


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
        return None if item is None else say.use_of(item)

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
        return [*begun, message.grown(say.thought(delta.delta_content))]

    def say(self, agent: str | None, delta: frames.MessageDelta) -> list[Draft]:
        """A message grows."""
        message, begun = self._message(agent, delta.message_id)
        message.words += delta.delta_content
        return [*begun, message.grown(TextPart(text=delta.delta_content))]

    def begin(self, agent: str | None, start: frames.MessageStart) -> list[Draft]:
        """A message opens, unless its thoughts have opened it already."""
        return self._message(agent, start.message_id)[1]

    def finish(self, agent: str | None, frame: frames.AssistantMessage) -> list[Draft]:
        """A model call is over; one that only calls tools leaves no message."""
        if agent not in self._messages and not frame.content and not frame.reasoning_text:
            return []
        message, begun = self._message(agent, frame.message_id)
        del self._messages[agent]
        return [*begun, message.final("completed", frame.reasoning_text or message.thoughts, frame.content)]

    def give_up(self, agent: str | None) -> list[Draft]:
        """A model call broke; what it said so far stays, as failed."""
        message = self._messages.pop(agent, None)
        return [] if message is None else [message.final("failed", message.thoughts, message.words)]

    def _message(self, agent: str | None, native: str) -> tuple[_Message, list[Draft]]:
        found = self._messages.get(agent)
        if found is not None:
            return found, []
        item = say.message(f"itm_{self._start}_{native}", native, self._parent(agent))
        message = self._messages[agent] = _Message(item)
        return message, [say.opened(item)]

    # Tools

    def begin_call(self, agent: str | None, start: frames.ToolStart) -> list[Draft]:
        """A tool is called."""
        native = start.tool_call_id
        self._uses[native] += 1
        again = f"_{self._uses[native]}" if self._uses[native] > 1 else ""  # some models count from zero each time
        self._items[native] = f"itm_{self._start}_{native}{again}"
        parent_id = self._parent(agent) or self.item_of(start.parent_tool_call_id)
        item = say.call(self._items[native], start.tool_name, start.arguments, native, parent_id)
        self._calls[native] = item
        return [say.opened(item)]

    def output(self, printed: frames.ShellOutput) -> list[Draft]:
        """A command printed something."""
        return [say.printed(printed.text, self.item_of(printed.tool_call_id), printed.stream or "stdout")]

    def end_call(self, done: frames.ToolComplete) -> list[Draft]:
        """A tool is done: its files, its end, its result."""
        call = self._calls.pop(done.tool_call_id, None)
        if call is None:
            raise Unreadable(f"No tool call {done.tool_call_id} is open", "$.params.event.data.toolCallId")
        return [*_changes(done, call.item_id), *say.answered(call, _output(done), failed=not _went_well(done))]


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
    return [
        draft
        for edit in done.file_edits or ()
        for draft in say.changed(edit.path, _ACTIONS.get(edit.kind, "modified"), diff_of(edit.path, shown), item_id)
    ]


def diff_of(path: str, shown: str) -> str | None:
    """The part of a diff of several files that is about this one."""
    sections = re.split(r"^(?=diff --git )", shown, flags=re.MULTILINE)
    ending = f" b/{path.lstrip('/')}"
    return next((section for section in sections if section.partition("\n")[0].endswith(ending)), None)
