"""Frames of Claude Code's stream-json output, as far as we read them; unknown fields are left alone."""

from typing import Any

import msgspec


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all frames."""


class Head(Frame, frozen=True, kw_only=True):
    """What every frame has: enough to choose who reads it."""

    type: str
    subtype: str | None = None


class Init(Frame, frozen=True, kw_only=True):
    """A turn begins; sent once per turn."""

    session_id: str
    model: str | None = None
    permission_mode: str | None = msgspec.field(name="permissionMode", default=None)
    claude_code_version: str | None = None


class Status(Frame, frozen=True, kw_only=True):
    """What it is busy with, or a changed permission mode."""

    permission_mode: str | None = msgspec.field(name="permissionMode", default=None)


class ApiRetry(Frame, frozen=True, kw_only=True):
    """A model call failed and is made again."""

    attempt: int
    max_retries: int
    retry_delay_ms: int
    error_status: int | None = None
    error: str | None = None


class CompactMetadata(Frame, frozen=True, kw_only=True):
    """Why and how much was summarised."""

    trigger: str = "auto"
    pre_tokens: int | None = None


class CompactBoundary(Frame, frozen=True, kw_only=True):
    """Everything before this was replaced by a summary."""

    compact_metadata: CompactMetadata = CompactMetadata()


class Remark(Frame, frozen=True, kw_only=True):
    """Text for people that is not of the model."""

    content: str = ""
    level: str = "info"
    uuid: str = ""


class Fallback(Remark, frozen=True, kw_only=True):
    """Another model answers than the one chosen."""

    level: str = "warning"


class TitleChanged(Frame, frozen=True, kw_only=True):
    """The session has a name."""

    title: str


class RateLimitInfo(Frame, frozen=True, kw_only=True):
    """How near a limit of the account is."""

    status: str
    rate_limit_type: str | None = msgspec.field(name="rateLimitType", default=None)
    resets_at: float | None = msgspec.field(name="resetsAt", default=None)
    """In seconds since 1970."""


class RateLimit(Frame, frozen=True, kw_only=True):
    """News about a limit of the account."""

    rate_limit_info: RateLimitInfo


class LimitReached(Frame, frozen=True, kw_only=True):
    """What is known of an error that a limit made."""

    rate_limit_info: RateLimitInfo | None = None


class Usage(Frame, frozen=True, kw_only=True):
    """Tokens; the input comes in three parts."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def input(self) -> int:
        """All input, cached or not."""
        parts = (self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens)
        return sum(part or 0 for part in parts)


class Block(Frame, frozen=True, kw_only=True):
    """One block of content of a message: text, thinking, a tool call or a tool's result."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: str = ""
    content: "str | list[Block] | None" = None
    is_error: bool | None = None


class Message(Frame, frozen=True, kw_only=True):
    """A message of the conversation."""

    content: str | list[Block]
    id: str = ""


class Assistant(Frame, frozen=True, kw_only=True):
    """A finished block of the assistant; the same message comes once per block."""

    message: Message
    uuid: str
    parent_tool_use_id: str | None = None
    error: str | None = None
    api_error_params: msgspec.Raw = msgspec.Raw(b"null")
    """What else is known of the error; its fields depend on it."""
    aborted: bool = False


class User(Frame, frozen=True, kw_only=True):
    """Tool results, or words that Claude Code puts into the user's mouth."""

    message: Message
    parent_tool_use_id: str | None = None
    tool_use_result: Any = None


class StartedMessage(Frame, frozen=True, kw_only=True):
    """A message of which no block has come."""

    id: str
    usage: Usage = Usage()


class Delta(Frame, frozen=True, kw_only=True):
    """Growth of a block."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""


class ModelEvent(Frame, frozen=True, kw_only=True):
    """An event of the model's own stream."""

    type: str
    message: StartedMessage | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: Usage | None = None


class StreamEvent(Frame, frozen=True, kw_only=True):
    """The model's stream as it comes."""

    event: ModelEvent
    parent_tool_use_id: str | None = None


class ModelUsage(Frame, frozen=True, kw_only=True):
    """What one model was used for."""

    context_window: int | None = msgspec.field(name="contextWindow", default=None)
    cost: float | None = msgspec.field(name="costUSD", default=None)


class Lifecycle(Frame, frozen=True, kw_only=True):
    """What has become of words that we sent."""

    command_uuid: str
    state: str


class Withdrawal(msgspec.Struct, frozen=True):
    """Whether words of the user were taken back before they were read."""

    cancelled: bool = False


