"""What Litestar cannot know about our API: the one error shape, event streams, the token, and words for people."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import msgspec

from ostler.server.api.openapi_doors import BODIES, HEADERS, Alias, add_aliases, message_schemas
from ostler.server.api.problems import PROBLEM_JSON
from ostler.server.api.streams.projected import UNIVERSAL
from ostler.server.dialects import PROJECTIONS
from ostler.server.dialects.daemon.projection import EVENT_TYPES
from ostler.server.dialects.workflow.translation import STATE_KEYS
from ostler.wire.events import EVENTS, AnyEvent, SessionStatus
from ostler.wire.problems import Problem
from ostler.wire.sessions import EventPage, Page, PromptReceipt, Session
from ostler.wire.struct import Request, Wire
from ostler.wire.texts import KEY

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
    "tasks": "Order work on a repository: a session with a workspace, a prompt and a delivery.",
    "workspaces": "The isolated files of a session: snapshots, changes, ways back, delivery.",
    "files": "The files of a session's workspace.",
    "catalogue": "What tasks can be ordered with.",
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


_REF = "#/components/schemas/{name}"
_PARAMETERS = {
    "agent": "The agent's id.",
    "session": "The session's id or key.",
    "prompt_id": "The id of a waiting prompt.",
    "snapshot": "The id of a snapshot of the session.",
    "permission_id": "The id of the permission ask.",
    "question_id": "The id of the question ask.",
    "name": "`wire.json`, or `agents/<agent>.json`.",
    "ticket": "The token of an upload.",
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
_LIMITS_OF: dict[str, dict[str, Document]] = {
    "asks.list": {"status": {}},
    "events.project": {"format": {"enum": [UNIVERSAL, "flat"]}},
}
"""The same where an operation has another parameter of that name."""
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


def completed(document: Document, aliases: list[Alias]) -> Document:
    """Make Litestar's document say what is true and read well; changes it in place."""
    components = document["components"]
    schemas = components["schemas"] = _schemas(components.get("schemas", {}))
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    problem = {PROBLEM_JSON: {"schema": _ref("Problem")}}
    components["responses"] = {"Problem": {"description": "What went wrong.", "content": problem}}
    document["security"] = [{"token": []}, {}]  # a server without a token asks for none
    for method, operation in _operations(document):
        _describe(operation, schemas)
        _add_shared_facts(operation, is_post=method == "post")
        if (alias := _ALIASES.get(operation["operationId"])) is not None:
            operation["x-alias-of"] = alias
        if addition := _ADDITIONS.get(operation["operationId"]):
            operation["responses"] |= addition
    add_aliases(document, aliases)
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
    schemas["UiMessageChunk"] = _ui_message_chunk()
    schemas["WorkflowMessage"] = _workflow_message()
    schemas |= _daemon_schemas(event["discriminator"]["mapping"], schemas)
    schemas |= message_schemas()
    return dict(sorted(schemas.items()))


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
    """Events as the daemon API tells them: fewer of them, and deltas of plain text."""
    plain = {"item_id": {"type": "string"}, "native_item_id": {"type": "string"}, "delta": {"type": "string"}}
    data = {"type": "object", "properties": plain, "required": ["item_id", "delta"]}
    delta = schemas["ItemDelta"] | {"title": "DaemonItemDelta"}
    own = {"item.delta": _REF.format(name="DaemonItemDelta")}
    mapping = {kind: own.get(kind, reference) for kind, reference in events.items() if kind in EVENT_TYPES}
    return {
        "DaemonItemDelta": delta | {"properties": delta["properties"] | {"data": data}},
        "DaemonEvent": {
            "title": "DaemonEvent",
            "description": "An event of the daemon API; its type says what `data` holds.",
            "anyOf": [{"$ref": reference} for reference in mapping.values()],
            "discriminator": {"propertyName": "type", "mapping": mapping},
        },
        "DaemonEventPage": _event_page("DaemonEventPage", "DaemonEvent"),
    }


def _event_page(title: str = "EventPage", event: str = "Event") -> Document:
    return {
        "title": title,
        "description": (EventPage.__doc__ or "").strip(),
        "type": "object",
        "properties": {
            "events": {"type": "array", "items": _ref(event)},
            "hasMore": {"type": "boolean"},
            "nextOffset": {"type": "integer", "description": "Where the next page of all sessions' events begins."},
        },
        "required": ["events", "hasMore"],
    }


