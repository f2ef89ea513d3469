"""The wire types as JSON Schema, and the page about events."""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

import ostler.wire
from ostler.wire.events import EVENTS, AnyEvent, Event
from ostler.wire.sessions import Page, Session
from ostler.wire.struct import Request, Wire
from tools.reference.markdown import (
    Schema,
    code,
    field_notes,
    first_line,
    here,
    page,
    reachable,
    refs,
    table,
    type_words,
)

_ABSTRACT = (Wire, Request, Event, Page)
_INTRODUCTION = """
Everything that happens in a session is an event in its log. The events of a session are numbered 1, 2, 3 ... without
gaps (`sequence`). An absent field has no value. Later versions may add types and fields: ignore what you do not know.
The same as JSON Schema: [schema/wire.json](../../schema/wire.json).
"""


def wire_structs() -> dict[str, type[msgspec.Struct]]:
    """Every struct that a client sends or gets, by name."""
    found = [module.name for module in pkgutil.iter_modules(ostler.wire.__path__, "ostler.wire.")]
    values = [value for name in found for value in vars(importlib.import_module(name)).values()]
    kinds = {kind for kind in values if isinstance(kind, type) and issubclass(kind, Wire | Request)}
    return {kind.__name__: kind for kind in sorted(kinds, key=lambda kind: kind.__name__) if kind not in _ABSTRACT}


@cache
def wire_schema() -> dict[str, Any]:
    """One JSON Schema document: an event at its root, every other type of the API below `$defs`."""
    kinds = [AnyEvent, Page[Session], *wire_structs().values()]
    (event, *_), definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ostler wire types",
        "description": "The root describes an event; the other types of the API are below $defs.",
        **event,
        "$defs": dict(sorted(definitions.items())),
    }


def data_type(kind: type[Event]) -> str:
    """The name of the struct that an event carries."""
    return refs(wire_schema()["$defs"][kind.__name__]["properties"]["data"])[0]


def event_types() -> list[str]:
    """The names of the other types that the page about events describes."""
    schemas = wire_schema()["$defs"]
    data = [data_type(kind) for kind in EVENTS.values()]
    inside = {name for kind in data for name in refs(schemas[kind])}
    return [name for name in reachable(data, schemas) if name not in data or name in inside]


def events_page() -> str:
    """The reference of all events."""
    schemas, structs = wire_schema()["$defs"], wire_structs()
    overview = [(f"[{code(name)}]({here(name)})", first_line(kind)) for name, kind in EVENTS.items()]
    blocks = ["## Envelope", _envelope(schemas), "## Events", table(("type", "meaning"), overview)]
    for name, kind in EVENTS.items():
        data = data_type(kind)
        blocks += [f"### {name}", first_line(structs[data]), fields_table(data, schemas)]
    blocks.append("## Types used in events")
    for name in event_types():
        blocks += [f"### {name}", first_line(structs[name]), fields_table(name, schemas)]
    return page("Events", _INTRODUCTION, *blocks)


def _envelope(schemas: dict[str, Schema]) -> str:
    any_event = dict(schemas["Log"])
    any_event["properties"] = any_event["properties"] | {"type": {"type": "string"}, "data": {"type": "object"}}
    notes = {"type": "One of the types below.", "data": "What happened; its fields depend on the type."}
    return _fields(any_event, notes | _notes("Log"), here)


def fields_table(name: str, schemas: dict[str, Schema], link: Callable[[str], str] = here) -> str:
    """The fields of a struct as they stand on the wire."""
    return _fields(schemas[name], _notes(name), link)


def _fields(schema: Schema, notes: dict[str, str], link: Callable[[str], str]) -> str:
    required = schema.get("required", ())
    rows = [
        (code(name), type_words(about, link), "yes" if name in required else "", notes.get(name, ""))
        for name, about in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "required", "meaning"), rows) if rows else "No fields."


def _notes(name: str) -> dict[str, str]:
    kind = wire_structs().get(name)
    bases = [base for base in kind.__mro__ if base.__module__.startswith("ostler.")] if kind else []
    return {field: note for base in reversed(bases) for field, note in field_notes(base).items()}
