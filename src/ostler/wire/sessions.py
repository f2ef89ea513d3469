"""Sessions, prompts, turns and asks as the API shows them."""

from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from ostler.wire.events import (
    PermissionData,
    PermissionMode,
    PermissionRule,
    PermissionRules,
    QuestionData,
    SessionStatus,
    TurnOutcome,
)
from ostler.wire.items import Item
from ostler.wire.parts import InputPart, PromptPart
from ostler.wire.providers import ClientTool, CodeTool, McpServers
from ostler.wire.runners import Placement, SessionRunner
from ostler.wire.struct import Answer, Body, Wire
from ostler.wire.tasks import (
    Delivered,
    SessionAgent,
    TaskPart,
    TaskProvider,
    TaskRuntime,
    TaskRuntimeView,
    TaskVcs,
    TaskWorkspaceView,
)
from ostler.wire.texts import AbsolutePath, Choice, Key, Labels, Prompt, Variables
from ostler.wire.workspaces import ChangedBy, Repo, WorkspaceWish

Activity = Literal["idle", "working", "waiting"]
WhenBusy = Literal["queue", "steer", "interrupt", "reject"]
PermissionReply = Literal["once", "always", "reject"]
T = TypeVar("T")
MOST_COUNTED_FILES = 200
"""So many names a session keeps, to know which files it has counted."""
MOST_INSTRUCTIONS = 64 * 2**10
"""The largest instructions of a session, in bytes."""


MOST_TURNS, MOST_TOKENS, MOST_TEMPERATURE = 10_000, 10_000_000, 2


def _up_to(most: float, least: int = 1) -> msgspec.Meta:
    """A range for the schema; who creates the session checks it, and says which value is out of it."""
    return msgspec.Meta(extra_json_schema={"minimum": least, "maximum": most})


class TurnLimits(Body, frozen=True, kw_only=True):
    """Limits of an agent that obeys them (`limits` in the catalogue)."""

    max_turns: Annotated[int, _up_to(MOST_TURNS)] | None = None
    """Most calls of the model in one turn; a turn that would need more ends and says so."""
    max_tokens: Annotated[int, _up_to(MOST_TOKENS)] | None = None
    """Most tokens in one answer of the model."""


class CreateSession(Body, frozen=True, kw_only=True, omit_defaults=True):
    """What a new session needs; only the agent is required, or a template that names one."""

    agent: str = ""
    template: str | None = None
    """A stored definition: `name`, `name@tag` or `name@sha256:...`. What is said here goes before what it says."""
    inputs: dict[str, Any] = msgspec.field(default_factory=dict)
    """Values for the template's variables; no place for secrets."""
    key: Key | None = None
    """Your own id for the session, unique in the project. Creating the same key again returns the same session."""
    title: str | None = None
    model: Choice | None = None
    variant: Choice | None = None
    mode: Choice | None = None
    instructions: str | None = None
    """What the agent is told in every turn, added to its own system prompt; at most 64 KiB. Absent for the server's
    setting, empty for none."""
    system_prompt: str | None = None
    """What takes the place of the agent's own system prompt, at most 64 KiB; for an agent that shows its own
    (`systemPrompt` in the catalogue). Instructions, rules of the folder and skills are told after it."""
    limits: TurnLimits = TurnLimits()
    temperature: Annotated[float, _up_to(MOST_TEMPERATURE, 0)] | None = None
    """How freely the model chooses its words; for an agent that obeys it (`limits` in the catalogue)."""
    tools: tuple[str, ...] | None = None
    """The only tools that the model may have; for an agent that lets you choose (`tools` in the catalogue)."""
    client_tools: tuple[ClientTool, ...] = ()
    """Tools of the client's own, which it answers as asks; for an agent that takes them (`clientTools` in the
    catalogue). `tools` does not touch them."""
    code_tools: tuple[CodeTool, ...] = ()
    """Tools that are programs, run in a sandbox; for an agent that takes them (`codeTools` in the catalogue)."""
    permission_mode: PermissionMode = "default"
    permission_rules: PermissionRules = ()
    """What is decided without anybody being asked; of the rules that fit, the strictest holds. Not with `bypass`."""
    env: Variables = msgspec.field(default_factory=dict)
    """Variables for the agent's process; values are never shown again."""
    cwd: AbsolutePath | None = None
    """Absolute folder the agent works in, as it is; by default a new empty one."""
    repo: Repo | None = None
    """What a workspace of the session's own begins with; it is isolated and has snapshots. Instead of `cwd`."""
    runtime: TaskRuntime | None = None
    """What the agent's processes run in; needs `repo`."""
    workspace: WorkspaceWish | None = None
    """How the workspace should be made; needs `repo`."""
    setup: str | None = None
    """A shell command that is run in the new workspace before the agent is; needs `repo`."""
    labels: Labels = msgspec.field(default_factory=dict)
    provider: TaskProvider | None = None
    """The model provider to use instead of the agent's own."""
    mcp_servers: McpServers = msgspec.field(default_factory=dict)
    """Tools for the agent, by the server's name."""
    turn_timeout_seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Longest turn; 0 for no limit, absent for the server's setting."""


