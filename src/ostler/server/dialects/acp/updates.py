"""The log as ACP session updates."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from ostler.server.dialects.acp.blocks import (
    Json,
    arguments_of,
    block_of,
    diffs_of,
    kind_of,
    text_block,
    text_content,
    title_of,
)
from ostler.server.dialects.formats import Subject
from ostler.server.dialects.speech import Kind, Speech, spoken
from ostler.wire.events import (
    AnyEvent,
    FileChanged,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    PlanUpdated,
    SessionHandoff,
    SessionInfo,
    TerminalOutput,
    TurnStarted,
    UnknownEvent,
    UsageUpdated,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ToolCallPart, ToolResultPart

KINDS = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "current_mode_update",
        "session_info_update",
        "usage_update",
    }
)
_OUTPUT_SHOWN = 8192
"""Of a running command only the end is shown, since each update repeats it; the result has all of it."""


class AcpUpdates:
    """Fed every event in order; gives session updates as plain data."""

    def __init__(self, subject: Subject) -> None:
        self._cwd = subject.cwd
        self._speech = Speech()
        self._calls: dict[str, str] = {}
        self._outputs: dict[str, str] = {}

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[Json]:
        """What this event becomes."""
        known = {"sequence": event.sequence, **_agent_of(event)}
        return [{**update, "_meta": {"ostler": known}} for update in self._updates(event)]

    def has_call(self, item_id: str) -> bool:
        """Whether the client was told of a tool call with this id."""
        return item_id in self._calls.values()

    def _updates(self, event: AnyEvent | UnknownEvent) -> list[Json]:
        match event:
            case TurnStarted():
                self._speech, self._calls, self._outputs = Speech(), {}, {}
            case ItemStarted() | ItemDelta() | ItemCompleted():
                return self._about_an_item(event)
            case TerminalOutput():
                return self._printed(event)
            case FileChanged():
                return self._changed(event)
            case PlanUpdated() | UsageUpdated() | SessionInfo():
                return _about_the_session(event)
            case SessionHandoff() if _agent_of(event):
                return [{"sessionUpdate": "session_info_update", "updatedAt": event.time}]
        return []

    def _about_an_item(self, event: ItemStarted | ItemDelta | ItemCompleted) -> list[Json]:
        match event:
            case ItemStarted():
                return self._started(event.data.item)
            case ItemDelta():
                return self._grown(event.data.item_id, event.data.delta)
            case ItemCompleted():
                return self._completed(event.data.item)

    def _started(self, item: Item) -> list[Json]:
        call = _call_of(item)
        if item.kind != "tool_call" or call is None:
            return []
        self._calls[call.call_id] = item.item_id
        return [{"sessionUpdate": "tool_call", "status": "in_progress", **_described(item.item_id, call)}]

    def _grown(self, item_id: str, delta: ContentPart) -> list[Json]:
        if (words := spoken(delta)) is None:
            return []
        self._speech.add(item_id, *words)
        return [_chunk(item_id, *words)]

    def _completed(self, item: Item) -> list[Json]:
        match item.kind:
            case "message" if item.role == "user":
                return [
                    {"sessionUpdate": "user_message_chunk", "messageId": item.item_id, "content": block}
                    for block in map(block_of, item.content)
                    if block is not None
                ]
            case "message":
                return self._unsaid(item)
            case "tool_call":
                return self._called(item)
            case "tool_result":
                return self._answered(item)
            case _:
                return []

    def _unsaid(self, item: Item) -> list[Json]:
        rest = self._speech.rest(item)
        self._speech.forget(item.item_id)
        return [_chunk(item.item_id, *words) for words in rest]

    def _called(self, item: Item) -> list[Json]:
        call = _call_of(item)
        if call is None:
            return []
        known = call.call_id in self._calls and self._calls[call.call_id] == item.item_id
        self._calls[call.call_id] = item.item_id
        kind = "tool_call_update" if known else "tool_call"
        status = "failed" if item.status == "failed" else "completed"
        return [{"sessionUpdate": kind, "status": status, **_described(item.item_id, call)}]

    def _answered(self, item: Item) -> list[Json]:
        result = next((part for part in item.content if isinstance(part, ToolResultPart)), None)
        call = item.parent_id or self._calls.get(result.call_id if result else "")
        if call is None or result is None:
            return []
        self._outputs.pop(call, None)
        update: Json = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": call,
            "status": "failed" if item.status == "failed" else "completed",
            "rawOutput": {"output": result.output},
        }
        return [{**update, "content": [text_content(result.output)]} if result.output else update]

    def _printed(self, event: TerminalOutput) -> list[Json]:
        item_id = event.data.item_id
        if item_id is None or not self.has_call(item_id):
            return []
        shown = self._outputs[item_id] = (self._outputs.get(item_id, "") + event.data.data)[-_OUTPUT_SHOWN:]
        return [{"sessionUpdate": "tool_call_update", "toolCallId": item_id, "content": [text_content(shown)]}]

    def _changed(self, event: FileChanged) -> list[Json]:
        item_id = event.data.item_id
        if item_id is None or not self.has_call(item_id):
            return []
        path = str(PurePosixPath(self._cwd) / event.data.path)
        update: Json = {"sessionUpdate": "tool_call_update", "toolCallId": item_id, "locations": [{"path": path}]}
        diffs = diffs_of(path, event.data.diff or "")
        return [{**update, "content": diffs} if diffs else update]


def _call_of(item: Item) -> ToolCallPart | None:
    return next((part for part in item.content if isinstance(part, ToolCallPart)), None)


def _described(item_id: str, call: ToolCallPart) -> Json:
    arguments = arguments_of(call)
    return {
        "toolCallId": item_id,
        "title": title_of(call.name, arguments),
        "kind": kind_of(call.name),
        "rawInput": arguments,
    }


def _chunk(item_id: str, kind: Kind, text: str) -> Json:
    name = "agent_message_chunk" if kind == "text" else "agent_thought_chunk"
    return {"sessionUpdate": name, "messageId": item_id, "content": text_block(text)}


def _about_the_session(event: PlanUpdated | UsageUpdated | SessionInfo) -> list[Json]:
    match event:
        case PlanUpdated():
            entries = [
                {"content": entry.content, "status": entry.status, "priority": entry.priority or "medium"}
                for entry in event.data.entries
            ]
            return [{"sessionUpdate": "plan", "entries": entries}]
        case UsageUpdated():
            return [_usage(event)]
        case SessionInfo():
            return _info(event)


def _agent_of(event: AnyEvent | UnknownEvent) -> Json:
    """Who has the session now, if that is another agent than before."""
    if isinstance(event, SessionHandoff) and event.data.status == "done":
        return {"agent": event.data.to_agent}
    return {}


def _usage(event: UsageUpdated) -> Json:
    data = event.data
    tokens = (data.input_tokens or 0) + (data.output_tokens or 0)
    usage: Json = {
        "sessionUpdate": "usage_update",
        "used": tokens if data.context_used is None else data.context_used,
        "size": data.context_window or 0,
    }
    if data.cost is not None:
        usage["cost"] = {"amount": data.cost.amount, "currency": data.cost.currency}
    return usage


def _info(event: SessionInfo) -> list[Json]:
    found: list[Json] = []
    if event.data.title is not None:
        found.append({"sessionUpdate": "session_info_update", "title": event.data.title, "updatedAt": event.time})
    if event.data.mode is not None:
        found.append({"sessionUpdate": "current_mode_update", "currentModeId": event.data.mode})
    return found
