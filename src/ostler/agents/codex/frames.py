"""What `codex app-server` says, as far as it matters to us; fields we do not read are left out."""

from typing import Any, Literal

import msgspec

from ostler.agents.codex.thread import AnyItem, Frame


class InThread(Frame, frozen=True, kw_only=True):
    """Base of what belongs to one thread."""

    thread_id: str


class ItemFrame(InThread, frozen=True, kw_only=True):
    """An item started or completed."""

    item: AnyItem


class DeltaFrame(InThread, frozen=True, kw_only=True):
    """An item grew."""

    item_id: str
    delta: str


class SummaryPart(InThread, frozen=True, kw_only=True):
    """The next paragraph of a reasoning summary begins."""

    item_id: str
    summary_index: int


class TurnError(Frame, frozen=True, kw_only=True):
    """What went wrong in a turn."""

    message: str
    codex_error_info: str | dict[str, Any] | None = None
    additional_details: str | None = None


class LimitWindow(Frame, frozen=True, kw_only=True):
    """How much of an account's limit is used, and when it begins anew."""

    used_percent: float
    resets_at: float | None = None
    """In seconds since 1970."""


class RateLimits(Frame, frozen=True, kw_only=True):
    """The limits of an account: that of some hours, and that of a week."""

    primary: LimitWindow | None = None
    secondary: LimitWindow | None = None


class RateLimitsFrame(Frame, frozen=True, kw_only=True):
    """News about the limits of the account."""

    rate_limits: RateLimits


class ErrorFrame(InThread, frozen=True, kw_only=True):
    """A failure; the turn goes on if it is retried."""

    error: TurnError
    will_retry: bool = False


class Turn(Frame, frozen=True, kw_only=True):
    """A turn of a thread."""

    id: str
    status: Literal["completed", "interrupted", "failed", "inProgress"]
    error: TurnError | None = None


class TurnFrame(InThread, frozen=True, kw_only=True):
    """A turn started or is over."""

    turn: Turn


class Step(Frame, frozen=True, kw_only=True):
    """One step of the agent's list."""

    step: str
    status: Literal["pending", "inProgress", "completed"]


class PlanFrame(InThread, frozen=True, kw_only=True):
    """The agent's list of steps."""

    plan: tuple[Step, ...]


class Tokens(Frame, frozen=True, kw_only=True):
    """Counted tokens."""

    total_tokens: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TokenUsage(Frame, frozen=True, kw_only=True):
    """Tokens of the whole thread and of the last model call."""

    total: Tokens
    last: Tokens
    model_context_window: int | None = None


class UsageFrame(InThread, frozen=True, kw_only=True):
    """Tokens changed."""

    token_usage: TokenUsage


class NameFrame(InThread, frozen=True, kw_only=True):
    """The thread has a name."""

    thread_name: str | None = None


class ReroutedFrame(InThread, frozen=True, kw_only=True):
    """Another model than the chosen one answers."""

    from_model: str
    to_model: str


class ConfigWarning(Frame, frozen=True, kw_only=True):
    """Something in the configuration is wrong."""

    summary: str


class McpStatus(Frame, frozen=True, kw_only=True):
    """How the start of an MCP server goes."""

    name: str
    status: str
    error: str | None = None


class Resolved(InThread, frozen=True, kw_only=True):
    """A request of Codex has its answer, or was taken back."""

    request_id: int | str


# Requests


class CommandApproval(InThread, frozen=True, kw_only=True):
    """May this command run?"""

    item_id: str
    command: str | None = None
    cwd: str | None = None
    reason: str | None = None
    proposed_execpolicy_amendment: tuple[str, ...] | None = None


class FileApproval(InThread, frozen=True, kw_only=True):
    """May this patch be applied? The patch is in the item."""

    item_id: str
    reason: str | None = None
    grant_root: str | None = None


class ProfileApproval(InThread, frozen=True, kw_only=True):
    """May it have these rights for the rest of the turn?"""

    item_id: str
    permissions: dict[str, Any]
    reason: str | None = None


class Option(Frame, frozen=True, kw_only=True):
    """One answer on offer."""

    label: str
    description: str | None = None


class UserQuestion(Frame, frozen=True, kw_only=True):
    """One question."""

    id: str
    question: str
    header: str | None = None
    is_other: bool = False
    options: tuple[Option, ...] | None = None


class UserInput(InThread, frozen=True, kw_only=True):
    """Questions for a person."""

    item_id: str
    questions: tuple[UserQuestion, ...]


class ElicitationMeta(Frame, frozen=True, kw_only=True, rename=None):
    """Why an MCP server's request is shown; spelled the other way."""

    codex_approval_kind: str | None = None
    tool_params: Any = None


class Elicitation(InThread, frozen=True, kw_only=True):
    """An MCP server wants something of a person, or its tool wants to run."""

    server_name: str
    message: str = ""
    meta: ElicitationMeta | None = msgspec.field(default=None, name="_meta")


# Responses


class Thread(Frame, frozen=True, kw_only=True):
    """A thread, as its start tells it."""

    id: str
    cli_version: str | None = None


class ThreadResult(Frame, frozen=True, kw_only=True):
    """The thread runs."""

    thread: Thread
    model: str


class Effort(Frame, frozen=True, kw_only=True):
    """How hard a model may think."""

    reasoning_effort: str


class ListedModel(Frame, frozen=True, kw_only=True):
    """A model on offer."""

    id: str
    display_name: str
    hidden: bool = False
    supported_reasoning_efforts: tuple[Effort, ...] = ()


class ModelList(Frame, frozen=True, kw_only=True):
    """All models on offer."""

    data: tuple[ListedModel, ...] = ()