class UpdateSession(Body, frozen=True, kw_only=True):
    """What can be changed later: how the agent works between two turns (it is started anew and keeps its memory)."""

    model: Choice | None = None
    variant: Choice | None = None
    mode: Choice | None = None
    permission_mode: PermissionMode | None = None
    permission_rules: PermissionRules | None = None
    title: str | None = None
    labels: Labels | None = None
    pinned: bool | None = None
    mcp_servers: McpServers | None = None
    """All tools for the agent, by the server's name, from the next turn on."""
    archived: bool | None = None
    """Out of the way in lists of people; the next turn brings it back."""


class ProcessInfo(Answer, frozen=True, kw_only=True):
    """The process of a session's agent, for operators."""

    pid: int
    keeper_pid: int
    """The small process that owns it and keeps it running when the server is away."""
    started_at: str


class SessionUsage(Wire, frozen=True, kw_only=True):
    """What a session has used, as it is stored."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    cost: dict[str, float] = msgspec.field(default_factory=dict)
    """By currency."""


class UsageView(Answer, frozen=True, kw_only=True):
    """Tokens and money of all turns, as far as the agent tells; a fork begins at nothing."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    reasoning_tokens: int = 0
    cost: dict[str, float] = msgspec.field(default_factory=dict)
    """By currency."""


class SessionChanges(Wire, frozen=True, kw_only=True):
    """The files that the agent said it changed, and the lines of all its edits.

    When files are put back, what then differs from the beginning is counted instead, and the next edits come on top.
    """

    files: int = 0
    """Counted up to 200."""
    added: int = 0
    removed: int = 0


class Session(Answer, frozen=True, kw_only=True):
    """A session as it is now."""

    id: str
    key: str
    tenant_id: str
    project_id: str
    agent: SessionAgent
    status: SessionStatus
    activity: Activity
    permission_mode: PermissionMode
    cwd: str
    labels: dict[str, str]
    env_names: tuple[str, ...]
    mcp_servers: tuple[str, ...]
    created_at: str
    updated_at: str
    last_sequence: int
    turn_count: int
    """All turns that began, also those that a rewind left behind."""
    queue_length: int
    open_asks: int
    permission_rules: tuple[PermissionRule, ...] = ()
    runtime: TaskRuntimeView
    vcs: TaskVcs
    links: dict[str, str]
    placement: Placement
    turns_left_behind: int = 0
    """Those of its turns that a rewind left behind."""
    runner: SessionRunner | None = None
    """Absent while it is queued."""
    pinned: bool = False
    archived: bool = False
    handoff: str | None = None
    """The agent that takes the next turn, while that is only wanted; `agent` is the one that has it now."""
    title: str | None = None
    model: str | None = None
    variant: str | None = None
    mode: str | None = None
    instructions: str | None = None
    """What the agent is told in every turn; absent if nothing is, and in lists."""
    system_prompt: str | None = None
    """What took the place of the agent's own; absent if nothing did, and in lists."""
    code_tools: tuple[str, ...] = ()
    """The names of its tools that are programs."""
    provider: str | None = None
    """Type and address of the session's own model provider."""
    turn_id: str | None = None
    turn_started_at: str | None = None
    """When the turn under way began."""
    last_turn_outcome: TurnOutcome | None = None
    """How the last turn ended that is over."""
    last_turn_reason: str | None = None
    """Why it ended so, such as `server_stopping` for one that was cut off."""
    native_session_id: str | None = None
    ended_at: str | None = None
    error: str | None = None
    """The last error's message, while nothing has succeeded since."""
    limited_until: str | None = None
    """When the limit that ended the last turn ends, if the agent told."""
    waits_for_limit: bool = False
    """Whether the session goes on by itself then."""
    process: ProcessInfo | None = None
    """While one runs; a session without one starts it at the next prompt."""
    workspace_id: str | None = None
    forked_from: str | None = None
    """The session it was made from."""
    usage: UsageView | None = None
    """Absent while the agent has told nothing."""
    changes: SessionChanges | None = None
    """Absent while the agent has changed nothing."""
    delivery: Delivered | None = None
    """How the result was handed over last."""
    started_at: str | None = None
    """When it began to run."""
    task: TaskPart | None = None
    """What was ordered, if a task started it; absent in lists of sessions."""
    workspace: TaskWorkspaceView | None = None
    """While its files are kept."""


class Page(Answer, Generic[T], frozen=True, kw_only=True):
    """One page of a collection."""

    items: tuple[T, ...]
    page: int
    per_page: int
    total: int
    next_page: int | None = None