class Result(Frame, frozen=True, kw_only=True):
    """The turn is over."""

    subtype: str
    is_error: bool = False
    result: str | None = None
    errors: list[str] = []
    stop_reason: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    usage: Usage = Usage()
    total_cost_usd: float | None = None
    """Of all turns, sometimes with those of processes before this one."""
    model_usage: dict[str, ModelUsage] = msgspec.field(name="modelUsage", default_factory=dict)
    since_last_result: dict[str, ModelUsage] = msgspec.field(name="model_usage_since_last_result", default_factory=dict)


class ControlRequest(Frame, frozen=True, kw_only=True):
    """Claude Code wants something decided or done."""

    request_id: str
    request: msgspec.Raw


class Outlined(Frame, frozen=True, kw_only=True):
    """What kind of request it is."""

    subtype: str


class CanUseTool(Frame, frozen=True, kw_only=True):
    """May this tool run?"""

    tool_name: str
    tool_use_id: str
    input: msgspec.Raw
    permission_suggestions: "list[Suggestion] | None" = None
    decision_reason: str | None = None


class Rule(Frame, frozen=True, kw_only=True):
    """What would be allowed for good."""

    tool: str = msgspec.field(name="toolName")
    content: str | None = msgspec.field(name="ruleContent", default=None)

    def __str__(self) -> str:
        return self.tool if self.content is None else f"{self.tool}({self.content})"


class Suggestion(Frame, frozen=True, kw_only=True):
    """A change of the rules that would make the ask needless."""

    type: str
    rules: list[Rule] = []


class ControlCancel(Frame, frozen=True, kw_only=True):
    """An ask is withdrawn."""

    request_id: str


class ModelInfo(Frame, frozen=True, kw_only=True):
    """A model on offer."""

    value: str
    name: str = msgspec.field(name="displayName", default="")
    efforts: tuple[str, ...] = msgspec.field(name="supportedEffortLevels", default=())


class CommandInfo(Frame, frozen=True, kw_only=True):
    """A slash command on offer."""

    name: str
    description: Any = ""
    hint: Any = msgspec.field(name="argumentHint", default="")
    """Both come from the head of a file that anybody may have written: mostly texts."""


class Handshake(Frame, frozen=True, kw_only=True):
    """What Claude Code tells about itself."""

    models: tuple[ModelInfo, ...] = ()
    commands: tuple[CommandInfo, ...] = ()
    claude_code_version: str | None = None


class Outcome(Frame, frozen=True, kw_only=True):
    """How a request of ours went."""

    subtype: str
    request_id: str
    response: msgspec.Raw = msgspec.Raw(b"{}")
    error: str | None = None


class ControlResponse(Frame, frozen=True, kw_only=True):
    """The answer to a request of ours."""

    response: Outcome


class OptionInput(Frame, frozen=True, kw_only=True):
    """An answer on offer."""

    label: str
    description: str | None = None


class QuestionInput(Frame, frozen=True, kw_only=True):
    """One question of AskUserQuestion."""

    question: str
    options: tuple[OptionInput, ...] = ()
    header: str | None = None
    multi_select: bool = msgspec.field(name="multiSelect", default=False)


class AskInput(Frame, frozen=True, kw_only=True):
    """The arguments of AskUserQuestion."""

    questions: tuple[QuestionInput, ...]


class PlanInput(Frame, frozen=True, kw_only=True):
    """The arguments of ExitPlanMode."""

    plan: str | None = None


class Todo(Frame, frozen=True, kw_only=True):
    """One entry of the list."""

    content: str
    status: str = "pending"


class TodoInput(Frame, frozen=True, kw_only=True):
    """The arguments of TodoWrite."""

    todos: tuple[Todo, ...]


class Hunk(Frame, frozen=True, kw_only=True):
    """One place of a file that changed."""

    old_start: int = msgspec.field(name="oldStart")
    old_lines: int = msgspec.field(name="oldLines")
    new_start: int = msgspec.field(name="newStart")
    new_lines: int = msgspec.field(name="newLines")
    lines: list[str]


class FileResult(Frame, frozen=True, kw_only=True):
    """What a tool that writes files says about its work."""

    path: str = msgspec.field(name="filePath")
    patch: list[Hunk] = msgspec.field(name="structuredPatch")
    type: str | None = None
    content: str | None = None
    original: str | None = msgspec.field(name="originalFile", default=None)
