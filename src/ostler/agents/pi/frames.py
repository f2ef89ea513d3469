"""The lines Pi writes in RPC mode, as types; a field that nobody needs is not named."""

from typing import Any, Literal

import msgspec

NO_DATA = msgspec.Raw(b"null")
NOTHING = msgspec.Raw(b"[]")


class Incoming(msgspec.Struct, frozen=True, tag_field="type", rename="camel"):
    """A line of Pi."""


class Response(Incoming, frozen=True, tag="response"):
    """The answer to one of our commands."""

    command: str
    success: bool
    id: str | None = None
    error: str | None = None
    data: msgspec.Raw = NO_DATA


class Price(msgspec.Struct, frozen=True):
    """What a message cost, in US dollars."""

    total: float = 0


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """Tokens of one message; `input` leaves out what came from a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    total_tokens: int = 0
    cost: Price = Price()


class Block(msgspec.Struct, frozen=True):
    """A piece of a message or a result: text, thinking, an image or a tool call."""

    type: str
    text: str = ""
    thinking: str = ""


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """A message of any role; `content` is read only where it matters."""

    role: str
    content: msgspec.Raw = NOTHING
    stop_reason: str | None = None
    error_message: str | None = None
    response_id: str | None = None
    usage: Usage = Usage()


class Growth(msgspec.Struct, frozen=True):
    """How a message grew."""

    type: Literal[
        "start",
        "text_start",
        "text_delta",
        "text_end",
        "thinking_start",
        "thinking_delta",
        "thinking_end",
        "toolcall_start",
        "toolcall_delta",
        "toolcall_end",
        "done",
        "error",
    ]
    delta: str = ""


class MessageStart(Incoming, frozen=True, tag="message_start"):
    """A message opens."""

    message: Message


class MessageUpdate(Incoming, frozen=True, tag="message_update"):
    """A message grows."""

    assistant_message_event: Growth


class MessageEnd(Incoming, frozen=True, tag="message_end"):
    """A message is final."""

    message: Message


class ToolResult(msgspec.Struct, frozen=True):
    """What a tool answered, so far or finally."""

    content: tuple[Block, ...] = ()
    details: msgspec.Raw = NO_DATA


class ToolStart(Incoming, frozen=True, tag="tool_execution_start"):
    """A tool is called."""

    tool_call_id: str
    tool_name: str
    args: msgspec.Raw


class ToolUpdate(Incoming, frozen=True, tag="tool_execution_update"):
    """All that a tool has answered so far."""

    tool_call_id: str
    partial_result: ToolResult


class ToolEnd(Incoming, frozen=True, tag="tool_execution_end"):
    """A tool has answered."""

    tool_call_id: str
    result: ToolResult
    is_error: bool = False


class AgentEnd(Incoming, frozen=True, tag="agent_end"):
    """Pi stops; old versions do not say whether it tries again."""

    will_retry: bool | None = None


class AgentSettled(Incoming, frozen=True, tag="agent_settled"):
    """Pi is idle; old versions do not say this."""


class RetryStart(Incoming, frozen=True, tag="auto_retry_start"):
    """The provider failed and Pi will try again."""

    attempt: int
    max_attempts: int
    delay_ms: float
    error_message: str = ""


class RetryEnd(Incoming, frozen=True, tag="auto_retry_end"):
    """The retries are over."""

    success: bool


class CompactionStart(Incoming, frozen=True, tag="compaction_start"):
    """Pi begins to shorten its memory."""

    reason: str


class CompactionEnd(Incoming, frozen=True, tag="compaction_end"):
    """Pi has shortened its memory, or not."""

    aborted: bool = False
    will_retry: bool = False
    error_message: str | None = None


class SessionInfoChanged(Incoming, frozen=True, tag="session_info_changed"):
    """The session got a name."""

    name: str | None = None


class ThinkingLevelChanged(Incoming, frozen=True, tag="thinking_level_changed"):
    """The effort changed."""

    level: str


class ExtensionError(Incoming, frozen=True, tag="extension_error"):
    """An extension failed."""

    error: str = ""


class UiRequest(Incoming, frozen=True, tag="extension_ui_request"):
    """An extension shows something or asks something."""

    id: str
    method: Literal[
        "select",
        "confirm",
        "input",
        "editor",
        "notify",
        "setStatus",
        "setWidget",
        "setTitle",
        "set_editor_text",
    ]
    title: str = ""
    message: str = ""
    options: tuple[str, ...] = ()
    notify_type: Literal["info", "warning", "error"] = "info"


class AgentStart(Incoming, frozen=True, tag="agent_start"):
    """Pi works."""


class TurnStart(Incoming, frozen=True, tag="turn_start"):
    """A model call begins."""


class TurnEnd(Incoming, frozen=True, tag="turn_end"):
    """A model call and its tools are over."""


class QueueUpdate(Incoming, frozen=True, tag="queue_update"):
    """Pi's own queue changed."""


class EntryAppended(Incoming, frozen=True, tag="entry_appended"):
    """Pi's session file grew."""


class BashUpdate(Incoming, frozen=True, tag="bash_execution_update"):
    """Output of a command that a person ran."""


class SummaryRetry(Incoming, frozen=True, tag="summarization_retry_scheduled"):
    """A summary failed and will be tried again."""


class SummaryAttempt(Incoming, frozen=True, tag="summarization_retry_attempt_start"):
    """A summary is tried again."""


class SummaryDone(Incoming, frozen=True, tag="summarization_retry_finished"):
    """The tries for a summary are over."""


AnyFrame = (
    Response
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolStart
    | ToolUpdate
    | ToolEnd
    | AgentEnd
    | AgentSettled
    | RetryStart
    | RetryEnd
    | CompactionStart
    | CompactionEnd
    | SessionInfoChanged
    | ThinkingLevelChanged
    | ExtensionError
    | UiRequest
    | AgentStart
    | TurnStart
    | TurnEnd
    | QueueUpdate
    | EntryAppended
    | BashUpdate
    | SummaryRetry
    | SummaryAttempt
    | SummaryDone
)


# What stands inside


class PiModel(msgspec.Struct, frozen=True, rename="camel"):
    """A model that Pi can use."""

    id: str
    provider: str
    name: str = ""
    reasoning: bool = False
    context_window: int | None = None


class ClearedData(msgspec.Struct, frozen=True):
    """The answer to clear_queue: what Pi had not read."""

    steering: tuple[str, ...] = ()


class ModelsData(msgspec.Struct, frozen=True):
    """The answer to get_available_models."""

    models: tuple[PiModel, ...]


class StateData(msgspec.Struct, frozen=True, rename="camel"):
    """The answer to get_state."""

    session_id: str
    model: PiModel | None = None
    is_streaming: bool = False
    is_compacting: bool = False


class WriteDetails(msgspec.Struct, frozen=True):
    """What our extension and Pi tell about a written or edited file."""

    before: str | None = None
    existed: bool | None = None
    patch: str | None = None


class OurAsk(msgspec.Struct, frozen=True, rename="camel"):
    """What our extension puts into the title of a dialog."""

    kind: Literal["permission", "question", "plan"]
    tool_call_id: str
    tool_name: str = ""
    input: Any = None
    question: str = ""
    multi: bool = False
    plan: str = ""
