"""The items of a Codex thread, as far as they matter to us."""

from typing import Any, Literal

import msgspec

Progress = Literal["inProgress", "completed", "failed", "declined"]


class Frame(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of everything Codex sends."""


class ThreadItem(Frame, frozen=True, kw_only=True, tag_field="type"):
    """Base of all items."""

    id: str


class UserMessage(ThreadItem, frozen=True, kw_only=True, tag="userMessage"):
    """What we sent."""


class HookPrompt(ThreadItem, frozen=True, kw_only=True, tag="hookPrompt"):
    """What a hook added for the model."""


class FunctionCallOutput(ThreadItem, frozen=True, kw_only=True, tag="functionCallOutput"):
    """A result that a client handed in."""


class EnteredReview(ThreadItem, frozen=True, kw_only=True, tag="enteredReviewMode"):
    """A review began; we never start one."""


class ExitedReview(ThreadItem, frozen=True, kw_only=True, tag="exitedReviewMode"):
    """A review ended."""


class Compaction(ThreadItem, frozen=True, kw_only=True, tag="contextCompaction"):
    """The history was shortened."""


class AgentMessage(ThreadItem, frozen=True, kw_only=True, tag="agentMessage"):
    """Text of the assistant."""

    text: str


class PlanText(ThreadItem, frozen=True, kw_only=True, tag="plan"):
    """A plan proposed in plan mode."""

    text: str


class Reasoning(ThreadItem, frozen=True, kw_only=True, tag="reasoning"):
    """What the model thought: a summary, or all of it where the model shows it."""

    summary: tuple[str, ...] = ()
    content: tuple[str, ...] = ()


class Command(ThreadItem, frozen=True, kw_only=True, tag="commandExecution"):
    """A shell command."""

    command: str
    status: Progress
    cwd: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None


class ChangeKind(Frame, frozen=True, kw_only=True):
    """What happens to a file; `move_path` is spelled the other way."""

    type: Literal["add", "delete", "update"]
    move_path: str | None = msgspec.field(default=None, name="move_path")


class Change(Frame, frozen=True, kw_only=True):
    """One changed file; `diff` is the whole content for add and delete, hunks for update."""

    path: str
    kind: ChangeKind
    diff: str


class FileChange(ThreadItem, frozen=True, kw_only=True, tag="fileChange"):
    """A patch."""

    changes: tuple[Change, ...]
    status: Progress


class McpResult(Frame, frozen=True, kw_only=True):
    """What an MCP tool answered."""

    content: tuple[dict[str, Any], ...] = ()


class Message(Frame, frozen=True, kw_only=True):
    """Anything that is only a message."""

    message: str


class McpToolCall(ThreadItem, frozen=True, kw_only=True, tag="mcpToolCall"):
    """A call of an MCP server's tool."""

    server: str
    tool: str
    status: Progress
    arguments: Any = None
    result: McpResult | None = None
    error: Message | None = None


class DynamicToolCall(ThreadItem, frozen=True, kw_only=True, tag="dynamicToolCall"):
    """A call of a tool that a client offers; we offer none, but a resumed thread may hold some."""

    tool: str
    status: Progress
    arguments: Any = None
    content_items: tuple[dict[str, Any], ...] | None = None


class AgentState(Frame, frozen=True, kw_only=True):
    """How a sub-agent is doing."""

    status: str
    message: str | None = None


class CollabCall(ThreadItem, frozen=True, kw_only=True, tag="collabAgentToolCall"):
    """Something done with sub-agents."""

    tool: str
    status: Progress
    receiver_thread_ids: tuple[str, ...] = ()
    prompt: str | None = None
    agents_states: dict[str, AgentState] = {}


class SubAgentActivity(ThreadItem, frozen=True, kw_only=True, tag="subAgentActivity"):
    """A sub-agent started, was spoken to or ended."""

    kind: str
    agent_thread_id: str
    agent_path: str


class WebSearch(ThreadItem, frozen=True, kw_only=True, tag="webSearch"):
    """A search of the web by the model's provider."""

    query: str


class ImageView(ThreadItem, frozen=True, kw_only=True, tag="imageView"):
    """The model looked at an image."""

    path: str


class ImageGeneration(ThreadItem, frozen=True, kw_only=True, tag="imageGeneration"):
    """The model made an image."""

    status: str
    revised_prompt: str | None = None
    saved_path: str | None = None


class Sleep(ThreadItem, frozen=True, kw_only=True, tag="sleep"):
    """The model chose to wait."""

    duration_ms: int


ToolItem = (
    Command
    | FileChange
    | McpToolCall
    | DynamicToolCall
    | CollabCall
    | SubAgentActivity
    | WebSearch
    | ImageView
    | ImageGeneration
    | Sleep
)
Ignored = UserMessage | HookPrompt | FunctionCallOutput | EnteredReview | ExitedReview
AnyItem = Ignored | Compaction | AgentMessage | PlanText | Reasoning | ToolItem
