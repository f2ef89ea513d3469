"""The universal event schema: every event type, its data, and the table of all of them."""

from typing import Annotated, Any, Literal, get_args

import msgspec

from ostler.wire.fleets import (
    FenceResultData,
    FenceStartedData,
    FleetCatalogData,
    FleetNoteData,
    FleetSummaryData,
    HostExitedData,
    HostLogData,
    HostStartedData,
)
from ostler.wire.items import Item, PlanUpdatedData, QueueUpdatedData, StderrOutput
from ostler.wire.parts import ContentPart
from ostler.wire.struct import Body, Wire
from ostler.wire.workspace_events import (
    ArtifactCreatedData,
    CommentUpdatedData,
    DeliveryCompletedData,
    PullRequestData,
    SessionForkedData,
    SessionHandoffData,
    SessionLimitData,
    SessionMovedData,
    SessionRewoundData,
    SnapshotCreatedData,
    WorkspaceCreatedData,
    WorkspaceRemovedData,
    WorkspaceRestoredData,
)

EventSource = Literal["agent", "daemon"]
SessionStatus = Literal[
    "queued",
    "provisioning",
    "running",
    "pausing",
    "paused",
    "resuming",
    "stopping",
    "stopped",
    "completed",
    "failed",
    "cancelled",
]
TurnOutcome = Literal["completed", "interrupted", "failed"]
PermissionStatus = Literal["requested", "accept", "accept_for_session", "reject"]
QuestionStatus = Literal["requested", "answered", "rejected"]
PermissionMode = Literal["default", "plan", "bypass"]
RulePermission = Literal["allow", "ask", "deny"]


class SessionStartedData(Wire, frozen=True, kw_only=True):
    """The session exists."""

    metadata: dict[str, Any] | None = None


class SessionEndedData(Wire, frozen=True, kw_only=True):
    """The session is over; message, exit_code and stderr only when the reason is error."""

    reason: Literal["completed", "error", "terminated"]
    terminated_by: Literal["agent", "daemon"]
    message: str | None = None
    exit_code: int | None = None
    stderr: StderrOutput | None = None


class SessionStatusData(Wire, frozen=True, kw_only=True):
    """The session's status changed."""

    status: SessionStatus
    reason: str | None = None


class SessionInfoData(Wire, frozen=True, kw_only=True):
    """Something about the session became known or changed; absent fields did not change."""

    title: str | None = None
    title_chosen: bool | None = None
    """Present when a person chose the title; what the agent would call the session is left out from then on."""
    labels: dict[str, str] | None = None
    native_session_id: str | None = None
    agent_version: str | None = None
    model: str | None = None
    mode: str | None = None
    variant: str | None = None
    permission_mode: PermissionMode | None = None
    pinned: bool | None = None
    archived: bool | None = None
    start: int | None = None
    """How often the agent's process has been started for this session, present when it just was."""
    memory: Literal["native", "replayed"] | None = None
    """How a new process knows what was said before: by the agent's own resume, or told by us with the next prompt."""


class TurnStartedData(Wire, frozen=True, kw_only=True):
    """A turn began."""

    phase: Literal["started"]
    turn_id: str | None = None
    trace_id: str | None = None
    metadata: dict[str, Any] | None = None


class TurnEndedData(Wire, frozen=True, kw_only=True):
    """A turn is over; there is exactly one for each turn.started."""

    phase: Literal["ended"]
    outcome: TurnOutcome
    turn_id: str | None = None
    stop_reason: str | None = None
    metadata: dict[str, Any] | None = None


class ItemStartedData(Wire, frozen=True, kw_only=True):
    """An item opened."""

    item: Item


class ItemDeltaData(Wire, frozen=True, kw_only=True):
    """An open item grew."""

    item_id: str
    delta: ContentPart
    native_item_id: str | None = None


class ItemCompletedData(Wire, frozen=True, kw_only=True):
    """An item is final; its content replaces all deltas."""

    item: Item


