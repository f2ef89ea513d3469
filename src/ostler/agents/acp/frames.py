"""What agents say in the Agent Client Protocol (version 1), as far as we read it; unknown extra fields are fine."""

from typing import Any, Literal

import msgspec

Meta = dict[str, Any]
ToolStatus = Literal["pending", "in_progress", "completed", "failed", "cancelled"]


class Frame(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of everything read."""


# Content


class Text(Frame, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Plain text."""

    text: str


class Image(Frame, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """A picture."""

    mime_type: str = "image/*"
    data: str = ""
    """In base64."""
    uri: str | None = None


class Audio(Frame, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """A sound."""

    mime_type: str = "audio/*"


class ResourceLink(Frame, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A pointer to something."""

    uri: str
    name: str = ""


class Resource(Frame, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """Something embedded."""

    resource: dict[str, Any]


Block = Text | Image | Audio | ResourceLink | Resource


class Content(Frame, frozen=True, kw_only=True, tag_field="type", tag="content"):
    """Content of a tool call."""

    content: Block


class Diff(Frame, frozen=True, kw_only=True, tag_field="type", tag="diff"):
    """A change of one file."""

    path: str
    new_text: str | None = None
    old_text: str | None = None
    meta: Meta | None = msgspec.field(default=None, name="_meta")


class Terminal(Frame, frozen=True, kw_only=True, tag_field="type", tag="terminal"):
    """A terminal of ours, which no agent has, or a word that its output comes in `_meta`."""


ToolContent = Content | Diff | Terminal


class Location(Frame, frozen=True, kw_only=True):
    """A file that a tool call is about."""

    path: str


class ToolCall(Frame, frozen=True, kw_only=True):
    """What is said about a tool call at once; absent fields did not change."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: ToolStatus | None = None
    content: tuple[ToolContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_input: msgspec.Raw = msgspec.Raw(b"")
    raw_output: Any = None
    name: str | None = None
    meta: Meta | None = msgspec.field(default=None, name="_meta")


# Updates of a session


class Chunk(Frame, frozen=True, kw_only=True, tag_field="sessionUpdate"):
    """A piece of a message."""

    content: Block
    message_id: str | None = None
    meta: Meta | None = msgspec.field(default=None, name="_meta")


class UserMessageChunk(Chunk, frozen=True, kw_only=True, tag="user_message_chunk"):
    """What the person said, repeated when a session is loaded."""


class AgentMessageChunk(Chunk, frozen=True, kw_only=True, tag="agent_message_chunk"):
    """What the agent says."""


class AgentThoughtChunk(Chunk, frozen=True, kw_only=True, tag="agent_thought_chunk"):
    """What the model thinks."""


class ToolCallStarted(ToolCall, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call"):
    """A tool call."""


class ToolCallUpdated(ToolCall, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="tool_call_update"):
    """More about a tool call; some agents never said `tool_call` before."""


class PlanStep(Frame, frozen=True, kw_only=True):
    """One step."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"] | None = None


class Plan(Frame, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan"):
    """The whole plan."""

    entries: tuple[PlanStep, ...]


class CommandInput(Frame, frozen=True, kw_only=True):
    """What may stand behind the name of a slash command."""

    hint: str | None = None


class OfferedCommand(Frame, frozen=True, kw_only=True):
    """A slash command on offer."""

    name: str
    description: str | None = None
    input: CommandInput | None = None


class Commands(Frame, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="available_commands_update"):
    """Slash commands on offer."""

    available_commands: tuple[OfferedCommand, ...] = ()


class CurrentMode(Frame, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="current_mode_update"):
    """The mode changed."""

    current_mode_id: str


class ConfigChoice(Frame, frozen=True, kw_only=True):
    """One value of a config option, or a heading with values below it."""

    value: str | None = None
    name: str = ""
    description: str | None = None
    options: "tuple[ConfigChoice, ...]" = ()


class ConfigOption(Frame, frozen=True, kw_only=True):
    """Something about the session that can be chosen."""

    id: str
    category: str | None = None
    current_value: str | bool | None = None
    options: tuple[ConfigChoice, ...] | None = None

    @property
    def choices(self) -> tuple[ConfigChoice, ...]:
        """All values, without headings."""
        return tuple(leaf for one in self.options or () for leaf in (one.options or (one,)))


class ConfigOptions(Frame, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="config_option_update"):
    """All config options again."""

    config_options: tuple[ConfigOption, ...]


class SessionInfo(Frame, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="session_info_update"):
    """A title, or something only the agent's own client understands."""

    title: str | None = None


class Money(Frame, frozen=True, kw_only=True):
    """A cost."""

    amount: float
    currency: str


class Usage(Frame, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="usage_update"):
    """How full the context is, and what the session has cost."""

    used: int
    size: int
    cost: Money | None = None


Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStarted
    | ToolCallUpdated
    | Plan
    | Commands
    | CurrentMode
    | ConfigOptions
    | SessionInfo
    | Usage
)


class SessionUpdate(Frame, frozen=True, kw_only=True):
    """One `session/update`."""

    update: Update
    meta: Meta | None = msgspec.field(default=None, name="_meta")


# Requests of the agent


class PermissionOption(Frame, frozen=True, kw_only=True):
    """One way to answer a permission request."""

    option_id: str
    name: str
    kind: str


class RequestPermission(Frame, frozen=True, kw_only=True):
    """May this tool call go on?"""

    tool_call: ToolCall
    options: tuple[PermissionOption, ...]


class Elicitation(Frame, frozen=True, kw_only=True):
    """A form or a page for the person."""

    message: str
    mode: str = "form"
    requested_schema: dict[str, Any] | None = None
    url: str | None = None
    tool_call_id: str | None = None


class CancelRequest(Frame, frozen=True, kw_only=True):
    """The agent needs no answer any more."""

    request_id: int | str


class QwenMode(Frame, frozen=True, kw_only=True):
    """The mode changed, in an extension of Qwen Code."""

    current_mode_id: str


# Answers of the agent


class PromptCapabilities(Frame, frozen=True, kw_only=True):
    """What a prompt may hold."""

    image: bool = False


class McpCapabilities(Frame, frozen=True, kw_only=True):
    """Which MCP servers the agent can reach."""

    http: bool = False


class SessionCapabilities(Frame, frozen=True, kw_only=True):
    """What else can be done with sessions; present means yes."""

    resume: Any = None


class AgentCapabilities(Frame, frozen=True, kw_only=True):
    """What the agent can do."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()


class AgentInfo(Frame, frozen=True, kw_only=True):
    """Who the agent is."""

    version: str | None = None


class Initialized(Frame, frozen=True, kw_only=True):
    """The answer to `initialize`."""

    protocol_version: int
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    agent_info: AgentInfo | None = None


class ModeOffer(Frame, frozen=True, kw_only=True):
    """A mode on offer."""

    id: str
    name: str = ""
    description: str | None = None


class Modes(Frame, frozen=True, kw_only=True):
    """All modes."""

    current_mode_id: str
    available_modes: tuple[ModeOffer, ...]


class ModelOffer(Frame, frozen=True, kw_only=True):
    """A model on offer."""

    model_id: str
    name: str = ""


class Models(Frame, frozen=True, kw_only=True):
    """All models."""

    current_model_id: str
    available_models: tuple[ModelOffer, ...]


class SessionOpened(Frame, frozen=True, kw_only=True):
    """The answer to `session/new`, `session/load` and `session/resume`."""

    session_id: str | None = None
    modes: Modes | None = None
    models: Models | None = None
    config_options: tuple[ConfigOption, ...] | None = None


class Tokens(Frame, frozen=True, kw_only=True):
    """Tokens of one turn or one model call."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_read_tokens: int | None = None
    thought_tokens: int | None = None


class Prompted(Frame, frozen=True, kw_only=True):
    """The answer to `session/prompt`: the turn is over."""

    stop_reason: str
    usage: Tokens | None = None
    meta: Meta | None = msgspec.field(default=None, name="_meta")
