"""The page about the HTTP API, from its OpenAPI document."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from ostler.wire.events import EVENTS
from tools.reference.markdown import Schema, anchor, code, first_line, here, page, reachable, refs, table, type_words
from tools.reference.wire import data_type, event_types, fields_table, wire_structs

_INTRODUCTION = """
Bodies and answers are JSON. `{session}` is a session's id or its key. When the server has a token, send it as
`Authorization: Bearer <token>`. Every POST takes an `Idempotency-Key` header: the same key with the same body gives the
same answer and does nothing twice. Errors are [problem documents](errors.md) of type [Problem](#problem).

The command line has a command for each operation (`sessions.list` is `ostler sessions list`), and the Python SDK a
method. The operations of other protocols are for their own clients: `chat` for [the AI SDK](../guides/ai-sdk.md),
`daemon` for [the universal daemon API](../guides/daemon-api.md), `workflows` for
[workflow executions](../guides/workflow-executions.md), `acp` for [editors](../guides/editors-acp.md), `agui` for
[AG-UI](../guides/ag-ui.md), `mcp` for [agents that use this server](../guides/mcp-server.md). The same as OpenAPI 3.1:
[schema/openapi.json](../../schema/openapi.json), which a running server has at `/api/v1/openapi.json`.
"""
_NOUNS = (
    "system",
    "sign-in",
    "agents",
    "sessions",
    "prompts",
    "templates",
    "schedules",
    "triggers",
    "webhooks",
    "events",
    "asks",
    "tasks",
    "files",
    "comments",
    "catalogue",
    "tenants",
    "projects",
    "members",
    "keys",
    "limits",
    "usage",
    "audit",
    "runners",
    "followers",
    "connect",
    "relay",
    "runner",
    "chat",
    "daemon",
    "workflows",
    "acp",
    "agui",
    "mcp",
)
_ALIAS = ".alias"
_METHODS = ("get", "post", "put", "patch", "delete")


class Operation(NamedTuple):
    """One operation of the API."""

    method: str
    path: str
    about: dict[str, Any]

    @property
    def id(self) -> str:
        """Its operationId."""
        return str(self.about["operationId"])

    @property
    def noun(self) -> str:
        """What it is about."""
        return self.id.split(".")[0]

    @property
    def is_alias(self) -> bool:
        """Whether it is another operation at a second place."""
        return self.id.endswith(_ALIAS)

    @property
    def route(self) -> str:
        """Method and path."""
        return code(f"{self.method.upper()} {self.path}")

    @property
    def summary(self) -> str:
        """One line about it."""
        return str(self.about.get("description") or self.about.get("summary") or "").split("\n")[0]


def http_page(document: dict[str, Any]) -> str:
    """The reference of all operations."""
    found = list(_operations(document))
    operations = sorted((each for each in found if not each.is_alias), key=lambda each: _NOUNS.index(each.noun))
    places = {each.id.removesuffix(_ALIAS): each.route for each in found if each.is_alias}
    schemas: dict[str, Schema] = document["components"]["schemas"]
    overview = [(found.route, f"[{found.id}]({here(found.id)})", found.summary) for found in operations]
    blocks = ["## Operations", table(("route", "operation", "meaning"), overview)]
    for operation in operations:
        blocks += _operation_blocks(operation, places.get(operation.id))
    used = refs([operation.about for operation in operations])
    names = [name for name in reachable(used, schemas) if _link(name).startswith("#")]
    blocks += ["## Types", *(block for name in names for block in _type_blocks(name, schemas))]
    return page("HTTP API", _INTRODUCTION, *blocks)


def _operations(document: dict[str, Any]) -> Iterator[Operation]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield Operation(method, path, item[method])


def _operation_blocks(operation: Operation, alias: str | None) -> list[str]:
    parameters = [
        (code(found["name"]), found["in"], type_words(found.get("schema", {}), _link), found.get("description", ""))
        for found in operation.about.get("parameters", ())
        if found["name"] != "Idempotency-Key"
    ]
    body = _content_words(operation.about.get("requestBody", {}).get("content", {}))
    answers = [
        f"- `{status}` {_content_words(answer.get('content', {})) or 'without a body'}"
        for status, answer in sorted(operation.about["responses"].items())
        if status != "default"
    ]
    return [
        f"### {operation.id}",
        operation.route + (f"\n{alias}" if alias else ""),
        operation.summary,
        table(("parameter", "in", "type", "meaning"), parameters) if parameters else "",
        f"Body: {body}" if body else "",
        "Answer:",
        "\n".join(answers),
    ]


def _content_words(content: dict[str, Any]) -> str:
    return " or ".join(
        type_words(about.get("schema", {}), _link) + ("" if media == "application/json" else f" as {code(media)}")
        for media, about in content.items()
    )


@cache
def _elsewhere() -> dict[str, str]:
    """The types that the page about events describes, with their places there."""
    data = {data_type(kind): name for name, kind in reversed(EVENTS.items())}
    events = {kind.__name__: name for name, kind in EVENTS.items()}
    return {"Event": "Events", **events, **data, **{name: name for name in event_types()}}


def _link(name: str) -> str:
    place = _elsewhere().get(name)
    return here(name) if place is None else f"events.md#{anchor(place)}"


def _type_blocks(name: str, schemas: dict[str, Schema]) -> tuple[str, ...]:
    struct = wire_structs().get(name)
    about = first_line(struct) if struct else str(schemas[name].get("description", ""))
    return f"### {name}", about, fields_table(name, schemas, _link)
