"""Items: the entries of a transcript, prompts that wait to become some, and what agents plan and write to stderr."""

from typing import Literal

from ostler.wire.parts import ContentPart, PromptPart
from ostler.wire.struct import Wire

ItemKind = Literal["message", "tool_call", "tool_result", "system", "status", "unknown"]
ItemRole = Literal["user", "assistant", "system", "tool"]
ItemStatus = Literal["in_progress", "completed", "failed"]


class Item(Wire, frozen=True, kw_only=True):
    """One entry of a transcript: a message, a tool call, a tool result, a status line."""

    item_id: str
    kind: ItemKind
    status: ItemStatus
    content: tuple[ContentPart, ...]
    role: ItemRole | None = None
    native_item_id: str | None = None
    parent_id: str | None = None


class QueueEntry(Wire, frozen=True, kw_only=True):
    """A prompt that waits for the current turn to end; `actor` sent it."""

    prompt_id: str
    parts: tuple[PromptPart, ...]
    queued_at: str
    actor: str | None = None
    trace_id: str | None = None
    """The W3C trace that its turn will belong to."""


class QueueUpdatedData(Wire, frozen=True, kw_only=True):
    """The whole queue, resent at every change."""

    entries: tuple[QueueEntry, ...]


class PlanEntry(Wire, frozen=True, kw_only=True):
    """One step of the agent's plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    priority: Literal["high", "medium", "low"] | None = None


class PlanUpdatedData(Wire, frozen=True, kw_only=True):
    """The whole plan, resent at every change."""

    entries: tuple[PlanEntry, ...]


class StderrOutput(Wire, frozen=True, kw_only=True):
    """What an agent wrote to stderr: all of it, or its first 20 and last 50 lines."""

    truncated: bool
    head: str | None = None
    tail: str | None = None
    total_lines: int | None = None
