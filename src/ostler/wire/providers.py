"""What a session may bring along for its agent: a model provider, MCP servers, and tools of its client."""

from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.struct import Body, Request
from ostler.wire.texts import BY_SERVER, Variables, WebAddress

ProviderType = Literal["anthropic", "openai", "gemini"]


class Provider(Request, frozen=True, kw_only=True):
    """Where the agent finds its model: a gateway, a proxy or a local server."""

    type: ProviderType
    base_url: WebAddress
    """The root, such as http://host:port; the adapter adds what its agent expects after it."""
    api_key: str | None = None
    """Never shown again."""


class StdioMcpServer(Request, frozen=True, kw_only=True, tag_field="type", tag="stdio"):
    """An MCP server that the agent starts as a program."""

    command: str
    args: tuple[str, ...] = ()
    env: Variables = msgspec.field(default_factory=dict)


class HttpMcpServer(Request, frozen=True, kw_only=True, tag_field="type", tag="http"):
    """An MCP server that the agent calls over HTTP."""

    url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)


McpServer = StdioMcpServer | HttpMcpServer
McpServers = Annotated[dict[str, McpServer], BY_SERVER]


TOOL_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
LARGEST_CODE_TOOL = 64 * 2**10
"""All of a tool that is a program, in bytes."""
CodeLanguage = Literal["python", "typescript"]


class CodeTool(Body, frozen=True, kw_only=True):
    """A tool that is a program: a call runs it in a sandbox, without network and files."""

    name: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"})]
    description: str
    """What it does and when to use it; the model reads this."""
    input_schema: dict[str, Any] = msgspec.field(default_factory=dict)
    """What it takes, as a JSON Schema of an object."""
    language: CodeLanguage = "python"
    code: str
    """A whole program: it reads its input as JSON from standard input, and what it prints is the answer."""


class ClientTool(Body, frozen=True, kw_only=True):
    """A tool that the client has: a call of it is an ask, which the client answers with the result."""

    name: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"})]
    description: str
    """What it does and when to use it; the model reads this."""
    input_schema: dict[str, Any] = msgspec.field(default_factory=dict)
    """What it takes, as a JSON Schema of an object."""
