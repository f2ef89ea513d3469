"""What Litestar cannot know about our API: the one error shape, event streams, the token, and words for people."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

import msgspec
from litestar import Litestar

from ostler.server.api.accept import JSON
from ostler.server.api.described import REF, Document, reference
from ostler.server.api.openapi_extras import add_aliases, facts_of, message_schemas
from ostler.server.api.problems import PROBLEM_JSON
from ostler.server.api.streams.projected import UNIVERSAL
from ostler.server.dialects import PROJECTIONS
from ostler.server.dialects.daemon.projection import EVENT_TYPES
from ostler.server.dialects.workflow.translation import STATE_KEYS
from ostler.wire.connecting import ControlOrder
from ostler.wire.events import EVENTS, AnyEvent, SessionStatus
from ostler.wire.fleets import IngestedEvent
from ostler.wire.problems import Problem
from ostler.wire.sessions import EventPage, Page, PromptReceipt, Session
from ostler.wire.struct import Request, Wire
from ostler.wire.texts import KEY

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
    "prompts": "Prompts that people saved to use them again.",
    "templates": "Stored definitions of agents, and their revisions.",
    "schedules": "Tasks that begin by the clock.",
    "webhooks": "Addresses of others that are told what happens.",
    "triggers": "Events from outside that become tasks or prompts.",
    "events": "The log: pages, streams and log lines.",
    "asks": "What waits for a human, and the answers.",
    "tasks": "Order work on a repository: a session with a workspace, a prompt and a delivery.",
    "workspaces": "The isolated files of a session: snapshots, changes, ways back, delivery.",
    "files": "The files of a session's workspace.",
    "catalogue": "What tasks can be ordered with.",
    "access": "Who may do what: tenants, projects, API keys.",
    "runners": "The machines that run agents, and tokens for more of them.",
    "fleets": "Machines that hold copies of a session's files, and the ways to them.",
    "chat": "Chats in the words of the AI SDK.",
    "daemon": "The universal daemon API.",
    "workflows": "Sessions as workflow executions of an organisation.",
    "acp": "The Agent Client Protocol over HTTP; the same address takes WebSockets.",
    "agui": "Sessions as threads of AG-UI.",
    "mcp": "The server as an MCP server.",
}


def _several(words: Iterable[str]) -> str:
    """The pattern of words with commas between them."""
    one = "|".join(map(re.escape, words))
    return f"^({one})(,({one}))*$"


_PARAMETERS = {
    "agent": "The agent's id.",
    "key_id": "The id of an API key.",
    "tenant": "The name of a tenant.",
    "project_name": "The id or the name of a project.",
    "session": "The session's id or key.",
    "prompt_id": "The id of a waiting prompt.",
    "prompt": "The name of a saved prompt.",
    "template": "The name of a template.",
    "schedule": "The id or the name of a schedule.",
    "way": "The short name of a provider, as in the `path` that `system.providers` tells.",
    "trigger": "The id or the name of a trigger; senders outside know its id.",
    "delivery": "The id of a delivery.",
    "webhook": "The id of a webhook.",
    "call": "The id of a call.",
    "revision": "`sha256:...`, or a tag.",
    "snapshot": "The id of a snapshot of the session.",
    "comment": "The id of a comment.",
    "runner_id": "The id or the name of a runner.",
    "permission_id": "The id of the permission ask.",
    "question_id": "The id of the question ask.",
    "name": "`wire.json`, `ingest.json`, or `agents/<agent>.json`.",
    "ticket": "The token of an upload.",
    "stream": "`stdout` or `stderr`; of events: stream instead of a page.",
    "run": "Which run printed it.",
    "status": "Only asks that are open, or all.",
    "page": "Which page, from 1.",
    "perPage": "How many on a page.",
    "limit": "How many at most.",
    "tail": "How many of the newest lines.",
    "org": "The organisation's name.",
    "execution": "The execution's id.",
    "key": "`messages`, `status` or `currentTurn`.",
    "kind": "Only executions of this kind; all are of kind `agent`.",
    "offset": "Return what comes after this event.",
}
_ID = {"pattern": KEY}
_LIMITS: dict[str, Document] = {
    "session": _ID,
    "chat": _ID,
    "execution": _ID,
    "org": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"},
    "status": {"pattern": _several(get_args(SessionStatus))},
    "label": {"pattern": "^[^=,]+=[^,]*(,[^=,]+=[^,]*)*$"},
    "types": {"pattern": _several(EVENTS)},
    "format": {"enum": [UNIVERSAL, *PROJECTIONS]},
    "path": {"pattern": r"^(?!/)(?!(.*/)?\.\.(/|$))(?!.*%(2[eEfF]|5[cC]|00))[^\x00\\]*$"},
    "text": {"pattern": r"^[^\x00]*$"},
    "key": {"enum": list(STATE_KEYS)},
}
"""What the code says of a parameter in better words than a type could."""
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A name for this request; sent again with the same body within a day it gives the same answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}


def completed(document: Document, app: Litestar) -> Document:
    """Make Litestar's document say what is true and read well; changes it in place."""
    components = document["components"]
    schemas = components["schemas"] = _schemas(components.get("schemas", {}))
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    problem = {PROBLEM_JSON: {"schema": reference("Problem")}}
    components["responses"] = {"Problem": {"description": "What went wrong.", "content": problem}}
    document["security"] = [{"token": []}, {}]  # a server without a token asks for none
    facts = facts_of(app)
    for method, operation in _operations(document):
        own = facts[operation["operationId"]]
        _describe(operation, schemas, own)
        _add_shared_facts(operation, own, is_post=method == "post")
        if "alias_of" in own:
            operation["x-alias-of"] = own["alias_of"]
        operation["responses"] |= own.get("answers", {})
    add_aliases(document, app)
    return document


