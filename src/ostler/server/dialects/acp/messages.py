"""JSON-RPC messages of the protocol: what clients send, and how answers look."""

from typing import Any

import msgspec

from ostler.base.errors import OstlerError
from ostler.server.dialects.acp.blocks import Json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND = -32002
VERSION = 1
RequestId = int | str | None


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A request, a notification (without id) or an answer (without method)."""

    jsonrpc: str = "2.0"
    id: RequestId | msgspec.UnsetType = msgspec.UNSET
    method: str | None = None
    params: Any = None
    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET

    @property
    def is_request(self) -> bool:
        """Whether an answer is expected."""
        return self.method is not None and self.id is not msgspec.UNSET

    @property
    def session_id(self) -> str | None:
        """The session it is about."""
        found = self.params.get("sessionId") if isinstance(self.params, dict) else None
        return found if isinstance(found, str) else None


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parameters; unknown ones are ignored, as the protocol asks."""


class Capability(Params, frozen=True, kw_only=True):
    """Something a client can do, named by being there."""


class Elicitation(Params, frozen=True, kw_only=True):
    """Which ways of asking a client has."""

    form: Capability | None = None


class ClientCapabilities(Params, frozen=True, kw_only=True):
    """What a client can do, as far as it matters here."""

    elicitation: Elicitation | None = None


class Initialize(Params, frozen=True, kw_only=True):
    """The first request."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None


class NameValue(Params, frozen=True, kw_only=True):
    """A variable or a header."""

    name: str
    value: str


class McpServerParams(Params, frozen=True, kw_only=True):
    """A tool server: a program, or an address."""

    name: str
    type: str = "stdio"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[NameValue, ...] = ()
    url: str | None = None
    headers: tuple[NameValue, ...] = ()


class NewSession(Params, frozen=True, kw_only=True):
    """Start a session."""

    cwd: str
    mcp_servers: tuple[McpServerParams, ...] = ()
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")


class OfSession(Params, frozen=True, kw_only=True):
    """A request about one session."""

    session_id: str


class OpenSession(OfSession, frozen=True, kw_only=True):
    """Attach to a session, whose agent has these tool servers from then on; none leaves it those it has."""

    mcp_servers: tuple[McpServerParams, ...] = ()


class ListSessions(Params, frozen=True, kw_only=True):
    """Which sessions there are."""

    cwd: str | None = None
    cursor: str | None = None


class EmbeddedResource(Params, frozen=True, kw_only=True):
    """A file's content inside a prompt."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class Block(Params, frozen=True, kw_only=True):
    """A piece of a prompt."""

    type: str
    text: str | None = None
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    resource: EmbeddedResource | None = None


class PromptParams(OfSession, frozen=True, kw_only=True):
    """Begin a turn."""

    prompt: tuple[Block, ...]


class SetMode(OfSession, frozen=True, kw_only=True):
    """Change the mode."""

    mode_id: str


class SetConfigOption(OfSession, frozen=True, kw_only=True):
    """Change a setting."""

    config_id: str
    value: str | bool


class PermissionOutcome(Params, frozen=True, kw_only=True):
    """What the person chose."""

    outcome: str
    option_id: str | None = None


class PermissionResult(Params, frozen=True, kw_only=True):
    """The answer to a request for permission."""

    outcome: PermissionOutcome


class ElicitationResult(Params, frozen=True, kw_only=True):
    """The answer to a form."""

    action: str
    content: dict[str, Any] | None = None


class Refusal(Exception):
    """A request that cannot be done, as the protocol says it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def refusal_of(error: OstlerError) -> Refusal:
    """One of our errors as the protocol says it."""
    code = {400: INVALID_PARAMS, 404: NOT_FOUND, 409: INVALID_REQUEST, 422: INVALID_PARAMS}.get(
        error.status, INTERNAL_ERROR
    )
    data: Json = {"code": error.code}
    return Refusal(code, str(error), {**data, "errors": error.errors} if error.errors else data)


def answer(request_id: RequestId | msgspec.UnsetType, result: Any) -> Json:
    """The result of a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def failure(request_id: RequestId | msgspec.UnsetType, refusal: Refusal) -> Json:
    """Why a request could not be done."""
    error: Json = {"code": refusal.code, "message": str(refusal)}
    if refusal.data is not None:
        error["data"] = refusal.data
    return {"jsonrpc": "2.0", "id": None if request_id is msgspec.UNSET else request_id, "error": error}


def request(request_id: str, method: str, params: Json) -> Json:
    """Something we ask of the client."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def notification(method: str, params: Json) -> Json:
    """Something we tell the client."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