def _describe(operation: Document, schemas: Document) -> None:
    """Words for people: what the operation does, takes and answers."""
    operation["summary"] = operation.pop("description")
    operation.pop("deprecated")
    own = _LIMITS_OF.get(operation["operationId"], {})
    for parameter in operation.get("parameters", ()):
        _tidy_parameter(parameter)
        parameter["schema"] |= (_LIMITS | own).get(parameter["name"], {})
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
    name = operation["operationId"]
    headers = [*HEADERS.get(name, ()), *([_IDEMPOTENCY_KEY] if is_post else [])]
    if (body := BODIES.get(name)) is not None:
        operation["requestBody"] = {"content": {_JSON: {"schema": _ref(body)}}, "required": True}
    if name in {"events.list", "events.stream", "events.project"}:
        headers = [_LAST_EVENT_ID]
    if headers:
        operation.setdefault("parameters", []).extend(headers)
    if name in _OPEN:
        operation["security"] = []


def _answer(description: str, content: dict[str, str], header: tuple[str, str] | None = None) -> Document:
    bodies = {media: {"schema": _ref(name)} for media, name in content.items()}
    answer: Document = {"description": description, "content": bodies}
    if header is not None:
        answer["headers"] = {header[0]: {"description": header[1], "schema": {"type": "string"}}}
    return answer


_JSON, _SSE = "application/json", "text/event-stream"
_NO_MESSAGE = _answer(
    "What is wrong: with the message, as an answer of JSON-RPC; with the request around it, as a problem.",
    {_JSON: "JsonRpcMessage", PROBLEM_JSON: "Problem"},
)
_PAGE_OR_STREAM = _answer("A page of events, or a stream of them.", {_JSON: "EventPage", _SSE: "Event"})
_STATUS_ANSWER = {"default": _answer("What went wrong, in `status`.", {_JSON: "TurnResponse"})}
_ALIASES = {
    "daemon.health": "system.health",
    "daemon.agents": "agents.list",
    "daemon.install": "agents.install",
    "daemon.modes": "agents.modes",
    "daemon.models": "agents.models",
    "daemon.sessions": "sessions.list",
    "daemon.create": "sessions.create",
    "daemon.send": "sessions.send",
    "daemon.send-and-stream": "sessions.send",
    "daemon.events": "events.list",
    "daemon.stream": "events.stream",
    "daemon.terminate": "sessions.cancel",
    "daemon.permission": "asks.permission",
    "daemon.answer": "asks.answer",
    "daemon.reject": "asks.reject",
    "workflows.create": "sessions.create",
    "workflows.list": "sessions.list",
    "workflows.get": "sessions.get",
    "workflows.stream": "events.stream",
    "workflows.signal": "sessions.send",
    "workflows.cancel": "sessions.cancel",
    "workflows.state": "sessions.messages",
}
"""Operations that other protocols have for one of ours."""
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
    "chat.send": {
        "200": _answer("The turn, as one answer or as it happens.", {_JSON: "TurnResponse", _SSE: "UiMessageChunk"}),
        **_STATUS_ANSWER,
    },
    "chat.load": _STATUS_ANSWER,
    "chat.invoke": _STATUS_ANSWER,
    "chat.stream": {"200": _answer("The turn as it happens.", {_SSE: "UiMessageChunk"})},
    "chat.resume": {
        "200": _answer("The turn from its beginning.", {_SSE: "UiMessageChunk"}),
        "204": {"description": "No turn is under way."},
    },
    "daemon.events": {"200": _answer("A page of events.", {_JSON: "DaemonEventPage"})},
    "daemon.stream": {"200": _answer("A stream of events that stays open.", {_SSE: "DaemonEvent"})},
    "daemon.send-and-stream": {"200": _answer("The events of the turn, until it ends.", {_SSE: "DaemonEvent"})},
    "workflows.stream": {"200": _answer("Tokens, state and task changes.", {_SSE: "WorkflowMessage"})},
    "acp.send": {
        "200": _answer(
            "The answer to `initialize`.",
            {_JSON: "JsonRpcMessage"},
            ("Acp-Connection-Id", "Names the client from now on."),
        ),
        "202": {"description": "Taken; what there is to say comes on a stream."},
        "400": _NO_MESSAGE,
    },
    "acp.stream": {"200": _answer("What the server has to say, as it happens.", {_SSE: "JsonRpcMessage"})},
    "acp.leave": {"202": {"description": "The client is forgotten."}},
    "agui.run": {"200": _answer("The run as it happens.", {_SSE: "AguiEvent"})},
    "mcp.send": {
        "200": _answer("The answer.", {_JSON: "JsonRpcMessage", _SSE: "JsonRpcMessage"}),
        "202": {"description": "Taken; a notification has no answer."},
        "default": _NO_MESSAGE,
    },
    "events.list": {"200": _PAGE_OR_STREAM},
    "events.project": {"200": _PAGE_OR_STREAM},
    "events.stream": {"200": _answer("A stream of events that stays open.", {_SSE: "Event"})},
}
"""Answers that Litestar cannot see in a handler's types."""
