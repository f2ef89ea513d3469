"""What the assistant says: the model's stream and the finished blocks that repeat it, as items.

Text and thoughts of a message are parts of one item until a tool call interrupts them. Each scope (the main
conversation, or the tool call that spawned a sub-agent) has a message of its own under way.
"""

from collections.abc import Callable, Sequence

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Unreadable
from ostler.agents.claude_code import items
from ostler.agents.claude_code.frames import Assistant, Block, Delta, ModelEvent, StreamEvent, User
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, ReasoningPart, TextPart

WORDS = frozenset({"text", "thinking"})
SILENT_BLOCKS = {
    "redacted_thinking": "encrypted thoughts",
    "server_tool_use": "a tool that the provider runs inside the model call",
    "fallback": "the provider changed models",
}
SILENT_DELTAS = {
    "signature_delta": "proof of thoughts, for the provider",
    "citations_delta": "the text stands without its sources",
}
SILENT_EVENTS = {"ping": "keeps the connection alive", "error": "the turn's result tells it"}


class _Words:
    """A block of text or thinking under way."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.pieces: list[str] = []

    @property
    def part(self) -> TextPart | ReasoningPart:
        text = "".join(self.pieces)
        return say.thought(text) if self._kind == "thinking" else TextPart(text=text)


class _Stream:
    """A message under way."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.runs = 0
        """How many items it has become so far."""
        self.blocks: list[_Words] = []
        self.has_grown = False
        self.call: str | None = None
        """The tool call whose input is being written."""
        self.written: set[str] = set()
        """The calls whose input came piece by piece."""


