"""The chunks of the UI Message Stream. An optional field is absent, never null: every client refuses null."""

from typing import Any, Literal

import msgspec

FinishReason = Literal["stop", "length", "content-filter", "tool-calls", "error", "other"]
"""What every version of the client takes; `unknown` is not among it."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", omit_defaults=True):
    """One piece of an assistant message."""


class Start(Chunk, frozen=True, kw_only=True, tag="start"):
    """A message begins; the metadata carries the session's id."""

    message_id: str
    message_metadata: dict[str, Any] | None = None


class StartStep(Chunk, frozen=True, kw_only=True, tag="start-step"):
    """A step of the agent begins."""


class FinishStep(Chunk, frozen=True, kw_only=True, tag="finish-step"):
    """The step is over."""


class Finish(Chunk, frozen=True, kw_only=True, tag="finish"):
    """The message is complete."""

    finish_reason: FinishReason | None = None
    message_metadata: dict[str, Any] | None = None


class Failure(Chunk, frozen=True, kw_only=True, tag="error"):
    """The turn failed; nothing follows."""

    error_text: str


class TextStart(Chunk, frozen=True, kw_only=True, tag="text-start"):
    """A block of text opens."""

    id: str


class TextDelta(Chunk, frozen=True, kw_only=True, tag="text-delta"):
    """A block of text grows."""

    id: str
    delta: str


class TextEnd(Chunk, frozen=True, kw_only=True, tag="text-end"):
    """A block of text is complete."""

    id: str


class ReasoningStart(Chunk, frozen=True, kw_only=True, tag="reasoning-start"):
    """A thought opens."""

    id: str


class ReasoningDelta(Chunk, frozen=True, kw_only=True, tag="reasoning-delta"):
    """A thought grows."""

    id: str
    delta: str


class ReasoningEnd(Chunk, frozen=True, kw_only=True, tag="reasoning-end"):
    """A thought is complete."""

    id: str


class ToolInputStart(Chunk, frozen=True, kw_only=True, tag="tool-input-start"):
    """A tool is about to be called."""

    tool_call_id: str
    tool_name: str


class ToolInputDelta(Chunk, frozen=True, kw_only=True, tag="tool-input-delta"):
    """The arguments of a call grow."""

    tool_call_id: str
    input_text_delta: str


class ToolInputAvailable(Chunk, frozen=True, kw_only=True, tag="tool-input-available"):
    """A tool is called with this."""

    tool_call_id: str
    tool_name: str
    input: Any


class ToolOutputAvailable(Chunk, frozen=True, kw_only=True, tag="tool-output-available"):
    """What the tool answered; a preliminary output is replaced by the next one."""

    tool_call_id: str
    output: Any
    preliminary: bool | None = None


class ToolOutputError(Chunk, frozen=True, kw_only=True, tag="tool-output-error"):
    """The tool failed."""

    tool_call_id: str
    error_text: str


class ToolApprovalRequest(Chunk, frozen=True, kw_only=True, tag="tool-approval-request"):
    """The call waits for a human; only for clients from version 6 on."""

    approval_id: str
    tool_call_id: str


class ToolApprovalResponse(Chunk, frozen=True, kw_only=True, tag="tool-approval-response"):
    """The human decided; only for clients from version 7 on."""

    approval_id: str
    approved: bool
    reason: str | None = None


class ToolOutputDenied(Chunk, frozen=True, kw_only=True, tag="tool-output-denied"):
    """The human said no; only for clients from version 6 on."""

    tool_call_id: str


class File(Chunk, frozen=True, kw_only=True, tag="file"):
    """A picture."""

    url: str
    media_type: str


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of our own: `data-plan`, `data-permission` and so on. One with the id of an earlier one replaces it.

    What is transient is told as it happens and is no part of the message.
    """

    type: str
    id: str | None = None
    data: Any
    transient: bool | None = None


AnyChunk = (
    Start
    | StartStep
    | FinishStep
    | Finish
    | Failure
    | TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolInputAvailable
    | ToolOutputAvailable
    | ToolOutputError
    | ToolApprovalRequest
    | ToolApprovalResponse
    | ToolOutputDenied
    | File
    | Data
)

DONE = b"data: [DONE]\n\n"
_encoder = msgspec.json.Encoder()


def encoded(chunk: AnyChunk) -> bytes:
    """A chunk as one message of an event stream."""
    return b"data: %b\n\n" % _encoder.encode(chunk)