def _operations(document: Document) -> Iterator[tuple[str, Document]]:
    for item in document["paths"].values():
        for method, operation in item.items():
            if isinstance(operation, dict) and "operationId" in operation:
                yield method, operation


def _schemas(found: Document) -> Document:
    """The types of all bodies, from msgspec: it knows descriptions, unknown fields and discriminators."""
    structs = {kind.__name__: kind for base in (Wire, Request) for kind in _below(base)}
    kinds = [Page[Session], Problem, PromptReceipt, *(structs[name] for name in sorted(found) if name in structs)]
    (event, page, *_), schemas = msgspec.json.schema_components((AnyEvent, *kinds), ref_template=REF)
    schemas["SessionPage"] = schemas.pop(page["$ref"].rsplit("/", 1)[1]) | {"title": "SessionPage"}
    schemas["Event"] = {"title": "Event", "description": "Any event; its type says what `data` holds.", **event}
    schemas["EventPage"] = _event_page()
    schemas["UiMessageChunk"] = _ui_message_chunk()
    schemas["WorkflowMessage"] = _workflow_message()
    schemas |= _daemon_schemas(event["discriminator"]["mapping"], schemas)
    schemas |= message_schemas() | _ingested() | _orders()
    return dict(sorted(schemas.items()))


def _ingested() -> dict[str, Document]:
    (array,), schemas = msgspec.json.schema_components((list[IngestedEvent],), ref_template=REF)
    about = {"title": "IngestedEvent", "description": "One event that a leader reports.", **array["items"]}
    events = {"title": "IngestedEvents", "description": "Events that a leader reports.", "type": "array"}
    sent = {"title": "SentEvent", "description": "Whatever the sender has to say, as JSON."}
    return {
        **schemas,
        "SentEvent": sent,
        "IngestedEvent": about,
        "IngestedEvents": events | {"items": reference("IngestedEvent")},
    }


def _orders() -> dict[str, Document]:
    (orders,), schemas = msgspec.json.schema_components((ControlOrder,), ref_template=REF)
    about = {"title": "ControlOrder", "description": "What a leader sends to a follower by the relay."}
    return {**schemas, "ControlOrder": {**about, **orders}}


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for child in kind.__subclasses__():
        yield child
        yield from _below(child)


