"""What Copilot's headless server says, as types: only the fields that somebody reads."""

from typing import Literal

import msgspec

Number = int | float
NOTHING = msgspec.Raw(b"null")


class Frame(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of everything; unknown fields are ignored."""


# Answers to our requests


class Connected(Frame, frozen=True, kw_only=True):
    """It is there."""

    version: str | None = None


class ModelState(Frame, frozen=True, kw_only=True):
    """The model in use."""

    model_id: str | None = None


class SessionOpened(Frame, frozen=True, kw_only=True):
    """A session exists, new or resumed."""

    session_id: str
    mode: str | None = None
    model_state: ModelState = ModelState()


class TodoRow(Frame, frozen=True, kw_only=True):
    """One row of the agent's todo table; it fills in what it likes."""

    title: str | None = None
    description: str | None = None
    id: str | None = None
    status: str | None = None


class TodoRows(Frame, frozen=True, kw_only=True):
    """The whole todo table."""

    rows: tuple[TodoRow, ...] = ()


# Its requests


class UserInputRequest(Frame, frozen=True, kw_only=True):
    """The model asks something."""

    question: str
    choices: tuple[str, ...] | None = None
    allow_freeform: bool | None = None


class ExitPlanRequest(Frame, frozen=True, kw_only=True):
    """The model wants to leave plan mode."""

    summary: str = ""
    plan_content: str | None = None


# Events


class Event(Frame, frozen=True, kw_only=True):
    """The envelope of an event."""

    type: str
    data: msgspec.Raw = msgspec.Raw(b"{}")
    agent_id: str | None = None
    """The sub-agent it comes from; None for the main one."""


class EventNotice(Frame, frozen=True, kw_only=True):
    """What carries an event."""

    event: Event


class Empty(Frame, frozen=True, kw_only=True):
    """Nothing of interest."""


class ReasoningDelta(Frame, frozen=True, kw_only=True):
    """A thought grows."""

    reasoning_id: str
    delta_content: str


class MessageStart(Frame, frozen=True, kw_only=True):
    """A message opens."""

    message_id: str


class MessageDelta(Frame, frozen=True, kw_only=True):
    """A message grows."""

    message_id: str
    delta_content: str


class AssistantMessage(Frame, frozen=True, kw_only=True):
    """What one model call said."""

    message_id: str
    content: str = ""
    reasoning_text: str | None = None


class TurnRetry(Frame, frozen=True, kw_only=True):
    """A model call failed and is tried again."""

    reason: str | None = None


class ToolStart(Frame, frozen=True, kw_only=True):
    """A tool is called."""

    tool_call_id: str
    tool_name: str
    arguments: msgspec.Raw = NOTHING
    parent_tool_call_id: str | None = None


class ShellOutput(Frame, frozen=True, kw_only=True):
    """A command printed something."""

    tool_call_id: str
    text: str
    stream: Literal["stdout", "stderr"] | None = None


class FileEdit(Frame, frozen=True, kw_only=True):
    """A file that a tool changed: create, edit or delete."""

    path: str
    kind: str


class ToolResult(Frame, frozen=True, kw_only=True):
    """What a tool answered: for the model, and for people."""

    content: str = ""
    detailed_content: str | None = None


class ToolError(Frame, frozen=True, kw_only=True):
    """Why a tool failed."""

    message: str


class ShellExecution(Frame, frozen=True, kw_only=True):
    """How a command ended."""

    exit_code: Number | None = None


class ToolComplete(Frame, frozen=True, kw_only=True):
    """A tool is done."""

    tool_call_id: str
    success: bool
    result: ToolResult | None = None
    error: ToolError | None = None
    file_edits: tuple[FileEdit, ...] | None = None
    shell_execution: ShellExecution | None = None


class SubagentStarted(Frame, frozen=True, kw_only=True):
    """A tool call spawned an agent."""

    tool_call_id: str


class ShellCommand(Frame, frozen=True, kw_only=True):
    """What Copilot would remember of a command: its stem, or all of it."""

    identifier: str


class PermissionRequest(Frame, frozen=True, kw_only=True):
    """What it wants to do; which fields are there depends on the kind."""

    kind: str
    tool_call_id: str | None = None
    intention: str | None = None
    full_command_text: str | None = None
    commands: tuple[ShellCommand, ...] = ()
    file_name: str | None = None
    diff: str | None = None
    path: str | None = None
    url: str | None = None
    server_name: str | None = None
    tool_name: str | None = None
    fact: str | None = None
    args: msgspec.Raw = NOTHING


class PermissionRequested(Frame, frozen=True, kw_only=True):
    """It asks whether it may."""

    request_id: str
    permission_request: PermissionRequest
    resolved_by_hook: bool | None = None


class PermissionOutcome(Frame, frozen=True, kw_only=True):
    """How a permission was decided."""

    kind: str = ""


class PermissionCompleted(Frame, frozen=True, kw_only=True):
    """A permission is decided, by us or by itself."""

    request_id: str
    result: PermissionOutcome = PermissionOutcome()


class UserInputRequested(Frame, frozen=True, kw_only=True):
    """Says which call the next question belongs to."""

    question: str
    tool_call_id: str | None = None


class ExitPlanRequested(Frame, frozen=True, kw_only=True):
    """Says which call the next plan belongs to."""

    tool_call_id: str | None = None


class Usage(Frame, frozen=True, kw_only=True):
    """Tokens of one model call."""

    input_tokens: Number | None = None
    output_tokens: Number | None = None
    cache_read_tokens: Number | None = None
    reasoning_tokens: Number | None = None


class ContextUse(Frame, frozen=True, kw_only=True):
    """How full the context is."""

    current_tokens: Number
    token_limit: Number


class CallFailure(Frame, frozen=True, kw_only=True):
    """A model call failed; the message is what the provider answered, often JSON."""

    error_message: str | None = None


class SessionError(Frame, frozen=True, kw_only=True):
    """The turn cannot go on."""

    message: str
    error_type: str = ""
    error_code: str | None = None
    status_code: Number | None = None


class Information(Frame, frozen=True, kw_only=True):
    """Something for people to know."""

    message: str
    info_type: str = ""


class Warned(Frame, frozen=True, kw_only=True):
    """Something for people to worry about."""

    message: str
    warning_type: str = ""


class Compacted(Frame, frozen=True, kw_only=True):
    """The conversation was summarised."""

    success: bool
    error: str | None = None


class McpStatus(Frame, frozen=True, kw_only=True):
    """An MCP server came up, or did not."""

    server_name: str
    status: str
    error: str | None = None


class ModelChange(Frame, frozen=True, kw_only=True):
    """Another model is in use."""

    new_model: str


class ModeChange(Frame, frozen=True, kw_only=True):
    """Another mode is in use."""

    new_mode: str


class Idle(Frame, frozen=True, kw_only=True):
    """Nothing is under way any more."""

    aborted: bool | None = None


class ProviderError(Frame, frozen=True, kw_only=True):
    """What providers put into the body of an error."""

    message: str
