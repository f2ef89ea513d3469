"""What a client wants, in our words: prompts, new sessions and their tool servers."""

from urllib.parse import unquote, urlsplit

from ostler.server.dialects.acp.messages import INVALID_PARAMS, Block, McpServerParams, NewSession, Refusal
from ostler.wire.parts import FileInput, ImageInput, InputPart, TextInput
from ostler.wire.providers import HttpMcpServer, McpServer, StdioMcpServer
from ostler.wire.sessions import CreateSession


def linked_files(blocks: tuple[Block, ...]) -> tuple[str, ...]:
    """The paths that a prompt's content blocks link to."""
    paths = (_path(block.uri) for block in blocks if block.type == "resource_link" and block.uri is not None)
    return tuple(path for path in paths if path is not None)


def prompt_parts(blocks: tuple[Block, ...], there: set[str]) -> tuple[InputPart, ...]:
    """A prompt's content blocks as the parts of ours; `there` are the linked files that exist."""
    return tuple(_part(index, block, there) for index, block in enumerate(blocks))


def _part(index: int, block: Block, there: set[str]) -> InputPart:
    match block:
        case Block(type="text", text=str() as text):
            return TextInput(text=text)
        case Block(type="image", data=str() as data):
            return ImageInput(data=data, mime=block.mime_type)
        case Block(type="resource_link", uri=str() as uri):
            return _linked(uri, block.name, there)
        case Block(type="resource") if block.resource is not None:
            return _embedded(index, block)
        case _:
            raise Refusal(INVALID_PARAMS, f"prompt[{index}]: content of type '{block.type}' is not supported.")


def _path(uri: str) -> str | None:
    parsed = urlsplit(uri)
    return unquote(parsed.path) if parsed.scheme == "file" else None


def _linked(uri: str, name: str | None, there: set[str]) -> InputPart:
    if (path := _path(uri)) is not None and path in there:
        return FileInput(path=path)
    return TextInput(text=f"[{name or uri}]({uri})")


def _embedded(index: int, block: Block) -> InputPart:
    resource = block.resource
    if resource is not None and resource.text is not None:
        return TextInput(text=f'<context uri="{resource.uri}">\n{resource.text}\n</context>')
    if resource is not None and resource.blob is not None and (resource.mime_type or "").startswith("image/"):
        return ImageInput(data=resource.blob, mime=resource.mime_type)
    raise Refusal(INVALID_PARAMS, f"prompt[{index}]: only text and images can be embedded.")


def create_session(wanted: NewSession, default_agent: str) -> CreateSession:
    """Our request for a session; `_meta.ostler` may name the agent, its model, mode and so on."""
    extra = (wanted.meta or {}).get("ostler")
    chosen = {name: value for name, value in (extra if isinstance(extra, dict) else {}).items() if name in _CHOICES}
    for name, value in chosen.items():
        if not isinstance(value, str):
            raise Refusal(INVALID_PARAMS, f"_meta.ostler.{name}: must be text.")
    if (mode := chosen.get("permission_mode", "default")) not in {"default", "plan", "bypass"}:
        raise Refusal(INVALID_PARAMS, f"_meta.ostler.permission_mode: '{mode}' is not default, plan or bypass.")
    return CreateSession(
        **{"agent": default_agent, **chosen},
        cwd=wanted.cwd,
        mcp_servers=mcp_servers(wanted.mcp_servers),
    )


_CHOICES = frozenset({"agent", "key", "title", "model", "variant", "mode", "instructions", "permission_mode"})


def mcp_servers(given: tuple[McpServerParams, ...]) -> dict[str, McpServer]:
    """A client's tool servers by name."""
    return {server.name: _mcp_server(server) for server in given}


def _mcp_server(server: McpServerParams) -> McpServer:
    if server.type == "stdio" and server.command:
        env = {pair.name: pair.value for pair in server.env}
        return StdioMcpServer(command=server.command, args=server.args, env=env)
    if server.type == "http" and server.url:
        return HttpMcpServer(url=server.url, headers={pair.name: pair.value for pair in server.headers})
    raise Refusal(INVALID_PARAMS, f"mcpServers '{server.name}': give a command, or type http and a url.")
