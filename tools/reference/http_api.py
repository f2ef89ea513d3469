"""The page about the HTTP API, from its OpenAPI document."""

from collections.abc import Iterator
from typing import Any

from tools.reference.markdown import Schema, anchor, code, first_line, here, page, reachable, refs, table, type_words
from tools.reference.wire import event_types, fields_table, wire_structs

_INTRODUCTION = """
All paths start with `/api/v1`. Bodies and answers are JSON. `{session}` is a session's id or its key. When the server
has a token, send it as `Authorization: Bearer <token>`. Every POST takes an `Idempotency-Key` header: the same key with
the same body gives the same answer and does nothing twice. Errors are [problem documents](errors.md).

The command line has a command for each operation (`sessions.list` is `ostler sessions list`), and the Python SDK a
method. The same as OpenAPI 3.1: [schema/openapi.json](../../schema/openapi.json); a running server has it at
`/api/v1/openapi.json`.
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def http_page(document: dict[str, Any]) -> str:
    """The reference of all operations."""
    operations = sorted(_operations(document), key=lambda found: _place(found[2]))
    schemas: dict[str, Schema] = document["components"]["schemas"]
    overview = [
        (
            code(f"{method.upper()} {path}"),
            f"[{operation['operationId']}]({here(operation['operationId'])})",
            _summary(operation),
        )
        for method, path, operation in operations
    ]
    blocks = ["## Operations", table(("route", "operation", "meaning"), overview)]
    for method, path, operation in operations:
        blocks += _operation_blocks(method, path, operation)
    blocks += ["## Types", *_type_blocks([operation for *_, operation in operations], schemas)]
    return page("HTTP API", _INTRODUCTION, *blocks)


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield method, path, item[method]


def _place(operation: dict[str, Any]) -> tuple[int, str]:
    nouns = ("system", "agents", "sessions", "events", "asks")
    noun = operation["operationId"].split(".")[0]
    return nouns.index(noun) if noun in nouns else len(nouns), operation["operationId"]


def _summary(operation: dict[str, Any]) -> str:
    return str(operation.get("description") or operation.get("summary") or "").split("\n")[0]


def _operation_blocks(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    parameters = [
        (code(found["name"]), found["in"], type_words(found.get("schema", {}), _link), found.get("description", ""))
        for found in operation.get("parameters", ())
    ]
    answers = [
        (status, _content_words(answer.get("content", {})), answer.get("description", ""))
        for status, answer in operation.get("responses", {}).items()
    ]
    body = _content_words(operation.get("requestBody", {}).get("content", {}))
    return [
        f"### {operation['operationId']}",
        code(f"{method.upper()} {path}"),
        _summary(operation),
        table(("parameter", "in", "type", "meaning"), parameters) if parameters else "",
        f"Body: {body}" if body else "",
        table(("status", "answer", "meaning"), answers),
    ]


def _content_words(content: dict[str, Any]) -> str:
    return "; ".join(
        f"{type_words(about.get('schema', {}), _link)} ({code(media)})" for media, about in content.items()
    )


def _link(name: str) -> str:
    return f"events.md#{anchor(name)}" if name in event_types() else here(name)


def _type_blocks(operations: list[dict[str, Any]], schemas: dict[str, Schema]) -> list[str]:
    structs = wire_structs()
    elsewhere = set(event_types())
    names = [name for name in reachable(refs(operations), schemas) if name not in elsewhere]
    return [
        block
        for name in names
        for block in (
            f"### {name}",
            first_line(structs[name]) if name in structs else "",
            fields_table(name, schemas, _link),
        )
    ]
