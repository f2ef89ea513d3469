"""The log as the consolidated stream of a workflow execution: tokens, state changes and task states."""

from collections.abc import Sequence
from typing import Any

import msgspec

from ostler.base.writing import Writing
from ostler.server.dialects.formats import Subject, picture_of
from ostler.server.dialects.speech import Kind, Speech, spoken
from ostler.server.dialects.workflow.bodies import ExecutionStatus
from ostler.server.dialects.workflow.status import execution_status, state_word
from ostler.server.sessions.folders import relative
from ostler.wire.events import (
    AnyEvent,
    ArtifactCreated,
    ErrorRaised,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
    SessionEnded,
    SessionStatus,
    SessionStatusChanged,
    TerminalOutput,
    TurnEnded,
    TurnStarted,
    UnknownEvent,
    WorkspaceCreated,
)
from ostler.wire.items import Item
from ostler.wire.parts import ContentPart, ImagePart, ToolCallPart, ToolResultPart

Json = dict[str, Any]
KINDS = frozenset({"Token", "WorkflowState", "TaskState"})
_ENDS: dict[str, SessionStatus] = {"completed": "completed", "error": "failed", "terminated": "cancelled"}


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the stream: its name and what it carries."""

    event: str
    data: Json


class WorkflowProjection:
    """Fed the events of whole turns in order."""

    def __init__(self, subject: Subject) -> None:
        self._session = subject.key
        self._is_cut_off = subject.is_cut_off
        self._folders = subject.folders
        self._turn_count = subject.turns_before
        self._turn_id = ""
        self._status: SessionStatus = "running"
        self._works = False
        self._asks: set[str] = set()
        self._sent_status: ExecutionStatus | None = None
        self._calls: dict[str, ToolCallPart] = {}
        self._speech = Speech()
        self._writing = Writing()

    def feed(self, event: AnyEvent | UnknownEvent) -> Sequence[Message]:
        """What this event becomes."""
        match event:
            case TurnStarted() | TurnEnded() | SessionStatusChanged() | SessionEnded():
                return self._about_the_execution(event)
            case PermissionRequested() | PermissionResolved() | QuestionRequested() | QuestionResolved():
                return self._about_an_ask(event)
            case ItemStarted() | ItemDelta() | ItemCompleted():
                return self._about_an_item(event)
            case WorkspaceCreated(data=made):
                self._folders = (*self._folders, made.path)
                return []
            case TerminalOutput() | ArtifactCreated() | ErrorRaised():
                return [self._beside(event)]
            case _:
                return []

    def _beside(self, event: TerminalOutput | ArtifactCreated | ErrorRaised) -> Message:
        match event:
            case TerminalOutput(data=data):
                return self._token(data.item_id, {"type": "terminal", "stream": data.stream, "data": data.data})
            case ArtifactCreated(data=made):
                path = relative(made.path, self._folders)
                artifact = {"type": "artifact", "path": path, "action": made.action}
                return self._token(made.item_id, {**artifact, "artifact_type": made.artifact_type})
            case ErrorRaised():
                return self._token(None, _extension(event))

    def _about_the_execution(
        self, event: TurnStarted | TurnEnded | SessionStatusChanged | SessionEnded
    ) -> list[Message]:
        match event:
            case TurnStarted():
                self._turn_count += 1
                self._turn_id = event.data.turn_id or ""
                self._calls, self._speech, self._asks = {}, Speech(), set()
                self._writing = Writing()
                self._status, self._works, self._sent_status = "running", True, None
                return [*self._standing(), _state("currentTurn", self._turn_count)]
            case TurnEnded():
                self._works, self._asks = False, set()
                if self._is_cut_off(event):
                    return []
            case SessionStatusChanged():
                self._status = event.data.status
            case SessionEnded():
                self._status = _ENDS[event.data.reason]
        return self._standing()

    def _about_an_ask(
        self, event: PermissionRequested | PermissionResolved | QuestionRequested | QuestionResolved
    ) -> list[Message]:
        match event:
            case PermissionRequested() | QuestionRequested():
                self._asks.add(_ask_id(event))
                return [self._token(None, _extension(event)), *self._standing()]
            case _:
                self._asks.discard(_ask_id(event))
                return self._standing() if _is_answered(event) else []  # what follows says why nobody had to answer

    def _standing(self) -> list[Message]:
        """Where the execution stands, if that has changed."""
        begun = self._turn_count > 0
        status = execution_status(self._status, has_begun=begun, works=self._works, asks=bool(self._asks))
        if status == self._sent_status:
            return []
        self._sent_status = status
        return [_state("status", state_word(status))]

    def _about_an_item(self, event: ItemStarted | ItemDelta | ItemCompleted) -> list[Message]:
        match event:
            case ItemStarted():
                sent = self._started(event.data.item)
            case ItemDelta():
                sent = self._grown(event.data.item_id, event.data.delta)
            case ItemCompleted():
                sent = self._completed(event.data.item)
        return [*self._standing(), *sent] if sent else []

    def _started(self, item: Item) -> list[Message]:
        if item.kind not in {"message", "tool_call"} or item.role == "user":
            return []
        running = _task(item.item_id, "RUNNING")
        call = next((part for part in item.content if isinstance(part, ToolCallPart)), None)
        if item.kind != "tool_call" or call is None:
            return [running]
        self._calls[item.item_id] = call
        return [running, *self._called(item.item_id, self._writing.begin(item))]

    def _called(self, item_id: str, call: ToolCallPart | None) -> list[Message]:
        """Told once, with all arguments."""
        if call is None:
            return []
        started = {"id": item_id, "name": call.name, "arguments": _arguments(call)}
        return [self._token(item_id, {"type": "tool_call_start", "tool_call": started})]

    def _grown(self, item_id: str, delta: ContentPart) -> list[Message]:
        if isinstance(delta, ToolCallPart):
            return self._called(item_id, self._writing.grow(item_id, delta))
        if (words := spoken(delta)) is None:
            return []
        self._speech.add(item_id, *words)
        return [self._say(item_id, *words)]

    def _say(self, item_id: str, kind: Kind, text: str) -> Message:
        return self._token(item_id, text if kind == "text" else {"type": "thinking_delta", "delta": text})

    def _completed(self, item: Item) -> list[Message]:
        match item.kind:
            case "message" if item.role != "user":
                return [*self._unsaid(item), _task(item.item_id, "FAILED" if item.status == "failed" else "COMPLETED")]
            case "tool_call":
                called = self._called(item.item_id, self._writing.end(item))
                return [*called, _task(item.item_id, "FAILED" if item.status == "failed" else "COMPLETED")]
            case "tool_result":
                return self._answered(item)
            case _:
                return []

    def _unsaid(self, item: Item) -> list[Message]:
        rest = self._speech.rest(item)
        self._speech.forget(item.item_id)
        shown = [picture_of(self._session, part) for part in item.content if isinstance(part, ImagePart)]
        pictures = [{"type": "image", "url": url, "media_type": media_type} for url, media_type in shown]
        return [
            *(self._say(item.item_id, *words) for words in rest),
            *(self._token(item.item_id, picture) for picture in pictures),
        ]

    def _answered(self, item: Item) -> list[Message]:
        result = next((part for part in item.content if isinstance(part, ToolResultPart)), None)
        parent = item.parent_id or ""
        call = self._calls.pop(parent, None)
        if result is None:
            return []
        ended = {
            "type": "tool_call_end",
            "tool_call": {"id": parent or result.call_id, "name": call.name if call else "tool"},
            "result": {"content": result.output, "is_error": item.status == "failed"},
        }
        return [self._token(parent or item.item_id, ended)]

    def _token(self, task: str | None, data: str | Json) -> Message:
        return Message(event="Token", data={"taskExecutionId": task or self._turn_id, "data": data})


def _state(key: str, value: Any) -> Message:
    return Message(event="WorkflowState", data={"key": key, "value": value})


def _task(task: str, status: str) -> Message:
    return Message(event="TaskState", data={"taskExecutionId": task, "status": status})


def _arguments(call: ToolCallPart) -> Any:
    try:
        return msgspec.json.decode(call.arguments)
    except msgspec.DecodeError:
        return call.arguments


def _ask_id(event: PermissionRequested | PermissionResolved | QuestionRequested | QuestionResolved) -> str:
    match event:
        case PermissionRequested() | PermissionResolved():
            return event.data.permission_id
        case QuestionRequested() | QuestionResolved():
            return event.data.question_id


def _is_answered(event: PermissionResolved | QuestionResolved) -> bool:
    return (event.data.metadata or {}).get("resolved_by") in {"user", "policy"}


def _extension(event: ErrorRaised | PermissionRequested | QuestionRequested) -> Json:
    """Beyond the specification: what went wrong, and what waits for an answer by a signal."""
    match event:
        case ErrorRaised(data=data):
            return {"type": "error", "message": data.message, "code": data.code}
        case PermissionRequested(data=data):
            return {"type": "permission_request", "permissionId": data.permission_id, "action": data.action}
        case QuestionRequested(data=data):
            questions = msgspec.to_builtins(data.questions)
            return {
                "type": "question",
                "questionId": data.question_id,
                "prompt": data.prompt,
                "options": list(data.options),
                "questions": questions,
            }
