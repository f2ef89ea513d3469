"""Frames of OpenCode: responses and events of its server, as far as we use them; unknown fields are skipped."""

from typing import Any, Literal

import msgspec

Fields = dict[str, Any]


class Frame(msgspec.Struct, frozen=True):
    """Whatever the channel gives us: an event, or the response to a request."""

    event: msgspec.Raw = msgspec.Raw(b"")
    response: int | None = None
    status: int = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class Event(msgspec.Struct, frozen=True):
    """One event of the server."""

    type: str
    properties: msgspec.Raw = msgspec.Raw(b"{}")


# What a part or a message is made of


class Cache(msgspec.Struct, frozen=True):
    """Tokens that came from or went into the provider's cache."""

    read: int = 0
    write: int = 0


class Tokens(msgspec.Struct, frozen=True):
    """What one model call used; `input` leaves the cached ones out."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: Cache = Cache()

    @property
    def sent(self) -> int:
        """All tokens that went in."""
        return self.input + self.cache.read + self.cache.write


class NamedError(msgspec.Struct, frozen=True):
    """Why something failed."""

    name: str
    data: Fields = msgspec.field(default_factory=dict)


class Span(msgspec.Struct, frozen=True):
    """When a part or a message began and ended."""

    end: float | None = None
    completed: float | None = None


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """A message without its parts."""

    id: str
    session_id: str = msgspec.field(name="sessionID")
    role: Literal["user", "assistant"]
    time: Span = Span()
    agent: str | None = None
    parent_id: str | None = msgspec.field(name="parentID", default=None)
    """The message that it answers."""
    summary: Any = None
    """True for the summary that a compaction makes."""


class Session(msgspec.Struct, frozen=True):
    """A conversation of OpenCode; sub-agents have one of their own."""

    id: str
    parent_id: str | None = msgspec.field(name="parentID", default=None)
    version: str | None = None


class ToolState(msgspec.Struct, frozen=True):
    """How far a tool call is."""

    status: Literal["pending", "running", "completed", "error"]
    input: Fields = msgspec.field(default_factory=dict)
    output: str = ""
    error: str = ""
    metadata: msgspec.Raw = msgspec.Raw(b"{}")


# Parts


class Part(msgspec.Struct, frozen=True, tag_field="type"):
    """Base of all parts of a message."""

    id: str
    session_id: str = msgspec.field(name="sessionID")
    message_id: str = msgspec.field(name="messageID")


class Words(Part, frozen=True, tag="text"):
    """Text; complete when it has an end."""

    text: str = ""
    time: Span | None = None


class Reasoning(Words, frozen=True, tag="reasoning"):
    """What the model thought."""


class Tool(Part, frozen=True, kw_only=True, tag="tool"):
    """A tool call and its result."""

    tool: str
    call_id: str = msgspec.field(name="callID")
    state: ToolState


class StepFinish(Part, frozen=True, tag="step-finish"):
    """A model call is over."""

    tokens: Tokens = Tokens()
    cost: float = 0


class Patch(Part, frozen=True, tag="patch"):
    """Files that changed during a step, whoever changed them."""

    files: tuple[str, ...] = ()


class Compaction(Part, frozen=True, tag="compaction"):
    """The conversation is about to be made shorter."""


class StepStart(Part, frozen=True, tag="step-start"):
    """A model call begins."""


class File(Part, frozen=True, tag="file"):
    """An attachment of a prompt or of a tool's result."""


class Snapshot(Part, frozen=True, tag="snapshot"):
    """A state of the files that OpenCode keeps for itself."""


class Mention(Part, frozen=True, tag="agent"):
    """A sub-agent named in a prompt."""


class Subtask(Part, frozen=True, tag="subtask"):
    """A task for a sub-agent, given in a prompt; the call of the tool follows."""


class Retry(Part, frozen=True, tag="retry"):
    """A model call is tried again; the session's status says it too."""


AnyPart = (
    Words | Reasoning | Tool | StepFinish | Patch | Compaction | StepStart | File | Snapshot | Mention | Subtask | Retry
)


# Properties of events


class SessionChange(msgspec.Struct, frozen=True):
    """session.created"""

    info: Session


class MessageUpdated(msgspec.Struct, frozen=True):
    """message.updated"""

    info: Message


class PartUpdated(msgspec.Struct, frozen=True):
    """message.part.updated"""

    part: AnyPart


class PartDelta(msgspec.Struct, frozen=True):
    """message.part.delta"""

    session_id: str = msgspec.field(name="sessionID")
    part_id: str = msgspec.field(name="partID")
    field: str
    delta: str


class Status(msgspec.Struct, frozen=True):
    """What a session does now."""

    type: Literal["idle", "busy", "retry"]
    attempt: int = 0
    message: str = ""


class StatusChange(msgspec.Struct, frozen=True):
    """session.status"""

    session_id: str = msgspec.field(name="sessionID")
    status: Status


class Idle(msgspec.Struct, frozen=True):
    """session.idle"""

    session_id: str = msgspec.field(name="sessionID")


class SessionError(msgspec.Struct, frozen=True):
    """session.error; without a session it concerns the server."""

    session_id: str | None = msgspec.field(name="sessionID", default=None)
    error: NamedError | None = None


class CallRef(msgspec.Struct, frozen=True):
    """The tool call that something belongs to."""

    call_id: str = msgspec.field(name="callID")


class PermissionAsked(msgspec.Struct, frozen=True):
    """permission.asked"""

    id: str
    session_id: str = msgspec.field(name="sessionID")
    permission: str
    patterns: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    metadata: Fields = msgspec.field(default_factory=dict)
    tool: CallRef | None = None


class Option(msgspec.Struct, frozen=True):
    """One answer on offer."""

    label: str
    description: str | None = None


class OneQuestion(msgspec.Struct, frozen=True):
    """One question of several."""

    question: str
    options: tuple[Option, ...] = ()
    header: str | None = None
    multiple: bool = False
    custom: bool = True


class QuestionAsked(msgspec.Struct, frozen=True):
    """question.asked"""

    id: str
    session_id: str = msgspec.field(name="sessionID")
    questions: tuple[OneQuestion, ...]
    tool: CallRef | None = None


class Todo(msgspec.Struct, frozen=True):
    """One entry of the to-do list."""

    content: str
    status: str = "pending"
    priority: str | None = None


class TodoUpdated(msgspec.Struct, frozen=True):
    """todo.updated"""

    session_id: str = msgspec.field(name="sessionID")
    todos: tuple[Todo, ...]


# Responses


class Limit(msgspec.Struct, frozen=True):
    """How much a model takes."""

    context: int | None = None


class OfferedModel(msgspec.Struct, frozen=True):
    """A model of a provider."""

    id: str
    name: str
    limit: Limit | None = None
    variants: Fields | None = None


class OfferedProvider(msgspec.Struct, frozen=True):
    """A provider that OpenCode has a credential for, or that is free."""

    id: str
    models: dict[str, OfferedModel]


class Providers(msgspec.Struct, frozen=True):
    """GET /config/providers"""

    providers: tuple[OfferedProvider, ...]


class OfferedAgent(msgspec.Struct, frozen=True):
    """One of GET /agent; what we call a mode."""

    name: str
    mode: str = "primary"
    hidden: bool | None = None
    description: str | None = None
