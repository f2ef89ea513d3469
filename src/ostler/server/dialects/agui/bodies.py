"""What an AG-UI client sends."""

from typing import Any, Literal

import msgspec

from ostler.base.casing import camel
from ostler.base.errors import InvalidRequest
from ostler.server.sessions.settings import SessionChange
from ostler.wire.events import PermissionMode
from ostler.wire.texts import Key


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


class FunctionCall(Body, frozen=True, kw_only=True):
    """What a tool was called with."""

    name: str
    arguments: str = ""


class ToolCall(Body, frozen=True, kw_only=True):
    """A call of a tool."""

    id: str
    function: FunctionCall


class AguiMessage(Body, frozen=True, kw_only=True):
    """A message of the conversation."""

    id: str
    role: str
    content: Any = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None
    """Of the answer of a tool: which call it is for."""
    error: str | None = None


class ContextEntry(Body, frozen=True, kw_only=True):
    """Something the agent should know."""

    description: str
    value: str


class ResumeEntry(Body, frozen=True, kw_only=True):
    """The answer to an interrupt."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Any = None


class ForwardedProps(msgspec.Struct, frozen=True, kw_only=True):
    """What `forwardedProps` may say about the agent; an application may put more there, which is its own affair."""

    agent: str | None = None
    model: str | None = None
    variant: str | None = None
    mode: str | None = None
    permission_mode: PermissionMode | None = None

    @property
    def change(self) -> SessionChange:
        """How the agent should work from this run on."""
        return SessionChange(
            model=self.model, variant=self.variant, mode=self.mode, permission_mode=self.permission_mode
        )


NAMES = {
    "model": "forwardedProps.model",
    "variant": "forwardedProps.variant",
    "mode": "forwardedProps.mode",
    "permission_mode": "forwardedProps.permissionMode",
}
"""What clients call the settings of a session."""


def forwarded(props: Any) -> ForwardedProps:
    """What is said about the agent; names may be in either spelling."""
    given = props if isinstance(props, dict) else {}
    known = {name: given.get(camel(name), given.get(name)) for name in ForwardedProps.__struct_fields__}
    try:
        return msgspec.convert(known, ForwardedProps)
    except msgspec.ValidationError as error:
        field = str(error).rpartition("$.")[2].strip("`")
        name = f"forwardedProps.{camel(field)}"
        shown = f"'{str(known.get(field))[:80]}' cannot be"
        raise InvalidRequest(reason=f"{name}: {shown}. {error}.", errors={name: [shown]}) from None


class RunAgentInput(msgspec.Struct, frozen=True, kw_only=True):
    """One run: the thread, its messages, and answers to what was asked. These names may be in either spelling."""

    thread_id: Key
    run_id: str
    messages: tuple[AguiMessage, ...] = ()
    context: tuple[ContextEntry, ...] = ()
    forwarded_props: Any = None
    resume: tuple[ResumeEntry, ...] | None = None
    state: Any = None
    tools: Any = None
