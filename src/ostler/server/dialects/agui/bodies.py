"""What an AG-UI client sends."""

from typing import Any, Literal

import msgspec


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of everything read; fields we do not know are ignored, as clients of all versions send theirs."""


class Source(Body, frozen=True, kw_only=True):
    """Where the bytes of an attachment are."""

    type: str
    value: str
    mime_type: str | None = None


class Content(Body, frozen=True, kw_only=True):
    """A piece of a message."""

    type: str
    text: str | None = None
    source: Source | None = None
    data: str | None = None
    url: str | None = None
    mime_type: str | None = None


class AguiMessage(Body, frozen=True, kw_only=True):
    """A message of the conversation."""

    id: str
    role: str
    content: Any = None


class ContextEntry(Body, frozen=True, kw_only=True):
    """Something the agent should know."""

    description: str
    value: str


class ResumeEntry(Body, frozen=True, kw_only=True):
    """The answer to an interrupt."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class RunAgentInput(msgspec.Struct, frozen=True, kw_only=True):
    """One run: the thread, its messages, and answers to what was asked. These names may be in either spelling."""

    thread_id: str
    run_id: str
    messages: tuple[AguiMessage, ...] = ()
    context: tuple[ContextEntry, ...] = ()
    forwarded_props: Any = None
    resume: tuple[ResumeEntry, ...] | None = None
    state: Any = None
    tools: Any = None