class PermissionRule(Body, frozen=True, kw_only=True):
    """What becomes of what an agent asks about a tool, without anybody being asked."""

    pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    """The name of the tool as the agent gives it, with `*` for anything, such as `mcp__notes__*`."""
    permission: RulePermission


PermissionRules = Annotated[tuple[PermissionRule, ...], msgspec.Meta(max_length=100)]


class PermissionData(Wire, frozen=True, kw_only=True):
    """A permission ask, open or decided."""

    permission_id: str
    action: str
    status: PermissionStatus
    tool: str | None = None
    item_id: str | None = None
    message: str | None = None
    """Why it was rejected; reaches the agent."""
    metadata: dict[str, Any] | None = None


class QuestionOption(Wire, frozen=True, kw_only=True):
    """One answer on offer."""

    label: str
    description: str | None = None


class Question(Wire, frozen=True, kw_only=True):
    """One question of an ask."""

    question: str
    options: tuple[QuestionOption, ...]
    multi_select: bool
    free_text: bool
    header: str | None = None


class ClientCall(Wire, frozen=True, kw_only=True):
    """The model calls a tool that the client has."""

    name: str
    input: dict[str, Any]


class QuestionData(Wire, frozen=True, kw_only=True):
    """A question ask; prompt, options and response show its first question."""

    question_id: str
    prompt: str
    options: tuple[str, ...]
    status: QuestionStatus
    response: str | None = None
    questions: tuple[Question, ...] = ()
    answers: tuple[tuple[str, ...], ...] | None = None
    item_id: str | None = None
    message: str | None = None
    """Why it was declined; reaches the agent."""
    call: ClientCall | None = None
    """The tool of the client that is called; the answer is its result."""
    metadata: dict[str, Any] | None = None


class ErrorData(Wire, frozen=True, kw_only=True):
    """Something went wrong; the message is for people, the code for programs."""

    message: str
    code: str | None = None
    details: dict[str, Any] | None = None
    resets_at: str | None = None
    """When the limit that was reached ends, in RFC 3339, if the agent tells."""


class AgentUnparsedData(Wire, frozen=True, kw_only=True):
    """A frame nobody understood; treat it as a bug of the adapter."""

    error: str
    location: str
    raw_hash: str | None = None


class Cost(Wire, frozen=True, kw_only=True):
    """Money."""

    amount: float
    currency: str


class UsageUpdatedData(Wire, frozen=True, kw_only=True):
    """Tokens and cost so far in this turn, as far as the agent tells."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: Cost | None = None
    context_used: int | None = None
    context_window: int | None = None


class TerminalOutputData(Wire, frozen=True, kw_only=True):
    """Output of a command while it runs."""

    stream: Literal["stdout", "stderr"]
    data: str
    item_id: str | None = None
    late: bool = False
    """Whether its call had ended before: the command goes on in the background."""


class FileChangedData(Wire, frozen=True, kw_only=True):
    """The agent changed a file."""

    path: str
    action: Literal["created", "modified", "deleted", "moved"]
    diff: str | None = None
    item_id: str | None = None


class LogData(Wire, frozen=True, kw_only=True):
    """A line for operators."""

    level: Literal["debug", "info", "warning", "error"]
    message: str
    fields: dict[str, Any] | None = None


class NoticeData(Wire, frozen=True, kw_only=True):
    """Something the people in the session should know."""

    severity: Literal["info", "warning", "error"]
    message: str
    code: str | None = None


class Event(Wire, frozen=True, kw_only=True, tag_field="type"):
    """The envelope of every event; `data` depends on the type."""

    event_id: str
    sequence: int
    time: str
    session_id: str
    source: EventSource
    synthetic: bool
    native_session_id: str | None = None
    actor: str | None = None
    """Who did it, by their id; absent when nobody asked for it, as with all that agents do."""
    raw: Any = None
    """The agent's own frame, only when asked for with include_raw."""

    @property
    def type(self) -> str:
        """The event's type as it stands on the wire."""
        return str(self.__struct_config__.tag)


class SessionStarted(Event, frozen=True, kw_only=True, tag="session.started"):
    """The session exists."""

    data: SessionStartedData


