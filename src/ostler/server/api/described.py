"""What a handler says of itself beyond its types, as arguments of its decorator; openapi.py puts it into the document.

`answers`: by status, what Litestar cannot see. `request_headers`, `body`: what the handler reads by itself; bodies by
media type if there are several. `limits`: of a parameter that elsewhere means something else. `alias_of`: the operation
of ours that another protocol has here.
"""

from typing import Any

from ostler.server.api.accept import JSON, SSE
from ostler.server.api.problems import PROBLEM_JSON

Document = dict[str, Any]
REF = "#/components/schemas/{name}"


def reference(name: str) -> Document:
    """A schema of the document by its name."""
    return {"$ref": REF.format(name=name)}


def answer(description: str, content: dict[str, str], header: tuple[str, str] | None = None) -> Document:
    """One answer: the names of its schemas by media type, and a header with its description."""
    bodies = {media: {"schema": reference(name)} for media, name in content.items()}
    described: Document = {"description": description, "content": bodies}
    if header is not None:
        described["headers"] = {header[0]: {"description": header[1], "schema": {"type": "string"}}}
    return described


def request_header(name: str, description: str, *, required: bool = False) -> Document:
    """A header that the handler reads."""
    about = {"name": name, "in": "header", "description": description, "schema": {"type": "string"}}
    return {**about, "required": True} if required else about


LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The number of the last event the client saw on a stream; beats `offset`.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"},
}
NO_MESSAGE = answer(
    "What is wrong: with the message, as an answer of JSON-RPC; with the request around it, as a problem.",
    {JSON: "JsonRpcMessage", PROBLEM_JSON: "Problem"},
)
PAGE_OR_STREAM = answer("A page of events, or a stream of them.", {JSON: "EventPage", SSE: "Event"})
STATUS_ANSWER = {"default": answer("What went wrong, in `status`.", {JSON: "TurnResponse"})}
