"""Tool calls of a message: called once, answered once, whatever the order in which the agent tells of it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ostler.server.dialects.ai_sdk.chunks import (
    AnyChunk,
    ToolInputAvailable,
    ToolInputDelta,
    ToolInputStart,
    ToolOutputAvailable,
    ToolOutputDenied,
    ToolOutputError,
)
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, TextPart, ToolCallPart, ToolResultPart

_SHOWN_OUTPUT = 16 * 1024
"""Characters of a preliminary output: each one repeats the last ones, so they must stay small."""
_UNANSWERED = "The turn ended before the tool answered."


class Call:
    """One tool call."""

    __slots__ = ("announced", "answered", "arguments", "grown", "id", "name", "sent", "status", "step")

    def __init__(self, call_id: str, name: str, arguments: str, step: int) -> None:
        self.id = call_id
        self.name = name
        self.arguments = arguments
        self.step = step
        self.announced: str | None = None
        """The arguments the client knows."""
        self.sent = 0
        """How many characters of them were sent while they grew."""
        self.grown = ""
        """The end of what it printed or answered so far."""
        self.status: ItemStatus = "in_progress"
        self.answered = False

    def announce(self, step: int) -> Iterator[AnyChunk]:
        """Tell the client the arguments, or better ones; a client takes those only within the step of the call."""
        is_better = self.announced != self.arguments and step == self.step and not (self.answered or self.grown)
        if self.announced is None or is_better:
            self.announced = self.arguments
            value = read_json(self.arguments) if self.arguments else {}
            yield ToolInputAvailable(tool_call_id=self.id, tool_name=self.name, input=value)

    def grow_input(self, text: str, step: int) -> Iterator[AnyChunk]:
        """The agent goes on writing the arguments."""
        self.arguments += text
        if step == self.step:
            piece, self.sent = self.arguments[self.sent :], len(self.arguments)
            yield ToolInputDelta(tool_call_id=self.id, input_text_delta=piece)

    def grow(self, text: str) -> AnyChunk:
        """It prints or answers more."""
        self.grown = (self.grown + text)[-_SHOWN_OUTPUT:]
        return ToolOutputAvailable(tool_call_id=self.id, output=self.grown, preliminary=True)


class Calls:
    """The tool calls of one message."""

    def __init__(self) -> None:
        self.step = 0
        self._calls: dict[str, Call] = {}
        self._results: dict[str, Call] = {}
        self._ids: set[str] = set()

    @property
    def are_empty(self) -> bool:
        """Whether no tool was called at all."""
        return not self._calls

    @property
    def are_settled(self) -> bool:
        """Whether this step called tools and all are answered, so that whatever follows is the next step."""
        here = [call for call in self._calls.values() if call.step == self.step]
        return bool(here) and all(call.answered for call in here)

    def find(self, item_id: str | None) -> Call | None:
        """The call of an item, or the one that a result belongs to."""
        return self._calls.get(item_id or "") or self._results.get(item_id or "")

    def knows(self, item_id: str) -> bool:
        """Whether this call was sent before."""
        return item_id in self._calls

    def start(self, item_id: str, part: ToolCallPart) -> Iterator[AnyChunk]:
        """A tool is called."""
        call_id = part.call_id if part.call_id and part.call_id not in self._ids else item_id
        self._ids.add(call_id)
        call = self._calls[item_id] = Call(call_id, part.name or "tool", part.arguments, self.step)
        yield ToolInputStart(tool_call_id=call.id, tool_name=call.name)
        if is_json(part.arguments):
            yield from call.announce(self.step)

    def update(self, item_id: str, part: ToolCallPart) -> Iterator[AnyChunk]:
        """More is known about a call."""
        call = self._calls[item_id]
        call.arguments = part.arguments or call.arguments
        if is_json(call.arguments):
            yield from call.announce(self.step)

    def grow_input(self, item_id: str, part: ToolCallPart) -> Iterator[AnyChunk]:
        """The arguments of a call grow until they are whole, which is when they are announced."""
        call = self._calls[item_id]
        if not part.arguments or call.announced is not None:
            return
        yield from call.grow_input(part.arguments, self.step)
        if is_json(call.arguments):
            yield from call.announce(self.step)

    def adopt(self, result: Item) -> Call | None:
        """The call that a result belongs to; remembered, since its deltas name only the result."""
        call = self._results.get(result.item_id) or self._calls.get(result.parent_id or "") or self._named(result)
        if call is not None:
            self._results[result.item_id] = call
        return call

    def _named(self, result: Item) -> Call | None:
        names = {part.call_id for part in result.content if isinstance(part, ToolResultPart)}
        return next((call for call in self._calls.values() if call.id in names), None)

    def grow(self, call: Call, text: str) -> Iterator[AnyChunk]:
        """A call prints or answers a piece."""
        if text and not call.answered:
            yield from call.announce(self.step)
            yield call.grow(text)

    def answer(self, call: Call, output: str, *, failed: bool) -> Iterator[AnyChunk]:
        """A call is answered; the first answer counts."""
        if call.answered:
            return
        yield from call.announce(self.step)
        call.answered = True
        if failed:
            yield ToolOutputError(tool_call_id=call.id, error_text=output or "The tool failed.")
        else:
            yield ToolOutputAvailable(tool_call_id=call.id, output=read_json(output))

    def deny(self, call: Call) -> Iterator[AnyChunk]:
        """A human said no; what the agent says of the call from now on is not sent."""
        if not call.answered:
            call.answered = True
            yield ToolOutputDenied(tool_call_id=call.id)

    def announce_all(self) -> Iterator[AnyChunk]:
        """A step may not end while a call lacks its arguments."""
        for call in self._calls.values():
            if call.announced is None:
                yield from call.announce(self.step)

    def close_all(self) -> Iterator[AnyChunk]:
        """The turn is over: what was not answered never will be."""
        for call in self._calls.values():
            done = call.status == "completed"
            yield from self.answer(call, call.grown if done else _UNANSWERED, failed=not done)


def output_of(content: tuple[ContentPart, ...]) -> str:
    """What a result says."""
    pieces = [
        part.output if isinstance(part, ToolResultPart) else part.text
        for part in content
        if isinstance(part, ToolResultPart | TextPart)
    ]
    return "\n".join(pieces)


def is_json(text: str) -> bool:
    """Whether a text is a complete JSON document."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def read_json(text: str) -> Any:
    """An object or a list if the text is one, else the text itself."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
