"""What clients of workflow executions send and get."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.events import PermissionMode
from ostler.wire.struct import Request, Wire
from ostler.wire.texts import AbsolutePath, Choice, Prompt

SIGNALS = ("userMessage", "permissionReply", "questionReply")
ExecutionStatus = Literal["PENDING", "RUNNING", "WAITING", "COMPLETED", "FAILED", "CANCELLED"]


class ModelChoice(Request, frozen=True, kw_only=True, rename="camel"):
    """Which model to use."""

    model_id: Choice
    provider: str | None = None


class ExecutionConfig(Request, frozen=True, kw_only=True, rename="camel"):
    """How the agent should work; what it does not obey is refused by name."""

    max_turns: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    thinking: str | None = None
    permission_mode: PermissionMode = "default"


class ExecutionInput(Request, frozen=True, kw_only=True, rename="camel"):
    """What the agent should do."""

    user_prompt: Prompt
    system_prompt: str | None = None
    model: ModelChoice | None = None
    tools: tuple[str, ...] = ()
    config: ExecutionConfig = ExecutionConfig()
    working_directory: AbsolutePath | None = None
    agent: str | None = None
    """The agent that does it; the server's default one if absent."""


class CreateExecution(Request, frozen=True, kw_only=True):
    """Start an agent."""

    kind: Literal["agent"]
    input: ExecutionInput


class SignalPayload(Request, frozen=True, kw_only=True, rename="camel"):
    """What a signal carries; which fields depends on its name."""

    text: str | None = None
    permission_id: str | None = None
    reply: Literal["once", "always", "reject"] | None = None
    question_id: str | None = None
    answers: tuple[tuple[str, ...], ...] | None = None


class Signal(Request, frozen=True, kw_only=True):
    """Tell a running execution something."""

    name: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(SIGNALS)})]
    payload: SignalPayload = SignalPayload()


class SignalReceived(Wire, frozen=True, kw_only=True):
    """What became of a signal."""

    status: Literal["accepted"]
    disposition: str | None = None


class Execution(Wire, frozen=True, kw_only=True, rename="camel"):
    """A session as a workflow execution."""

    id: str
    kind: Literal["agent"]
    status: ExecutionStatus
    org: str
    agent: str
    created_at: str
    updated_at: str
    current_turn: int
    title: str | None = None
    model: str | None = None
    working_directory: str | None = None
    completed_at: str | None = None
    error: str | None = None


class ExecutionPage(Wire, frozen=True, kw_only=True, rename="camel"):
    """One page of executions, newest first."""

    items: tuple[Execution, ...]
    page: int
    per_page: int
    total: int
    next_page: int | None = None


class StateValue(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """One value of an execution's state."""

    key: str
    value: Any = msgspec.field(default=None)
