"""What Litestar does not describe: operations at a second place, and protocols with messages of their own."""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import msgspec
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from ostler.server.api.described import Document
from ostler.server.dialects.agui.bodies import RunAgentInput


def facts_of(app: Litestar) -> dict[str, Mapping[str, Any]]:
    """What the handlers say of themselves, by operation."""
    return {
        operation: handler.opt for _, _, operation, handler in _handlers(app) if handler.resolve_include_in_schema()
    }


def _handlers(app: Litestar) -> Iterator[tuple[str, str, str, HTTPRouteHandler]]:
    for route in app.routes:
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else ():
            for method in handler.http_methods if handler.operation_id is not None else ():
                yield route.path_format, method.lower(), str(handler.operation_id), handler


def add_aliases(document: Document, app: Litestar) -> None:
    """Describe the routes that Litestar leaves out like their operations, under names that say whose they are."""
    known = {
        operation["operationId"]: (f"{method.upper()} {path}", operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    hidden = [found for found in _handlers(app) if not found[3].resolve_include_in_schema()]
    for path, method, name, _ in sorted(hidden, key=itemgetter(0, 1, 2)):
        main, operation = known[name]
        about = {"operationId": f"{name}.alias", "summary": f"The same as `{main}`."}
        document["paths"].setdefault(path, {})[method] = {**operation, **about, "x-alias-of": name}


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