class SessionEnded(Event, frozen=True, kw_only=True, tag="session.ended"):
    """The session is over; nothing follows."""

    data: SessionEndedData


class SessionStatusChanged(Event, frozen=True, kw_only=True, tag="session.status"):
    """The session's status changed."""

    data: SessionStatusData


class SessionInfo(Event, frozen=True, kw_only=True, tag="session.info"):
    """Title, labels, model, native session id or process start became known."""

    data: SessionInfoData


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn.started"):
    """A prompt was accepted and a turn began."""

    data: TurnStartedData


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn.ended"):
    """The turn is over: completed, interrupted or failed."""

    data: TurnEndedData


class ItemStarted(Event, frozen=True, kw_only=True, tag="item.started"):
    """An item opened."""

    data: ItemStartedData


class ItemDelta(Event, frozen=True, kw_only=True, tag="item.delta"):
    """An open item grew."""

    data: ItemDeltaData


class ItemCompleted(Event, frozen=True, kw_only=True, tag="item.completed"):
    """An item is final."""

    data: ItemCompletedData


class PermissionRequested(Event, frozen=True, kw_only=True, tag="permission.requested"):
    """The agent asks for permission."""

    data: PermissionData


class PermissionResolved(Event, frozen=True, kw_only=True, tag="permission.resolved"):
    """A permission ask was decided."""

    data: PermissionData


class QuestionRequested(Event, frozen=True, kw_only=True, tag="question.requested"):
    """The agent asks a question."""

    data: QuestionData


class QuestionResolved(Event, frozen=True, kw_only=True, tag="question.resolved"):
    """A question was answered or rejected."""

    data: QuestionData


class ErrorRaised(Event, frozen=True, kw_only=True, tag="error"):
    """Something went wrong in the agent or around it."""

    data: ErrorData


class AgentUnparsed(Event, frozen=True, kw_only=True, tag="agent.unparsed"):
    """A frame of the agent was not understood; the session goes on."""

    data: AgentUnparsedData


class PlanUpdated(Event, frozen=True, kw_only=True, tag="plan.updated"):
    """The agent's plan changed."""

    data: PlanUpdatedData


class UsageUpdated(Event, frozen=True, kw_only=True, tag="usage.updated"):
    """Tokens or cost changed."""

    data: UsageUpdatedData


class TerminalOutput(Event, frozen=True, kw_only=True, tag="terminal.output"):
    """A running command printed something."""

    data: TerminalOutputData


class FileChanged(Event, frozen=True, kw_only=True, tag="file.changed"):
    """The agent changed a file."""

    data: FileChangedData


class ArtifactCreated(Event, frozen=True, kw_only=True, tag="artifact.created"):
    """The agent produced a file worth showing."""

    data: ArtifactCreatedData


class QueueUpdated(Event, frozen=True, kw_only=True, tag="queue.updated"):
    """The list of waiting prompts changed."""

    data: QueueUpdatedData


class Log(Event, frozen=True, kw_only=True, tag="log"):
    """A line for operators."""

    data: LogData


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """Something people should know."""

    data: NoticeData


class WorkspaceCreated(Event, frozen=True, kw_only=True, tag="workspace.created"):
    """The session's workspace is there."""

    data: WorkspaceCreatedData


class SnapshotCreated(Event, frozen=True, kw_only=True, tag="snapshot.created"):
    """The state of the workspace was kept; happens after every turn."""

    data: SnapshotCreatedData


class DeliveryCompleted(Event, frozen=True, kw_only=True, tag="delivery.completed"):
    """The result was handed over: a patch, a branch or a pull request."""

    data: DeliveryCompletedData


class DeliveryUpdated(Event, frozen=True, kw_only=True, tag="delivery.updated"):
    """What became of the pull request on its forge."""

    data: PullRequestData


class SessionRewound(Event, frozen=True, kw_only=True, tag="session.rewound"):
    """Files, conversation and memory went back to the end of a turn."""

    data: SessionRewoundData


class WorkspaceRestored(Event, frozen=True, kw_only=True, tag="workspace.restored"):
    """The files are those of a snapshot again: by a rewind, or while the conversation stayed as it is."""

    data: WorkspaceRestoredData


