"""Frames of Amp's stream JSON and of the bridge before it, as far as we read them."""

import msgspec


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all frames."""


class Head(Frame, frozen=True, kw_only=True):
    """What every frame has: enough to choose who reads it."""

    type: str
    subtype: str | None = None


class Init(Frame, frozen=True, kw_only=True):
    """Amp has started on a thread."""

    session_id: str
    agent_mode: str | None = None


class Usage(Frame, frozen=True, kw_only=True):
    """Tokens of one model call; the input comes in three parts."""

    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0
    max_tokens: int | None = None

    @property
    def input(self) -> int:
        """All input, cached or not."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens


class Block(Frame, frozen=True, kw_only=True):
    """One block of content."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: str = ""
    content: str = ""
    is_error: bool = False


class Message(Frame, frozen=True, kw_only=True):
    """A message of the conversation."""

    content: list[Block]
    stop_reason: str | None = None
    usage: Usage | None = None


class Spoken(Frame, frozen=True, kw_only=True):
    """A whole message of the assistant, of the user, or results of tools."""

    message: Message
    parent_tool_use_id: str | None = None


class Result(Frame, frozen=True, kw_only=True):
    """Amp ends: by an error, or because no more words come."""

    is_error: bool = False
    error: str | None = None


class Ask(Frame, frozen=True, kw_only=True):
    """May this tool run?"""

    ask: int
    tool: str
    tool_use_id: str
    input: msgspec.Raw


class Ended(Frame, frozen=True, kw_only=True):
    """Amp's process is gone; the bridge starts another when it is needed."""

    interrupted: bool
    code: int


class Arguments(Frame, frozen=True, kw_only=True):
    """The arguments of tools that write files or run commands, as far as we look at them."""

    path: str = ""
    cmd: str = ""
    content: str = ""
    old_str: str = ""
    new_str: str = ""


class Edited(Frame, frozen=True, kw_only=True):
    """What the editing tool answers."""

    diff: str
