"""The frames the mock agent writes, as types; their meaning stands in programs/mock/agent.py."""

from typing import Literal

import msgspec

from ostler.wire.events import Question, TurnOutcome
from ostler.wire.items import PlanEntry


class Incoming(msgspec.Struct, frozen=True, tag_field="type"):
    """A frame of the agent."""


class ReadyFrame(Incoming, frozen=True, tag="ready"):
    """The agent takes prompts."""

    session: str
    model: str
    mode: str


class MessageStart(Incoming, frozen=True, tag="message_start"):
    """An assistant message opens."""

    id: int


class Text(Incoming, frozen=True, tag="text"):
    """A message grows."""

    id: int
    delta: str


class Thinking(Incoming, frozen=True, tag="thinking"):
    """A thought inside a message grows."""

    id: int
    delta: str


class MessagePart(msgspec.Struct, frozen=True):
    """A piece of a final message."""

    kind: Literal["text", "thinking"]
    text: str


class MessageEnd(Incoming, frozen=True, tag="message_end"):
    """A message is final."""

    id: int
    parts: tuple[MessagePart, ...]


class Message(Incoming, frozen=True, tag="message"):
    """A whole message at once."""

    id: int
    parts: tuple[MessagePart, ...]


class ToolStart(Incoming, frozen=True, tag="tool_start"):
    """A tool is called; without an input, it is still being written."""

    id: int
    name: str
    input: msgspec.Raw = msgspec.Raw(b"")


class ToolInput(Incoming, frozen=True, tag="tool_input"):
    """The input of a tool grows."""

    id: int
    delta: str


class ToolOutput(Incoming, frozen=True, tag="tool_output"):
    """A command printed something; without an id it belongs to no tool."""

    id: int | None
    stream: Literal["stdout", "stderr"]
    data: str


class ToolEnd(Incoming, frozen=True, tag="tool_end"):
    """A tool answered."""

    id: int
    ok: bool
    output: str


class FileFrame(Incoming, frozen=True, tag="file"):
    """A file was written or edited."""

    tool: int
    path: str
    action: Literal["created", "modified"]
    operation: Literal["write", "edit"]
    diff: str


class PermissionFrame(Incoming, frozen=True, tag="permission"):
    """The agent asks whether it may."""

    id: int
    action: str
    tool: str | None


class QuestionFrame(Incoming, frozen=True, tag="question"):
    """The agent asks something."""

    id: int
    questions: tuple[Question, ...]


class PlanFrame(Incoming, frozen=True, tag="plan"):
    """The whole plan."""

    entries: tuple[PlanEntry, ...]


class UsageFrame(Incoming, frozen=True, tag="usage"):
    """Tokens and cost of the turn."""

    input: int
    output: int
    cost: float | None
    context_used: int
    context_window: int


class TitleFrame(Incoming, frozen=True, tag="title"):
    """The agent names the session."""

    title: str


class Unheard(Incoming, frozen=True, tag="unheard"):
    """Steering that an interrupt took back."""

    texts: tuple[str, ...]


class ErrorFrame(Incoming, frozen=True, tag="error"):
    """The turn goes wrong."""

    message: str
    resets_at: float | None = None
    """When the limit ends that made it so, in seconds since 1970."""


class Done(Incoming, frozen=True, tag="done"):
    """The turn is over."""

    outcome: TurnOutcome
    reason: str | None


AnyFrame = (
    ReadyFrame
    | MessageStart
    | Text
    | Thinking
    | MessageEnd
    | Message
    | ToolStart
    | ToolInput
    | ToolOutput
    | ToolEnd
    | FileFrame
    | PermissionFrame
    | QuestionFrame
    | PlanFrame
    | UsageFrame
    | TitleFrame
    | Unheard
    | ErrorFrame
    | Done
)