class WebhookCall(Answer, frozen=True, kw_only=True):
    """What a webhook is sent."""

    id: str
    """The same whenever this is sent again."""
    event: str
    session: Session

    def encoded(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(self)


class SendMessage(Body, frozen=True, kw_only=True):
    """A prompt: `message` for plain text or `parts` for more, not both."""

    message: Prompt | None = None
    parts: tuple[InputPart, ...] | None = None
    when_busy: WhenBusy = "queue"


class PromptReceipt(Answer, frozen=True, kw_only=True):
    """What became of a prompt: a turn started, it waits in the queue, or it went into the running turn."""

    prompt_id: str
    disposition: Literal["started", "queued", "steered"]
    turn_id: str | None = None
    position: int | None = None


class QueuedPrompt(Answer, frozen=True, kw_only=True):
    """A prompt that waits for the current turn to end; `actor` sent it."""

    prompt_id: str
    parts: tuple[PromptPart, ...]
    queued_at: str
    actor: str | None = None
    trace_id: str | None = None
    """The W3C trace that its turn will belong to."""


class Queue(Answer, frozen=True, kw_only=True):
    """The prompts that wait."""

    entries: tuple[QueuedPrompt, ...]


class Turn(Wire, frozen=True, kw_only=True):
    """One turn of a session, as it is stored."""

    turn_id: str
    number: int
    started_at: str
    first_sequence: int
    ended_at: str | None = None
    last_sequence: int | None = None
    outcome: TurnOutcome | None = None
    stop_reason: str | None = None
    trace_id: str | None = None
    """The W3C trace that it belongs to."""
    after: int | None = None
    """The turn it goes on from, if a rewind made that another one than the one before it; 0 is the beginning."""


class TurnView(Answer, frozen=True, kw_only=True):
    """One turn of a session."""

    turn_id: str
    number: int
    started_at: str
    first_sequence: int
    ended_at: str | None = None
    last_sequence: int | None = None
    outcome: TurnOutcome | None = None
    stop_reason: str | None = None
    trace_id: str | None = None
    """The W3C trace that it belongs to."""
    after: int | None = None
    """The turn it goes on from, if a rewind made that another one than the one before it; 0 is the beginning."""
    rewound: bool = False
    """Whether a rewind took it out of the conversation."""


class TurnList(Answer, frozen=True, kw_only=True):
    """All turns of a session."""

    turns: tuple[TurnView, ...]


class SnapshotView(Answer, frozen=True, kw_only=True):
    """A frozen state of a session's workspace."""

    snapshot_id: str
    workspace_id: str
    turn: int
    """How many turns had ended; 0 is the beginning."""
    created_at: str
    sequence: int
    """Of its event in the log."""
    tree: str
    """The git tree of its files, without ignored ones."""
    turn_id: str | None = None
    note: str | None = None
    native_session_id: str | None = None
    memory_kept: bool = False
    """Whether the agent's own memory of that moment is kept with it."""
    restored_from: str | None = None
    """The snapshot whose files were put back just before, while the conversation stayed."""
    changed_by: ChangedBy = "agent"
    """Who made what differs from the snapshot before: in a folder of your own, also a person."""


class SnapshotList(Answer, frozen=True, kw_only=True):
    """The snapshots of a session, oldest first."""

    snapshots: tuple[SnapshotView, ...]


class Message(Answer, frozen=True, kw_only=True):
    """A folded item with the sequence numbers it came from."""

    item: Item
    first_sequence: int
    last_sequence: int
    turn_id: str | None = None


class MessageList(Answer, frozen=True, kw_only=True):
    """The folded transcript."""

    messages: tuple[Message, ...]
    has_more: bool


class EventPage(Answer, frozen=True, kw_only=True):
    """Events with a sequence above the offset, in order."""

    events: tuple[msgspec.Raw, ...]
    has_more: bool
    next_offset: int | None = None
    """Where the next page begins; the last event looked at, shown or not."""


class Ask(Wire, frozen=True, kw_only=True):
    """Something that waits, or waited, for a human, as it is stored."""

    ask_id: str
    kind: Literal["permission", "question"]
    session_id: str
    agent: str
    status: str
    requested_at: str
    turn_id: str | None = None
    resolved_at: str | None = None
    permission: PermissionData | None = None
    question: QuestionData | None = None


class AskView(Answer, frozen=True, kw_only=True):
    """Something that waits, or waited, for a human."""

    ask_id: str
    kind: Literal["permission", "question"]
    session_id: str
    agent: str
    status: str
    requested_at: str
    turn_id: str | None = None
    resolved_at: str | None = None
    permission: PermissionData | None = None
    question: QuestionData | None = None


class AskList(Answer, frozen=True, kw_only=True):
    """The inbox: asks of all sessions, oldest first."""

    items: tuple[AskView, ...]


class ReplyPermission(Body, frozen=True, kw_only=True):
    """Allow once, allow for the rest of the session, or reject with a reason the agent hears."""

    reply: PermissionReply
    message: str | None = None


class ReplyQuestion(Body, frozen=True, kw_only=True):
    """For each question the chosen option labels or free text; for a call of a client's tool its result."""

    answers: tuple[tuple[str, ...], ...] = ()
    result: Any = None
    """What the tool gives: a text, or anything else as JSON. If it failed, reject the ask with a message."""


class RejectQuestion(Body, frozen=True, kw_only=True):
    """Decline to answer, optionally with a reason the agent hears."""

    message: str | None = None


class Interrupted(Answer, frozen=True, kw_only=True):
    """Whether there was something to end: a turn, or the waiting for a limit."""

    interrupted: bool
    turn_id: str | None = None
