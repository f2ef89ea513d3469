"""What Ostler's own agent and its translator say to each other: JSON objects, one per line.

To the agent goes one `start`, then prompts, messages into the running turn, interrupts and answers to what it asks.
From the agent comes `ready`, then what it says and does; every turn ends with one `done`.
"""

from typing import Literal, get_args

import msgspec

from ostler.wire.providers import ClientTool, CodeTool, McpServer

Effort = Literal["off", "low", "medium", "high", "max"]
EFFORTS: tuple[str, ...] = get_args(Effort)
ToolName = Literal[
    "read",
    "write",
    "edit",
    "bash",
    "grep",
    "find",
    "run-sandbox",
    "todo",
    "task",
    "ask_user",
    "propose",
    "exit_plan_mode",
]
TOOLS: tuple[str, ...] = get_args(ToolName)
Api = Literal["messages", "responses", "chat", "gemini"]
"""Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and all that is like it, Gemini."""
ProposalKind = Literal["schedule", "trigger", "policy"]
Outcome = Literal["completed", "interrupted", "failed"]
KEY_VARIABLE = "OSTLER_PROVIDER_KEY"
"""Where the key of a session's own provider stands."""
NODE_VARIABLE = "OSTLER_AGENT_NODE"
"""Where a Node is that Ostler has installed."""


class ToAgent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """A line for the agent."""


class Start(ToAgent, frozen=True, kw_only=True, tag="start"):
    """How to work; the first line."""

    version: str
    permission_mode: Literal["default", "plan", "bypass"]
    mode: str | None = None
    resume: str | None = None
    """The conversation to go on with."""
    api: Api | None = None
    """Of the session's own provider; without one the agent looks at its variables."""
    base_url: str | None = None
    model: str | None = None
    effort: Effort | None = None
    instructions: str | None = None
    system_prompt: str | None = None
    """In the place of the agent's own; the rules of the folder, skills and instructions follow it."""
    max_turns: int | None = None
    """Model calls in one turn."""
    max_tokens: int | None = None
    """Output of one model call."""
    temperature: float | None = None
    tools: tuple[str, ...] | None = None
    """All tools that the model may have; None for every one."""
    client_tools: tuple[ClientTool, ...] = ()
    """Those that the client answers, as asks."""
    code_tools: tuple[CodeTool, ...] = ()
    """Those that are programs for the sandbox."""
    mcp_servers: dict[str, McpServer] = msgspec.field(default_factory=dict)
    heard: tuple[str, ...] = ()
    """Of a turn that an earlier process did not end: ids of messages and calls of which people know everything."""
    begun: tuple[str, ...] = ()
    """Those of which they know only the beginning."""
    through: tuple[str, ...] = ()
    """A command that leads elsewhere, where `folder` is the workspace; none for the folder that the agent stands in."""
    folder: str = ""
    rebooted: bool = False
    """Whether the machine stopped meanwhile, so that what was done last may not be in the agent's memory."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image of a prompt."""

    mime: str
    data: bytes


class Message(ToAgent, frozen=True, kw_only=True):
    """What a person says."""

    text: str
    id: str = ""
    """The same whenever it is sent again, to the next process; what was heard before is not heard twice."""
    images: tuple[Image, ...] = ()
    files: tuple[str, ...] = ()
    """Paths that the agent may read, wherever they are."""


class Prompted(Message, frozen=True, kw_only=True, tag="prompt"):
    """Begin a turn, or go on with it if it was begun with the same id."""


class Steered(Message, frozen=True, kw_only=True, tag="steer"):
    """Add to the running turn."""


class Interrupted(ToAgent, frozen=True, kw_only=True, tag="interrupt"):
    """End the running turn."""


class Reply(ToAgent, frozen=True, kw_only=True, tag="reply"):
    """The decision on a permission, or on a plan."""

    id: str
    allow: bool
    message: str | None = None


class Answered(ToAgent, frozen=True, kw_only=True, tag="answer"):
    """What was answered to a question or a call; None if the person declined, or the client failed."""

    id: str
    answers: tuple[str, ...] | None
    message: str | None = None


AnyToAgent = Start | Prompted | Steered | Interrupted | Reply | Answered


