"""The log as AG-UI events."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ostler.base.writing import Writing
from ostler.server.dialects.agui.interrupts import Json, interrupt_of
from ostler.server.dialects.formats import Span, Subject, picture_of
from ostler.server.dialects.speech import Kind, Speech, spoken
from ostler.wire.events import (
    AnyEvent,
    ArtifactCreated,
    ErrorRaised,
    FileChanged,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    PermissionData,
    PermissionRequested,
    PermissionResolved,
    PlanUpdated,
    QuestionData,
    QuestionRequested,
    QuestionResolved,
    TerminalOutput,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
    UsageUpdated,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ImagePart, ToolCallPart, ToolResultPart

KINDS = frozenset(
    {
        "RUN_STARTED",
        "RUN_FINISHED",
        "RUN_ERROR",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "ACTIVITY_SNAPSHOT",
        "CUSTOM",
    }
)
SPANS = (
    Span(opens="RUN_STARTED", closes=("RUN_FINISHED", "RUN_ERROR")),
    Span(opens="TEXT_MESSAGE_START", closes=("TEXT_MESSAGE_END",), id="messageId", grows=("TEXT_MESSAGE_CONTENT",)),
    Span(opens="REASONING_START", closes=("REASONING_END",), id="messageId"),
    Span(
        opens="REASONING_MESSAGE_START",
        closes=("REASONING_MESSAGE_END",),
        id="messageId",
        grows=("REASONING_MESSAGE_CONTENT",),
    ),
    Span(opens="TOOL_CALL_START", closes=("TOOL_CALL_END",), id="toolCallId", grows=("TOOL_CALL_ARGS",)),
)
_ENDINGS = {"text": ("TEXT_MESSAGE_END",), "reasoning": ("REASONING_MESSAGE_END", "REASONING_END")}


class AguiProjection:
    """Fed the events of whole turns in order.

    A run is a turn, or the part of it between two asks: at an ask the run ends with an interrupt, and when the last
    open ask is decided the next one begins.
    """

    def __init__(self, subject: Subject) -> None:
        self._thread = subject.key
        self._turn_id = ""
        self._runs = 0
        self._is_running = False
        self._open: tuple[str, str, str] | None = None
        self._segments: dict[str, int] = {}
        self._speech = Speech()
        self._writing = Writing()
        self._calls: dict[str, bool] = {}
        self._asks: dict[str, Json] = {}
        self._error: str | None = None
        self._usage: Json = {}

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[Json]:
        """What this event becomes."""
        moment = round(datetime.fromisoformat(event.time).timestamp() * 1000)
        return [{**message, "timestamp": moment} for message in self._messages(event)]

    def _messages(self, event: AnyEvent | UnknownEvent) -> list[Json]:
        match event:
            case TurnStarted():
                return self._begin_turn(event)
            case TurnEnded() if self._turn_id:
                return self._end_turn(event)
            case PermissionRequested() | QuestionRequested():
                return self._interrupted(event)
            case PermissionResolved(data=PermissionData(permission_id=ask_id)):
                return self._decided(ask_id)
            case QuestionResolved(data=QuestionData(question_id=ask_id)):
                return self._decided(ask_id)
            case _:
                return self._within_a_run(event) if self._turn_id else []

    # Runs

    def _begin_turn(self, event: TurnStarted) -> list[Json]:
        left = self._close_everything() if self._is_running else []
        if self._is_running:  # no log of ours has a turn within a turn, but a run must end before the next begins
            left.append({"type": "RUN_FINISHED", **self._names(), "outcome": {"type": "success"}})
        self._turn_id = event.data.turn_id or "turn"
        self._runs, self._error, self._usage = 0, None, {}
        self._speech = Speech()
        self._writing = Writing()
        self._segments.clear()
        self._calls.clear()
        self._asks.clear()
        return [*left, *self._begin_run()]

    def _begin_run(self) -> list[Json]:
        self._runs += 1
        self._is_running = True
        return [{"type": "RUN_STARTED", **self._names()}]

    def _names(self) -> Json:
        run = self._turn_id if self._runs == 1 else f"{self._turn_id}.{self._runs}"
        return {"threadId": self._thread, "runId": run}

    def _end_turn(self, event: TurnEnded) -> list[Json]:
        begun = [] if self._is_running else self._begin_run()
        closed = self._close_everything()
        names, self._turn_id, self._is_running = self._names(), "", False
        usage = {"usage": [self._usage]} if self._usage else {}
        if event.data.outcome == "completed":
            result = {"stopReason": event.data.stop_reason}
            finished = {"type": "RUN_FINISHED", **names, "outcome": {"type": "success"}, "result": result, **usage}
            return [*begun, *closed, finished]
        reason = self._error if event.data.outcome == "failed" else "The turn was interrupted."
        message = reason or f"The turn failed ({event.data.stop_reason})."
        return [*begun, *closed, {"type": "RUN_ERROR", "message": message, "code": event.data.outcome, **usage}]

    def _interrupted(self, event: PermissionRequested | QuestionRequested) -> list[Json]:
        interrupt = interrupt_of(event.data, known_calls=self._calls)
        self._asks[interrupt["id"]] = interrupt
        if not self._is_running:
            return []
        closed = self._close_everything()
        self._is_running = False
        outcome = {"type": "interrupt", "interrupts": list(self._asks.values())}
        return [*closed, {"type": "RUN_FINISHED", **self._names(), "outcome": outcome}]

    def _decided(self, ask_id: str) -> list[Json]:
        self._asks.pop(ask_id, None)
        if self._turn_id and not self._is_running and not self._asks:
            return self._begin_run()
        return []

    def _within_a_run(self, event: AnyEvent | UnknownEvent) -> list[Json]:
        found = self._content(event)
        if not found or self._is_running:
            return found
        return [*self._begin_run(), *found]  # the agent goes on although an ask is open

    # What happens in a run

    def _content(self, event: AnyEvent | UnknownEvent) -> list[Json]:
        match event:
            case ItemStarted() | ItemDelta() | ItemCompleted():
                return self._about_an_item(event)
            case PlanUpdated():
                content = {"entries": msgspec.to_builtins(event.data.entries)}
                plan = {"messageId": f"plan-{self._turn_id}", "activityType": "PLAN", "content": content}
                return [{"type": "ACTIVITY_SNAPSHOT", **plan, "replace": True}]
            case TerminalOutput() | FileChanged() | ArtifactCreated():
                return [{"type": "CUSTOM", "name": event.type, "value": msgspec.to_builtins(event.data)}]
            case UsageUpdated():
                self._usage = _usage(event)
            case ErrorRaised():
                self._error = event.data.message
        return []

    def _about_an_item(self, event: ItemStarted | ItemDelta | ItemCompleted) -> list[Json]:
        match event:
            case ItemStarted():
                return self._started(event.data.item)
            case ItemDelta(data=data):
                return self._grown(data.item_id, data.delta)
            case ItemCompleted():
                return self._completed(event.data.item)

    def _grown(self, item_id: str, delta: ContentPart) -> list[Json]:
        if isinstance(delta, ToolCallPart):
            whole = self._writing.grow(item_id, delta)
            return self._arguments(item_id, whole) if whole is not None and self._calls.get(item_id) else []
        return [] if (words := spoken(delta)) is None else self._say(item_id, *words)

    def _say(self, item_id: str, kind: Kind, text: str, role: str = "assistant") -> list[Json]:
        self._speech.add(item_id, kind, text)
        opened = (
            [] if self._open is not None and self._open[:2] == (kind, item_id) else self._open_one(kind, item_id, role)
        )
        message_id = self._open[2] if self._open else item_id
        content = "TEXT_MESSAGE_CONTENT" if kind == "text" else "REASONING_MESSAGE_CONTENT"
        return [*opened, {"type": content, "messageId": message_id, "delta": text}]

    def _open_one(self, kind: str, item_id: str, role: str) -> list[Json]:
        """Begin a message; one that was left for another, or by an interrupt, goes on under a name of its own."""
        closed = self._close()
        name = item_id if kind == "text" else f"{item_id}-reasoning"
        number = self._segments[name] = self._segments.get(name, 0) + 1
        message_id = name if number == 1 else f"{name}.{number}"
        self._open = (kind, item_id, message_id)
        if kind == "text":
            return [*closed, {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": role}]
        return [
            *closed,
            {"type": "REASONING_START", "messageId": message_id},
            {"type": "REASONING_MESSAGE_START", "messageId": message_id, "role": "reasoning"},
        ]

    def _close(self) -> list[Json]:
        if self._open is None:
            return []
        kind, _, message_id = self._open
        self._open = None
        return [{"type": ending, "messageId": message_id} for ending in _ENDINGS[kind]]

    def _close_everything(self) -> list[Json]:
        ends = [{"type": "TOOL_CALL_END", "toolCallId": call} for call, is_open in self._calls.items() if is_open]
        self._calls = dict.fromkeys(self._calls, False)
        return [*self._close(), *ends]

    def _started(self, item: Item) -> list[Json]:
        call = _call_of(item)
        if item.kind != "tool_call" or call is None or item.item_id in self._calls:
            return []
        self._calls[item.item_id] = True
        self._writing.begin(item)
        started = {"type": "TOOL_CALL_START", "toolCallId": item.item_id, "toolCallName": call.name}
        rest = [] if call.arguments in {"", "{}"} else self._arguments(item.item_id, call)
        return [*self._close(), started, *rest]

    def _arguments(self, item_id: str, call: ToolCallPart) -> list[Json]:
        self._calls[item_id] = False
        grown = [{"type": "TOOL_CALL_ARGS", "toolCallId": item_id, "delta": call.arguments}] if call.arguments else []
        return [*grown, {"type": "TOOL_CALL_END", "toolCallId": item_id}]

    def _completed(self, item: Item) -> list[Json]:
        match item.kind:
            case "message":
                return self._finished_message(item)
            case "tool_call":
                return self._finished_call(item)
            case "tool_result":
                return self._result(item)
            case _:
                return []

    def _finished_message(self, item: Item) -> list[Json]:
        role = "user" if item.role == "user" else "assistant"
        found = [
            message for kind, text in self._speech.rest(item) for message in self._say(item.item_id, kind, text, role)
        ]
        self._speech.forget(item.item_id)
        closed = self._close() if self._open is not None and self._open[1] == item.item_id else []
        return [*found, *closed, *(self._pictures(item) if role == "assistant" else [])]

    def _pictures(self, item: Item) -> list[Json]:
        """The protocol has no word for what the assistant shows."""
        shown = [picture_of(self._thread, part) for part in item.content if isinstance(part, ImagePart)]
        values = [{"messageId": item.item_id, "url": url, "mediaType": media_type} for url, media_type in shown]
        return [{"type": "CUSTOM", "name": "image", "value": value} for value in values]

    def _finished_call(self, item: Item) -> list[Json]:
        call = _call_of(item)
        if call is None:
            return []
        begun = self._started(item)
        return [*begun, *(self._arguments(item.item_id, call) if self._calls.get(item.item_id) else [])]

    def _result(self, item: Item) -> list[Json]:
        result = next((part for part in item.content if isinstance(part, ToolResultPart)), None)
        call = item.parent_id
        if result is None or call is None or call not in self._calls:
            return []
        ended = [{"type": "TOOL_CALL_END", "toolCallId": call}] if self._calls[call] else []
        self._calls[call] = False
        fields = {"messageId": item.item_id, "toolCallId": call, "content": result.output, "role": "tool"}
        return [*self._close(), *ended, {"type": "TOOL_CALL_RESULT", **fields}]


def _call_of(item: Item) -> ToolCallPart | None:
    return next((part for part in item.content if isinstance(part, ToolCallPart)), None)


def _usage(event: UsageUpdated) -> Json:
    data = event.data
    counts = {
        "inputTokens": data.input_tokens,
        "outputTokens": data.output_tokens,
        "cachedInputTokens": data.cached_input_tokens,
        "reasoningTokens": data.reasoning_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}