def _ui_message_chunk() -> Document:
    return {
        "title": "UiMessageChunk",
        "description": "A chunk of the AI SDK's UI Message Stream; the stream ends with `[DONE]`.",
        "type": "object",
        "properties": {"type": {"type": "string"}},
        "required": ["type"],
    }


def _workflow_message() -> Document:
    return {
        "title": "WorkflowMessage",
        "description": "The data of a `Token`, `WorkflowState` or `TaskState` message.",
        "type": "object",
        "properties": {
            "taskExecutionId": {"type": "string"},
            "data": {"description": "Of a token: text, or something that happened."},
            "status": {"type": "string"},
            "key": {"type": "string"},
            "value": {"description": "Of a state."},
        },
    }


def _daemon_schemas(events: dict[str, str], schemas: Document) -> Document:
    """Events as the daemon API tells them: fewer types of them, and deltas of plain text."""
    plain: Document = {name: {"type": "string"} for name in ("item_id", "native_item_id", "delta")}
    plain["part"] = {"type": "object", "description": "What it is that grows, where it is not the words of a message."}
    data = {"type": "object", "properties": plain, "required": ["item_id", "delta"]}
    delta = schemas["ItemDelta"] | {"title": "DaemonItemDelta"}
    own = {"item.delta": REF.format(name="DaemonItemDelta")}
    mapping = {kind: own.get(kind, reference) for kind, reference in events.items() if kind in EVENT_TYPES}
    return {
        "DaemonItemDelta": delta | {"properties": delta["properties"] | {"data": data}},
        "DaemonEvent": {
            "title": "DaemonEvent",
            "description": "An event of the daemon API; its type says what `data` holds.",
            "anyOf": [{"$ref": reference} for reference in mapping.values()],
            "discriminator": {"propertyName": "type", "mapping": mapping},
        },
        "DaemonEventPage": _event_page("DaemonEventPage", reference("DaemonEvent")),
    }


_OF_FORMAT = {"type": "object", "description": "With `format`: an event as that protocol has it."}


def _event_page(title: str = "EventPage", event: Document | None = None) -> Document:
    return {
        "title": title,
        "description": (EventPage.__doc__ or "").strip(),
        "type": "object",
        "properties": {
            "events": {"type": "array", "items": event or {"anyOf": [reference("Event"), _OF_FORMAT]}},
            "hasMore": {"type": "boolean"},
            "nextOffset": {"type": "integer", "description": "Where the next page of all sessions' events begins."},
        },
        "required": ["events", "hasMore"],
    }


def _describe(operation: Document, schemas: Document, own: Mapping[str, Any]) -> None:
    """Words for people: what the operation does, takes and answers."""
    operation["summary"] = operation.pop("description")
    operation.pop("deprecated")
    limits = _LIMITS | own.get("limits", {})
    for parameter in operation.get("parameters", ()):
        _tidy_parameter(parameter)
        parameter["schema"] |= limits.get(parameter["name"], {})
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
    if {"type": "null"} in (options := media["schema"].get("oneOf", [])):  # a body that may be left out
        media["schema"] = options[0]
        body["required"] = False


def _tidy_response(response: Document, schemas: Document, summary: str) -> None:
    response.pop("headers", None)
    media: Document = next(iter(response.get("content", {}).values()), {})
    name = media.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
    if name.startswith("Page_"):
        name, media["schema"] = "SessionPage", reference("SessionPage")
    response["description"] = schemas.get(name, {}).get("description") or (summary if media else "Done.")


def _add_shared_facts(operation: Document, own: Mapping[str, Any], *, is_post: bool) -> None:
    responses = operation["responses"]
    responses.pop("400", None)
    responses["default"] = {"$ref": "#/components/responses/Problem"}
    headers = [*own.get("request_headers", ()), *([_IDEMPOTENCY_KEY] if is_post else [])]
    if "body" in own:
        bodies = {JSON: own["body"]} if isinstance(own["body"], str) else own["body"]
        content = {media: {"schema": reference(name)} for media, name in bodies.items()}
        operation["requestBody"] = {"content": content, "required": True}
    if headers:
        operation.setdefault("parameters", []).extend(headers)
    if own["role"] == "anyone":
        operation["security"] = []