class FromAgent(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """A line of the agent."""


class AgentReady(FromAgent, frozen=True, kw_only=True, tag="ready"):
    """It takes prompts."""

    session: str
    resumed: bool
    model: str | None = None
    mode: str | None = None
    reached: int = 0
    """How much is in its memory; a process that dies and leaves no more there than it found came no further."""


class MessageBegun(FromAgent, frozen=True, kw_only=True, tag="message"):
    """The model begins to speak or to think."""

    id: str
    parent: str | None = None
    """The call of the sub-agent that says it."""


class Grown(FromAgent, frozen=True, kw_only=True, tag="delta"):
    """The model has spoken or thought on."""

    id: str
    kind: Literal["text", "thinking"]
    text: str
    parent: str | None = None


class MessagePart(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a message."""

    kind: Literal["text", "thinking"]
    text: str


class MessageEnded(FromAgent, frozen=True, kw_only=True, tag="message_end"):
    """The message is whole, or was broken off."""

    id: str
    broken: bool = False
    content: tuple[MessagePart, ...] = ()
    """All of it, where it may not have been told before."""
    parent: str | None = None


class ToolBegun(FromAgent, frozen=True, kw_only=True, tag="tool"):
    """A tool is called."""

    id: str
    name: str
    input: str
    """JSON, as the model wrote it."""
    parent: str | None = None


class ToolPrinted(FromAgent, frozen=True, kw_only=True, tag="tool_output"):
    """A command has printed something."""

    id: str
    stream: Literal["stdout", "stderr"]
    text: str


class ToolEnded(FromAgent, frozen=True, kw_only=True, tag="tool_end"):
    """A tool has answered, or will not be run."""

    id: str
    output: str
    failed: bool = False


class FileChange(FromAgent, frozen=True, kw_only=True, tag="file"):
    """A tool changed a file."""

    tool: str
    path: str
    action: Literal["created", "modified"]
    operation: Literal["write", "edit"]
    diff: str | None = None


class PermissionAsk(FromAgent, frozen=True, kw_only=True, tag="permission"):
    """May it do this?"""

    id: str
    tool: str
    name: str
    action: str
    input: msgspec.Raw
    diff: str | None = None


class QuestionAsk(FromAgent, frozen=True, kw_only=True, tag="question"):
    """The model asks something."""

    id: str
    tool: str
    question: str
    options: tuple[str, ...] = ()
    multi_select: bool = False


class PlanAsk(FromAgent, frozen=True, kw_only=True, tag="plan"):
    """May it carry this plan out?"""

    id: str
    tool: str
    plan: str


class ProposalAsk(FromAgent, frozen=True, kw_only=True, tag="proposal"):
    """May this begin by itself, or be done without asking, from now on?"""

    id: str
    tool: str
    kind: ProposalKind
    wanted: msgspec.Raw
    """As the API takes it."""
    reason: str


class ClientCalled(FromAgent, frozen=True, kw_only=True, tag="client_call"):
    """The model calls a tool of the client."""

    id: str
    tool: str
    name: str
    input: msgspec.Raw


class ModeChanged(FromAgent, frozen=True, kw_only=True, tag="mode"):
    """It works in another mode from now on."""

    mode: str


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """One step of what it wants to do."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


class Planned(FromAgent, frozen=True, kw_only=True, tag="todo"):
    """All that it wants to do now."""

    entries: tuple[Todo, ...]


class ModelChosen(FromAgent, frozen=True, kw_only=True, tag="model"):
    """It has chosen a model, because the session names none."""

    model: str


class Used(FromAgent, frozen=True, kw_only=True, tag="usage"):
    """Tokens of this turn so far."""

    input: int
    output: int
    cached: int
    reasoning: int
    context: int
    window: int | None = None


class Noted(FromAgent, frozen=True, kw_only=True, tag="notice"):
    """Something that people should know."""

    message: str
    code: str
    severity: Literal["info", "warning"] = "warning"


class Failed(FromAgent, frozen=True, kw_only=True, tag="error"):
    """What goes wrong with the turn."""

    message: str
    code: str
    status: int | None = None
    resets_at: float | None = None
    """When the limit ends that made it so, in seconds since 1970."""


class Done(FromAgent, frozen=True, kw_only=True, tag="done"):
    """The turn is over."""

    outcome: Outcome
    reason: str


AnyFromAgent = (
    AgentReady
    | MessageBegun
    | Grown
    | MessageEnded
    | ToolBegun
    | ToolPrinted
    | ToolEnded
    | FileChange
    | PermissionAsk
    | QuestionAsk
    | PlanAsk
    | ProposalAsk
    | ClientCalled
    | ModeChanged
    | ModelChosen
    | Planned
    | Used
    | Noted
    | Failed
    | Done
)
