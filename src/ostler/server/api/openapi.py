"""What Litestar cannot know about our API: the one error shape, event streams, the token, and words for people."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ostler.wire.events import AnyEvent
from ostler.wire.problems import Problem
from ostler.wire.sessions import EventPage, Page, PromptReceipt, Session
from ostler.wire.struct import Request, Wire

Document = dict[str, Any]
TITLE = "Ostler"
DESCRIPTION = (
    "One server for every coding agent. A session is a conversation with one agent; everything that happens in it is "
    "an event in one log, numbered 1, 2, 3 ... without gaps."
)
TAGS = {
    "system": "The server itself: health, version, metrics, schemas.",
    "agents": "The agents this server can run.",
    "sessions": "Create, find, change and end sessions.",
    "conversation": "Prompts, transcript, queue and turns of a session.",
    "events": "The log: pages, streams and log lines.",
    "asks": "What waits for a human, and the answers.",
}
_REF = "#/components/schemas/{name}"
_PARAMETERS = {
    "agent": "The agent's id.",
    "session": "The session's id or key.",
    "prompt_id": "The id of a waiting prompt.",
    "permission_id": "The id of the permission ask.",
    "question_id": "The id of the question ask.",
    "name": "`wire.json`, or `agents/<agent>.json`.",
    "status": "Only asks that are open, or all.",
    "page": "Which page, from 1.",
    "per_page": "How many on a page.",
    "limit": "How many at most.",
    "tail": "How many of the newest lines.",
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A name for this request; sent again with the same body within a day it gives the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The number of the last event the client saw on a stream; beats `offset`.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"},
}
_OPEN = frozenset({"system.health", "system.ready"})


def completed(document: Document) -> Document:
    """Make Litestar's document say what is true and read well; changes it in place."""
    components = document["components"]
    schemas = components["schemas"] = _schemas(components.get("schemas", {}))
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    problem = {"application/problem+json": {"schema": _ref("Problem")}}
    components["responses"] = {"Problem": {"description": "What went wrong.", "content": problem}}
    document["security"] = [{"token": []}, {}]  # a server without a token asks for none
    for method, operation in _operations(document):
        _describe(operation, schemas)
        _add_shared_facts(operation, is_post=method == "post")
        if addition := _ADDITIONS.get(operation["operationId"]):
            operation["responses"] |= addition
    return document


def _ref(name: str) -> Document:
    return {"$ref": _REF.format(name=name)}


def _operations(document: Document) -> Iterator[tuple[str, Document]]:
    for item in document["paths"].values():
        for method, operation in item.items():
            if isinstance(operation, dict) and "operationId" in operation:
                yield method, operation


def _schemas(found: Document) -> Document:
    """The types of all bodies, from msgspec: it knows descriptions, unknown fields and discriminators."""
    structs = {kind.__name__: kind for base in (Wire, Request) for kind in _below(base)}
    kinds = [Page[Session], Problem, PromptReceipt, *(structs[name] for name in sorted(found) if name in structs)]
    (event, page, *_), schemas = msgspec.json.schema_components((AnyEvent, *kinds), ref_template=_REF)
    schemas["SessionPage"] = schemas.pop(page["$ref"].rsplit("/", 1)[1]) | {"title": "SessionPage"}
    schemas["Event"] = {"title": "Event", "description": "Any event; its type says what `data` holds.", **event}
    schemas["EventPage"] = _event_page()
    return dict(sorted(schemas.items()))


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def _event_page() -> Document:
    return {
        "title": "EventPage",
        "description": (EventPage.__doc__ or "").strip(),
        "type": "object",
        "properties": {
            "events": {"type": "array", "items": _ref("Event")},
            "has_more": {"type": "boolean"},
            "next_offset": {"type": "integer", "description": "Where the next page of all sessions' events begins."},
        },
        "required": ["events", "has_more"],
    }


def _describe(operation: Document, schemas: Document) -> None:
    """Words for people: what the operation does, takes and answers."""
    operation["summary"] = operation.pop("description")
    operation.pop("deprecated")
    for parameter in operation.get("parameters", ()):
        _tidy_parameter(parameter)
    if body := operation.get("requestBody"):
        _tidy_body(body)
    for response in operation["responses"].values():
        _tidy_response(response, schemas, operation["summary"])


def _tidy_parameter(parameter: Document) -> None:
    for flag in ("deprecated", "allowEmptyValue", "allowReserved"):
        parameter.pop(flag, None)
    parameter.setdefault("description", _PARAMETERS.get(parameter["name"], ""))
    schema = parameter["schema"]
    schema.pop("description", None)
    if (first := schema.pop("oneOf", [None])[0]) is not None:  # a query cannot hold null
        schema |= first
    if schema.get("type") == "integer":
        schema |= {name: int(schema[name]) for name in ("minimum", "maximum") if name in schema}
        schema.setdefault("minimum", 0)  # Litestar loses a bound of zero


def _tidy_body(body: Document) -> None:
    media = body["content"]["application/json"]
    if options := media["schema"].get("oneOf"):  # a body that may be left out
        media["schema"] = options[0]
        body["required"] = False


def _tidy_response(response: Document, schemas: Document, summary: str) -> None:
    response.pop("headers", None)
    media: Document = next(iter(response.get("content", {}).values()), {})
    name = media.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
    if name.startswith("Page_"):
        name, media["schema"] = "SessionPage", _ref("SessionPage")
    response["description"] = schemas.get(name, {}).get("description") or (summary if media else "Done.")


def _add_shared_facts(operation: Document, *, is_post: bool) -> None:
    responses = operation["responses"]
    responses.pop("400", None)
    responses["default"] = {"$ref": "#/components/responses/Problem"}
    headers = [_IDEMPOTENCY_KEY] if is_post else []
    if operation["operationId"] in {"events.list", "events.stream", "events.project"}:
        headers = [_LAST_EVENT_ID]
    if headers:
        operation.setdefault("parameters", []).extend(headers)
    if operation["operationId"] in _OPEN:
        operation["security"] = []


def _answer(description: str, content: dict[str, str], header: tuple[str, str] | None = None) -> Document:
    bodies = {media: {"schema": _ref(name)} for media, name in content.items()}
    answer: Document = {"description": description, "content": bodies}
    if header is not None:
        answer["headers"] = {header[0]: {"description": header[1], "schema": {"type": "string"}}}
    return answer


_JSON, _SSE = "application/json", "text/event-stream"
_PAGE_OR_STREAM = _answer("A page of events, or a stream of them.", {_JSON: "EventPage", _SSE: "Event"})
_ADDITIONS = {
    "system.ready": {"503": _answer("The server cannot take work now.", {_JSON: "Ready"})},
    "sessions.create": {
        "200": _answer("The key names a session that exists already.", {_JSON: "Session"}),
        "201": _answer("The new session.", {_JSON: "Session"}, ("Location", "Where the session is.")),
    },
    "sessions.send": {
        "200": _answer(
            "The events of the turn, until it ends.", {_SSE: "Event"}, ("Ostler-Receipt", "A PromptReceipt as JSON.")
        ),
        "202": _answer("What became of the prompt.", {_JSON: "PromptReceipt"}),
    },
    "events.list": {"200": _PAGE_OR_STREAM},
    "events.project": {"200": _PAGE_OR_STREAM},
    "events.stream": {"200": _answer("A stream of events that stays open.", {_SSE: "Event"})},
}
"""Answers that Litestar cannot see in a handler's types."""
