"""The log as a UI Message Stream: one assistant message for each turn. A pure state machine."""

from collections.abc import Callable, Iterator
from typing import Any

from ostler.server.dialects.ai_sdk import data_parts
from ostler.server.dialects.ai_sdk.chunks import AnyChunk, ToolOutputAvailable, ToolOutputError
from ostler.server.dialects.ai_sdk.message import Message
from ostler.server.dialects.ai_sdk.profile import SAFE, Profile
from ostler.server.dialects.formats import Span, Subject
from ostler.wire.events import (
    AnyEvent,
    ArtifactCreated,
    ErrorRaised,
    FileChanged,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    Notice,
    PermissionRequested,
    PermissionResolved,
    PlanUpdated,
    QuestionRequested,
    QuestionResolved,
    SessionEnded,
    TerminalOutput,
    TurnEnded,
    TurnEndedData,
    TurnOutcome,
    TurnStarted,
    UnknownEvent,
    UsageUpdated,
)

KINDS = frozenset(
    {
        "start",
        "start-step",
        "finish-step",
        "finish",
        "error",
        "text-start",
        "text-delta",
        "text-end",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-output-available",
        "tool-output-error",
        "file",
        "data-plan",
        "data-permission",
        "data-question",
        "data-terminal",
        "data-file",
        "data-artifact",
        "data-notice",
        "data-status",
        "data-message",
        "data-json",
    }
)
"""What every version of the client takes."""
SPANS = (
    Span(opens="start", closes=("finish", "error")),
    Span(opens="start-step", closes=("finish-step",)),
    Span(opens="text-start", closes=("text-end",), id="id", grows=("text-delta",)),
    Span(opens="reasoning-start", closes=("reasoning-end",), id="id", grows=("reasoning-delta",)),
    Span(
        opens="tool-input-start",
        closes=("tool-output-available", "tool-output-error", "tool-output-denied"),
        id="toolCallId",
        grows=("tool-input-delta", "tool-input-available"),
    ),
)


class UiProjection:
    """What happens outside of turns has no place in a message and is left out."""

    def __init__(self, subject: Subject, profile: Profile = SAFE) -> None:
        self._subject = subject
        self._profile = profile
        self._message: Message | None = None
        self._prompts: set[str] = set()

    def feed(self, event: AnyEvent | UnknownEvent) -> list[AnyChunk]:
        """The chunks that one event becomes."""
        if isinstance(event, TurnStarted):
            return list(self._begin(event))
        handle = _HANDLERS.get(type(event))
        if self._message is None or handle is None:
            return []
        return list(handle(self, self._message, event))

    def park(self) -> list[AnyChunk]:
        """End the stream without ending the turn: the client has to answer first."""
        return list(self._message.park()) if self._message is not None else []

    def again(self) -> list[AnyChunk]:
        """How a stream begins that goes on with a message which was parked."""
        return [next(self._message.start())] if self._message is not None else []

    def _begin(self, event: TurnStarted) -> Iterator[AnyChunk]:
        if self._message is not None:
            yield from self._message.end(TurnEndedData(phase="ended", outcome="interrupted"))
        self._message = Message(message_id(event), self._subject.key, self._profile)
        yield from self._message.start()

    def _end(self, message: Message, event: TurnEnded | SessionEnded) -> Iterator[AnyChunk]:
        self._message = None
        yield from message.end(_end_of(event))

    def _started(self, message: Message, event: ItemStarted) -> Iterator[AnyChunk]:
        if event.data.item.role == "user":
            self._prompts.add(event.data.item.item_id)
        else:
            yield from message.item_started(event.data.item)

    def _grew(self, message: Message, event: ItemDelta) -> Iterator[AnyChunk]:
        if event.data.item_id not in self._prompts:
            yield from message.item_grew(event.data.item_id, event.data.delta)

    def _completed(self, message: Message, event: ItemCompleted) -> Iterator[AnyChunk]:
        if event.data.item.role != "user":
            yield from message.item_completed(event.data.item)

    def _permission(self, message: Message, event: PermissionRequested | PermissionResolved) -> Iterator[AnyChunk]:
        yield from message.permission(event.data)

    def _question(self, message: Message, event: QuestionRequested | QuestionResolved) -> Iterator[AnyChunk]:
        yield data_parts.question(event.data, session=self._subject.key, call_id=message.call_id(event.data.item_id))

    def _failed(self, message: Message, event: ErrorRaised) -> Iterator[AnyChunk]:
        message.error = event.data.message
        yield data_parts.notice("error", event.data.message, event.data.code)

    def _noticed(self, message: Message, event: Notice) -> Iterator[AnyChunk]:
        yield data_parts.notice(event.data.severity, event.data.message, event.data.code)

    def _planned(self, message: Message, event: PlanUpdated) -> Iterator[AnyChunk]:
        yield data_parts.plan(event.data)

    def _used(self, message: Message, event: UsageUpdated) -> Iterator[AnyChunk]:
        message.usage = {**message.usage, **data_parts.usage(event.data)}
        yield from ()

    def _printed(self, message: Message, event: TerminalOutput) -> Iterator[AnyChunk]:
        yield from message.printed(event.data.item_id, event.data.data)

    def _file(self, message: Message, event: FileChanged) -> Iterator[AnyChunk]:
        yield data_parts.file_changed(event.data, message.call_id(event.data.item_id))

    def _artifact(self, message: Message, event: ArtifactCreated) -> Iterator[AnyChunk]:
        yield data_parts.artifact(event.data, message.call_id(event.data.item_id))


_HANDLERS: dict[type, Callable[[UiProjection, Message, Any], Iterator[AnyChunk]]] = {
    TurnEnded: UiProjection._end,
    SessionEnded: UiProjection._end,
    ItemStarted: UiProjection._started,
    ItemDelta: UiProjection._grew,
    ItemCompleted: UiProjection._completed,
    PermissionRequested: UiProjection._permission,
    PermissionResolved: UiProjection._permission,
    QuestionRequested: UiProjection._question,
    QuestionResolved: UiProjection._question,
    ErrorRaised: UiProjection._failed,
    Notice: UiProjection._noticed,
    PlanUpdated: UiProjection._planned,
    UsageUpdated: UiProjection._used,
    TerminalOutput: UiProjection._printed,
    FileChanged: UiProjection._file,
    ArtifactCreated: UiProjection._artifact,
}


def message_id(event: TurnStarted) -> str:
    """The id of the assistant message of a turn."""
    return f"msg_{(event.data.turn_id or str(event.sequence)).removeprefix('trn_')}"


def latest(chunks: list[AnyChunk]) -> list[AnyChunk]:
    """Without preliminary outputs that another one follows at once: only the last of a batch is ever seen."""
    remaining: list[AnyChunk] = []
    replaced: set[str] = set()
    for chunk in reversed(chunks):
        if isinstance(chunk, ToolOutputAvailable | ToolOutputError):
            if isinstance(chunk, ToolOutputAvailable) and chunk.preliminary and chunk.tool_call_id in replaced:
                continue
            replaced.add(chunk.tool_call_id)
        remaining.append(chunk)
    return remaining[::-1]


def _end_of(event: TurnEnded | SessionEnded) -> TurnEndedData:
    if isinstance(event, TurnEnded):
        return event.data
    outcome: TurnOutcome = "failed" if event.data.reason == "error" else "interrupted"
    return TurnEndedData(phase="ended", outcome=outcome)