class WorkspaceRemoved(Event, frozen=True, kw_only=True, tag="workspace.removed"):
    """The files of a session that has ended are not kept any longer; its log is."""

    data: WorkspaceRemovedData


class SessionForked(Event, frozen=True, kw_only=True, tag="session.forked"):
    """The session was made from another one."""

    data: SessionForkedData


class SessionMoved(Event, frozen=True, kw_only=True, tag="session.moved"):
    """The session goes on on another runner; says what did not come along."""

    data: SessionMovedData


class SessionHandoff(Event, frozen=True, kw_only=True, tag="session.handoff"):
    """Another agent takes the next turn: it is wanted, done, or will not be."""

    data: SessionHandoffData


class SessionLimit(Event, frozen=True, kw_only=True, tag="session.limit"):
    """A limit that ends at a known time ended a turn, is waited for no longer, or is over."""

    data: SessionLimitData


class CommentUpdated(Event, frozen=True, kw_only=True, tag="comment.updated"):
    """Somebody commented on the files, changed or removed a comment, or sent it to the agent."""

    data: CommentUpdatedData


class FleetCatalog(Event, frozen=True, kw_only=True, tag="fleet.catalog"):
    """The leader told which followers the session has."""

    data: FleetCatalogData


class FenceStarted(Event, frozen=True, kw_only=True, tag="fence.started"):
    """The leader began to make every follower equal to a snapshot."""

    data: FenceStartedData


class FenceResult(Event, frozen=True, kw_only=True, tag="fence.result"):
    """A fence is over; says for each follower whether it is as the snapshot."""

    data: FenceResultData


class HostStarted(Event, frozen=True, kw_only=True, tag="host.started"):
    """A command began on a follower."""

    data: HostStartedData


class HostLog(Event, frozen=True, kw_only=True, tag="host.log"):
    """A command on a follower printed something."""

    data: HostLogData


class HostExited(Event, frozen=True, kw_only=True, tag="host.exited"):
    """A command on a follower ended."""

    data: HostExitedData


class FleetSummary(Event, frozen=True, kw_only=True, tag="fleet.summary"):
    """A run on all followers is over."""

    data: FleetSummaryData


class FleetNote(Event, frozen=True, kw_only=True, tag="fleet.note"):
    """The leader remarked something."""

    data: FleetNoteData


AnyEvent = (
    SessionStarted
    | SessionEnded
    | SessionStatusChanged
    | SessionInfo
    | TurnStarted
    | TurnEnded
    | ItemStarted
    | ItemDelta
    | ItemCompleted
    | PermissionRequested
    | PermissionResolved
    | QuestionRequested
    | QuestionResolved
    | ErrorRaised
    | AgentUnparsed
    | PlanUpdated
    | UsageUpdated
    | TerminalOutput
    | FileChanged
    | ArtifactCreated
    | QueueUpdated
    | Log
    | Notice
    | WorkspaceCreated
    | SnapshotCreated
    | DeliveryCompleted
    | DeliveryUpdated
    | SessionRewound
    | WorkspaceRestored
    | WorkspaceRemoved
    | SessionForked
    | SessionMoved
    | SessionHandoff
    | SessionLimit
    | CommentUpdated
    | FleetCatalog
    | FenceStarted
    | FenceResult
    | HostStarted
    | HostLog
    | HostExited
    | FleetSummary
    | FleetNote
)

EVENTS: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)}


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event from a newer server; everything it carried is kept."""

    event_id: str
    sequence: int
    time: str
    session_id: str
    type: str
    data: Any = None
    source: str = "daemon"
    synthetic: bool = False
    native_session_id: str | None = None
    actor: str | None = None
    raw: Any = None


_known: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def decode_event(data: bytes | str) -> AnyEvent | UnknownEvent:
    """Read one event; a type or a value from the future gives an UnknownEvent, never an exception."""
    try:
        return _known.decode(data)
    except msgspec.ValidationError:
        return msgspec.json.decode(data, type=UnknownEvent)
