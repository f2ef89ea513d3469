"""What Litestar cannot know about our API: the one error shape, event streams, and the token."""

from typing import Any

import msgspec

from ostler.wire.events import AnyEvent
from ostler.wire.problems import Problem
from ostler.wire.sessions import EventPage, PromptReceipt

_REF = "#/components/schemas/{name}"
_STREAMS = {"events.stream": "200", "events.list": "200", "events.project": "200", "sessions.send": "202"}


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Add shared facts to every operation."""
    _, components = msgspec.json.schema_components((AnyEvent, Problem, PromptReceipt), ref_template=_REF)
    schemas = document["components"].setdefault("schemas", {})
    schemas |= components
    schemas["Event"] = msgspec.json.schema_components((AnyEvent,), ref_template=_REF)[0][0]
    schemas["EventPage"] = _event_page()
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}, {}]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if isinstance(operation, dict) and "operationId" in operation:
                _complete(operation, is_post=method == "post", path=path)
    return document


def _event_page() -> dict[str, Any]:
    return {
        "title": "EventPage",
        "description": (EventPage.__doc__ or "").strip(),
        "type": "object",
        "properties": {
            "events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}},
            "has_more": {"type": "boolean"},
            "next_offset": {"type": "integer"},
        },
        "required": ["events", "has_more"],
    }


def _complete(operation: dict[str, Any], *, is_post: bool, path: str) -> None:
    responses = operation["responses"]
    responses.pop("400", None)
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses["default"] = {"description": "What went wrong.", "content": problem}
    if is_post:
        header = {"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"}}
        operation.setdefault("parameters", []).append(header)
    if (name := operation["operationId"]) in _STREAMS:
        _describe_stream(name, responses)
    if name == "sessions.create":
        created = responses["201"]
        responses["200"] = {**created, "description": "The key names a session that exists already."}


def _describe_stream(name: str, responses: dict[str, Any]) -> None:
    event = {"$ref": "#/components/schemas/Event"}
    body = {"$ref": f"#/components/schemas/{'PromptReceipt' if name == 'sessions.send' else 'EventPage'}"}
    content: dict[str, Any] = {"text/event-stream": {"schema": event}}
    if name != "events.stream":
        content["application/json"] = {"schema": body}
    responses[_STREAMS[name]] = {"description": "Events.", "content": content}
    if name == "sessions.send":
        responses["202"]["content"].pop("text/event-stream")
        responses["200"] = {"description": "The turn's events.", "content": {"text/event-stream": {"schema": event}}}
