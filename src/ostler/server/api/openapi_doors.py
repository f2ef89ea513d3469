"""Doors that Litestar does not describe: operations at a second place, and protocols with messages of their own."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from litestar import Litestar
from litestar.routes import HTTPRoute

from ostler.server.dialects.agui.bodies import RunAgentInput

Document = dict[str, Any]


class Alias(NamedTuple):
    """A route where an operation is to be had as well."""

    path: str
    method: str
    operation: str


def aliases_of(app: Litestar) -> list[Alias]:
    """The routes that are left out of Litestar's document because their operations are in it already."""
    return sorted(_hidden(app))


def _hidden(app: Litestar) -> Iterator[Alias]:
    for route in app.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            if handler.operation_id is not None and not handler.resolve_include_in_schema():
                yield from (
                    Alias(route.path_format, method.lower(), str(handler.operation_id))
                    for method in handler.http_methods
                )


def add_aliases(document: Document, aliases: list[Alias]) -> None:
    """Describe these routes like their operations, under names of their own that say whose they are."""
    known = {
        operation["operationId"]: (f"{method.upper()} {path}", operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    for alias in aliases:
        main, operation = known[alias.operation]
        about = {"operationId": f"{alias.operation}.alias", "summary": f"The same as `{main}`."}
        place = document["paths"].setdefault(alias.path, {})
        place[alias.method] = {**operation, **about, "x-alias-of": alias.operation}


def _header(name: str, description: str, *, required: bool = False) -> Document:
    about = {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}
    return {**about, "required": True} if required else about


_CONNECTION = "What the answer to `initialize` gave in this header."
_ACP_SESSION = _header("Acp-Session-Id", "The session that it is about.")
HEADERS = {
    "acp.send": [_header("Acp-Connection-Id", f"{_CONNECTION} Left out with `initialize`."), _ACP_SESSION],
    "acp.stream": [_header("Acp-Connection-Id", _CONNECTION, required=True), _ACP_SESSION],
    "acp.leave": [_header("Acp-Connection-Id", _CONNECTION, required=True)],
}
"""Of operations that read them from the request themselves."""
BODIES = {"acp.send": "JsonRpcMessage", "mcp.send": "JsonRpcMessage"}
"""The same for bodies."""


def message_schemas() -> dict[str, Document]:
    """Messages whose protocols describe them better than we could."""
    return {"AguiEvent": _agui_event(), "JsonRpcMessage": _json_rpc(), **_run_agent_input()}


def _agui_event() -> Document:
    return {
        "title": "AguiEvent",
        "description": "An event of AG-UI.",
        "type": "object",
        "properties": {"type": {"type": "string"}, "timestamp": {"type": "integer"}},
        "required": ["type"],
    }


def _json_rpc() -> Document:
    return {
        "title": "JsonRpcMessage",
        "description": "A request, a notification (without `id`) or an answer (without `method`) of JSON-RPC 2.0.",
        "type": "object",
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
            "result": {"description": "Of an answer."},
            "error": {
                "type": "object",
                "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
                "required": ["code", "message"],
            },
        },
        "required": ["jsonrpc"],
        "anyOf": [
            {"required": ["method"]},
            {"required": ["id", "result"], "properties": {"id": {"type": ["string", "integer"]}}},
            {"required": ["id", "error"]},
        ],
    }


def _run_agent_input() -> dict[str, Document]:
    """What an AG-UI client sends, in its own spelling; ours is taken too."""
    _, schemas = msgspec.json.schema_components((RunAgentInput,), ref_template="#/components/schemas/{name}")
    run = schemas[RunAgentInput.__name__]
    run["properties"] = {_camel(name): about for name, about in run["properties"].items()}
    run["required"] = [_camel(name) for name in run["required"]]
    return schemas


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
