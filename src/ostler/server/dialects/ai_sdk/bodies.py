"""What chat clients send and get; read leniently, since clients send back more than we gave them."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.events import PermissionRules
from ostler.wire.providers import McpServers, Provider
from ostler.wire.struct import Request, Wire
from ostler.wire.texts import AbsolutePath, Choice, Key

_SOME = msgspec.Meta(extra_json_schema={"minItems": 1})


class UiApproval(Wire, frozen=True, kw_only=True):
    """How a person decided an approval."""

    id: str
    approved: bool | None = None
    reason: str | None = None


class UiPart(Wire, frozen=True, kw_only=True, rename="camel"):
    """A part of a chat message; of a type that Ostler has no use for, it is passed over."""

    type: str
    text: str | None = None
    url: str | None = None
    media_type: str | None = None
    filename: str | None = None
    approval: UiApproval | None = None


class UiMessage(Wire, frozen=True, kw_only=True):
    """A chat message as a client sends it."""

    role: Literal["user", "assistant", "system"]
    parts: tuple[UiPart, ...]
    id: str | None = None


class Sandbox(Request, frozen=True, kw_only=True):
    """Where the agent works."""

    type: Literal["local"] = "local"
    cwd: AbsolutePath | None = None
    """Absolute folder; by default a new empty one."""


PermissionWord = Literal["default", "plan", "bypass", "ask", "allow"]


class Permissions(Request, frozen=True, kw_only=True):
    """What the agent may do: in general, and rules for tools."""

    default: PermissionWord = "default"
    rules: PermissionRules = ()


class AgentChoice(Request, frozen=True, kw_only=True):
    """Which agent a new session gets, and how; absent means the project's default."""

    harness: str | None = None
    """The agent's name, such as claude-code."""
    model: Choice | None = None
    variant: Choice | None = None
    mode: Choice | None = None
    instructions: str | None = None
    """Said to the agent before the first message."""
    permissions: PermissionWord | Permissions | None = None
    tools: McpServers | list[Any] | None = None
    """MCP servers by name; or names: all tools that the model may have, for an agent that lets you choose."""
    sandbox: Literal["local"] | Sandbox | None = None
    provider: Provider | None = None


class Parameters(Request, frozen=True, kw_only=True):
    """Configuration of a turn."""

    agent: AgentChoice | None = None


class TurnData(Wire, frozen=True, kw_only=True):
    """The conversation with its inputs and configuration."""

    messages: Annotated[tuple[UiMessage, ...], _SOME]
    """The last one is the new one."""
    inputs: dict[str, Any] | None = None
    """Named values for this turn, told to the agent; no place for secrets."""
    parameters: Parameters | None = None


class ChatRequest(Wire, frozen=True, kw_only=True):
    """One turn: with `data` the session protocol, with `messages` the body of `useChat`."""

    session_id: Key | None = None
    data: TurnData | None = None
    references: dict[str, Any] | None = None
    id: Key | None = None
    messages: Annotated[tuple[UiMessage, ...], _SOME] | None = None
    trigger: str | None = None
    message_id: str | None = None
    agent: AgentChoice | str | None = None


class LoadSession(Wire, frozen=True, kw_only=True):
    """Which session's history is wanted."""

    session_id: Key


class InvokeMessage(Wire, frozen=True, kw_only=True):
    """A message in plain form."""

    role: Literal["user", "assistant", "system"]
    content: str | tuple[UiPart, ...]


class InvokeInputs(Wire, frozen=True, kw_only=True):
    """The conversation, in plain form; whatever else is here is told to the agent by its name."""

    messages: Annotated[tuple[InvokeMessage, ...], _SOME]


class InvokeData(Wire, frozen=True, kw_only=True):
    """What to run."""

    inputs: InvokeInputs
    parameters: Parameters | None = None


class InvokeRequest(Wire, frozen=True, kw_only=True):
    """One answer without a session."""

    data: InvokeData
    references: dict[str, Any] | None = None


class Status(Wire, frozen=True, kw_only=True):
    """How a call went."""

    code: int
    message: str | None = None
    type: str | None = None
    stacktrace: str | None = None
    """Where an error comes from; only while the server logs with level debug."""


class Outputs(Wire, frozen=True, kw_only=True):
    """What the agent said."""

    role: Literal["assistant"]
    content: str


class OutputData(Wire, frozen=True, kw_only=True):
    """The outcome of a turn."""

    outputs: Outputs


class TurnResponse(Wire, frozen=True, kw_only=True):
    """A whole turn as one answer; on failure only `status` and what is known."""

    trace_id: str | None = None
    span_id: str | None = None
    session_id: str | None = None
    status: Status
    data: OutputData | None = None


class ChatHistory(Wire, frozen=True, kw_only=True):
    """The conversation of a session."""

    session_id: str
    messages: tuple["StoredMessage", ...]


class StoredMessage(Wire, frozen=True, kw_only=True):
    """A chat message as `useChat` takes it."""

    id: str
    role: Literal["user", "assistant", "system"]
    parts: tuple[dict[str, Any], ...]
    metadata: dict[str, Any] | None = None


def text_of(message: UiMessage) -> str:
    """What a message says."""
    return "\n\n".join(part.text for part in message.parts if part.type == "text" and part.text)


def plain(message: InvokeMessage) -> UiMessage:
    """A plain message as a chat message."""
    parts = message.content
    return UiMessage(role=message.role, parts=(UiPart(type="text", text=parts),) if isinstance(parts, str) else parts)
