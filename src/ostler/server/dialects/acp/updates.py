"""The log as ACP session updates."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from ostler.base.writing import Writing
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
    TurnEnded,
    TurnStarted,
    UnknownEvent,
    UsageUpdated,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ImagePart, ToolCallPart, ToolResultPart

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
"""Of what a command printed, updates that repeat it show only the end; the result has all of it, once."""


class _Call:
    """What a client was told of a tool call. Its content is told whole each time, as an update replaces it."""

    def __init__(self) -> None:
        self.output = ""
        self.answer = ""
        self.diffs: list[Json] = []
        self.paths: list[str] = []
        self.is_answered = False
        self.has_failed = False

    @property
    def content(self) -> list[Json]:
        text = self.answer or self.output
        return [*self.diffs, text_content(text)] if text else self.diffs


class AcpUpdates:
    """Fed every event in order; gives session updates as plain data."""

    def __init__(self, subject: Subject) -> None:
        self._cwd = subject.cwd
        self._speech = Speech()
        self._writing = Writing()
        self._calls: dict[str, str] = {}
        self._sent: dict[str, _Call] = {}

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
                self._speech, self._calls, self._sent = Speech(), {}, {}
            case TurnEnded():
                return self._left()
            case ItemStarted() | ItemDelta() | ItemCompleted():
                return self._about_an_item(event)
            case TerminalOutput() | FileChanged():
                return self._printed(event) if isinstance(event, TerminalOutput) else self._changed(event)
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
        self._sent[item.item_id] = _Call()
        self._writing.begin(item)
        return [{"sessionUpdate": "tool_call", "status": "in_progress", **_described(item.item_id, call)}]

    def _grown(self, item_id: str, delta: ContentPart) -> list[Json]:
        if isinstance(delta, ToolCallPart):
            whole = self._writing.grow(item_id, delta)
            described = _described(item_id, whole) if whole is not None else None
            return [{"sessionUpdate": "tool_call_update", **described}] if described is not None else []
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
        pictures = [block_of(part) for part in item.content if isinstance(part, ImagePart)]
        return [
            *(_chunk(item.item_id, *words) for words in rest),
            *({"sessionUpdate": "agent_message_chunk", "messageId": item.item_id, "content": one} for one in pictures),
        ]

    def _called(self, item: Item) -> list[Json]:
        call = _call_of(item)
        if call is None:
            return []
        known = item.item_id in self._sent
        self._calls[call.call_id] = item.item_id
        sent = self._sent.setdefault(item.item_id, _Call())
        kind = "tool_call_update" if known else "tool_call"
        sent.has_failed = item.status == "failed"  # told with the result, as clients take nothing after an end
        return [{"sessionUpdate": kind, "status": "in_progress", **_described(item.item_id, call)}]

    def _answered(self, item: Item) -> list[Json]:
        result = next((part for part in item.content if isinstance(part, ToolResultPart)), None)
        call = item.parent_id or self._calls.get(result.call_id if result else "")
        if call is None or result is None:
            return []
        sent = self._sent.setdefault(call, _Call())
        sent.is_answered, sent.answer = True, result.output
        status = "failed" if item.status == "failed" else "completed"
        update: Json = {**_update(call, sent), "status": status, "rawOutput": {"output": result.output}}
        sent.answer = result.output[-_OUTPUT_SHOWN:]
        return [update]

    def _left(self) -> list[Json]:
        """The calls that have no result are over with their turn."""
        left = [(call, sent) for call, sent in self._sent.items() if not sent.is_answered]
        for _, sent in left:
            sent.is_answered = True
        return [{**_update(call, sent), "status": "failed" if sent.has_failed else "completed"} for call, sent in left]

    def _printed(self, event: TerminalOutput) -> list[Json]:
        sent = self._sent.get(event.data.item_id or "")
        if event.data.item_id is None or sent is None:
            return []
        sent.output = (sent.output + event.data.data)[-_OUTPUT_SHOWN:]
        return [_update(event.data.item_id, sent)]

    def _changed(self, event: FileChanged) -> list[Json]:
        sent = self._sent.get(event.data.item_id or "")
        if event.data.item_id is None or sent is None:
            return []
        path = str(PurePosixPath(self._cwd) / event.data.path)
        sent.paths = [*dict.fromkeys([*sent.paths, path])]
        sent.diffs += diffs_of(path, event.data.diff or "")
        locations = [{"path": path} for path in sent.paths]
        return [{**_update(event.data.item_id, sent), "locations": locations}]


def _update(call: str, sent: _Call) -> Json:
    update: Json = {"sessionUpdate": "tool_call_update", "toolCallId": call}
    return {**update, "content": sent.content} if sent.content else update


def _call_of(item: Item) -> ToolCallPart | None:
    return next((part for part in item.content if isinstance(part, ToolCallPart)), None)


def _described(item_id: str, call: ToolCallPart) -> Json:
    arguments = arguments_of(call)
    described = {"toolCallId": item_id, "title": title_of(call.name, arguments), "kind": kind_of(call.name)}
    return {**described, "rawInput": arguments} if call.arguments else described  # it may come later


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