class Talk:
    """The messages and tool calls of one process."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._streams: dict[str | None, _Stream] = {}
        self._calls: dict[str, Item] = {}
        self.last_words = ""
        """The latest text of the main conversation."""

    def item_id(self, native: str) -> str:
        """An id that is unique in the session."""
        return f"itm_{self._start}_{native}"

    def parent(self, tool_use_id: str | None) -> str | None:
        """The item of the call that spawned a sub-agent."""
        return None if tool_use_id is None else self.item_id(tool_use_id)

    def on_stream(self, frame: StreamEvent) -> Sequence[Output]:
        """An event of the model's stream."""
        handler = EVENTS.get(frame.event.type)
        if handler is not None:
            return handler(self, frame.parent_tool_use_id, frame.event)
        if frame.event.type in SILENT_EVENTS:
            return ()
        raise Unreadable(f"Unknown stream event '{frame.event.type}'", "$.event.type")

    def on_assistant(self, frame: Assistant) -> Sequence[Output]:
        """Finished blocks: words settle what was streamed or stand for themselves, calls begin."""
        outputs: list[Output] = []
        for block in _blocks(frame.message.content):
            if block.type == "tool_use":
                outputs += self._begin_call(frame.parent_tool_use_id, block)
            elif block.type in WORDS:
                outputs += self._settle(frame, block)
            elif block.type not in SILENT_BLOCKS and not block.type.endswith("_tool_result"):
                raise Unreadable(f"Unknown block '{block.type}'", "$.message.content[...].type")
        return outputs

    def on_user(self, frame: User) -> Sequence[Output]:
        """Results of tools; other words in the user's name are Claude Code's own and belong to no one."""
        outputs: list[Output] = []
        for block in _blocks(frame.message.content):
            if block.type == "tool_result":
                outputs += self._answer_call(frame, block)
        return outputs

    # Words

    def begin_message(self, scope: str | None, event: ModelEvent) -> Sequence[Output]:
        """A message begins; one before it that never ended is done."""
        if event.message is None:
            raise Unreadable("A message without its id", "$.event.message")
        before = self.end_message(scope, event)
        self._streams[scope] = _Stream(event.message.id)
        return before

    def begin_block(self, scope: str | None, event: ModelEvent) -> Sequence[Output]:
        """A block begins; only words keep the item open."""
        stream, block = self._stream(scope), event.content_block
        stream.call = None
        if block is not None and block.type == "tool_use":
            return self._write_call(scope, stream, block)
        if block is None or block.type not in WORDS:
            return self._close(scope, stream, "completed")
        stream.blocks.append(_Words(block.type))
        return ()

    def grow_block(self, scope: str | None, event: ModelEvent) -> Sequence[Output]:
        """A block grows."""
        stream, delta = self._stream(scope), event.delta or Delta()
        if delta.type in SILENT_DELTAS:
            return ()
        if delta.type == "input_json_delta":
            return self._grow_call(stream, delta.partial_json)
        if delta.type not in {"text_delta", "thinking_delta"} or not stream.blocks:
            raise Unreadable(f"Unexpected delta '{delta.type}'", "$.event.delta.type")
        stream.blocks[-1].pieces.append(delta.text or delta.thinking)
        if delta.type == "text_delta":
            return self._grown(scope, stream, TextPart(text=delta.text))
        return self._grown(scope, stream, say.thought(delta.thinking))

    def end_message(self, scope: str | None, _: ModelEvent) -> Sequence[Output]:
        """The message is done."""
        stream = self._streams.get(scope)
        return () if stream is None else self._close(scope, stream, "completed")

    def _stream(self, scope: str | None) -> _Stream:
        if scope not in self._streams:
            raise Unreadable("No message is open", "$.event")
        return self._streams[scope]

    def _grown(self, scope: str | None, stream: _Stream, part: TextPart | ReasoningPart) -> Sequence[Output]:
        item_id, before = self._run_id(stream), []
        if not stream.has_grown:
            stream.has_grown = True
            before.append(say.opened(say.message(item_id, stream.message_id, self.parent(scope))))
        return [*before, say.grown(item_id, part, stream.message_id)]

    def _run_id(self, stream: _Stream) -> str:
        return self.item_id(f"{stream.message_id}_{stream.runs}" if stream.runs else stream.message_id)

    def _close(self, scope: str | None, stream: _Stream, status: ItemStatus) -> Sequence[Output]:
        parts = [block.part for block in stream.blocks]
        filled = [part for part in parts if part.text]
        whole = say.message(self._run_id(stream), stream.message_id, self.parent(scope), filled, status)
        is_there = stream.has_grown or bool(whole.content)
        stream.blocks, stream.has_grown = [], False
        if not is_there:
            return ()
        stream.runs += 1
        self._heard(scope, parts)
        return (say.closed(whole),)

    def _heard(self, scope: str | None, parts: Sequence[ContentPart]) -> None:
        text = "".join(part.text for part in parts if isinstance(part, TextPart))
        if scope is None and text:
            self.last_words = text

    def _settle(self, frame: Assistant, block: Block) -> Sequence[Output]:
        """The final words of the block that grows now, or of a message that was not streamed."""
        scope, status = frame.parent_tool_use_id, _status(frame)
        stream = self._streams.get(scope)
        if stream is None or stream.message_id != frame.message.id:
            part = items.words(block)
            self._heard(scope, (part,))
            whole = say.message(self.item_id(frame.uuid), frame.message.id, self.parent(scope), (part,), status)
            return (say.closed(whole),) if part.text else ()
        if stream.blocks:
            stream.blocks[-1].pieces = [block.text or block.thinking]
        return self._close(scope, stream, status) if frame.aborted else ()

    # Tools

    def _write_call(self, scope: str | None, stream: _Stream, block: Block) -> Sequence[Output]:
        """The model begins to write the input of a tool; the finished block has all of it."""
        before = self._close(scope, stream, "completed")
        stream.call = block.id
        return [*before, say.opened(self._call(scope, block, b""))]

    def _grow_call(self, stream: _Stream, text: str) -> Sequence[Output]:
        use_id = stream.call or ""
        made = self._calls.get(use_id)
        if made is None or not text:
            return ()  # of a tool that the provider runs itself
        stream.written.add(use_id)
        use = msgspec.structs.replace(say.use_of(made), arguments=text)
        return (say.grown(made.item_id, use, made.native_item_id),)

    def _begin_call(self, scope: str | None, block: Block) -> Sequence[Output]:
        stream = self._streams.get(scope)
        before = () if stream is None else self._close(scope, stream, "completed")
        was_written, made = block.id in self._calls, self._call(scope, block, block.input)
        if not was_written:
            begun = [say.opened(made)]
        elif stream is not None and block.id in stream.written:
            begun = []
        else:
            begun = [say.grown(made.item_id, say.use_of(made), made.native_item_id)]
        return [*before, *begun, *items.todo_list(block)]

    def _call(self, scope: str | None, block: Block, written: bytes | msgspec.Raw) -> Item:
        made = say.call(self.item_id(block.id), block.name, written, block.id, self.parent(scope))
        self._calls[block.id] = made
        return made

    def _answer_call(self, frame: User, block: Block) -> Sequence[Output]:
        made = self._calls.pop(block.tool_use_id, None)
        if made is None:
            return ()  # of a call before a restart
        changes = [] if block.is_error else items.file_changes(frame.tool_use_result, made.item_id)
        return [*changes, *items.answered(made, block)]


EVENTS: dict[str, Callable[[Talk, str | None, ModelEvent], Sequence[Output]]] = {
    "message_start": Talk.begin_message,
    "content_block_start": Talk.begin_block,
    "content_block_delta": Talk.grow_block,
    "content_block_stop": lambda *_: (),  # the next block or the message's end says the same
    "message_delta": lambda *_: (),  # tokens, which the translator counts
    "message_stop": Talk.end_message,
}


def _blocks(content: str | list[Block]) -> list[Block]:
    return [Block(type="text", text=content)] if isinstance(content, str) else content


def _status(frame: Assistant) -> ItemStatus:
    return "failed" if frame.aborted else "completed"
