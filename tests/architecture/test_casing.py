"""REST is camelCase: every field and query parameter below /api/v1, except where another specification has the word."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ostler.wire.events import EVENTS
from tests.architecture.house import ROOT

CHAT = ("messages", "load-session", "invoke")
EVENT_PARTS = {
    "Item": "part of events; messages show it as it is in the log",
    "PermissionData": "part of events; asks show it as it was asked",
    "QuestionData": "part of events; asks show it as it was asked",
    "QueueEntry": "part of events; the queue shows it as it was queued",
}
"""What answers may hold in snake_case, and why."""
_CAMEL = re.compile(r"[a-z][a-zA-Z0-9]*")
DOCUMENT = json.loads((ROOT / "schema" / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]


def _operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        if path.startswith("/api/v1/") and path.removeprefix("/api/v1/") not in CHAT:
            yield from ((f"{method} {path}", each) for method, each in item.items() if "operationId" in each)


def _names_in(value: Any, seen: set[str]) -> Iterator[str]:
    """The names of all types that a piece of the document leads to, without going into events."""
    if isinstance(value, list):
        for each in value:
            yield from _names_in(each, seen)
    elif isinstance(value, dict):
        name = value.get("$ref", "").rpartition("/")[2]
        if name in SCHEMAS and name not in seen and name not in {*EVENT_PARTS, *_EVENTS}:
            seen.add(name)
            yield name
            yield from _names_in(SCHEMAS[name], seen)
        for each in value.values():
            yield from _names_in(each, seen)


_EVENTS = {"Event", *(kind.__name__ for kind in EVENTS.values())}


@pytest.mark.parametrize(("operation", "about"), [pytest.param(*each, id=each[0]) for each in _operations()])
def test_what_rest_says_and_takes_is_camel_case(operation: str, about: dict[str, Any]) -> None:
    asked = [each["name"] for each in about.get("parameters", ()) if each["in"] == "query"]
    shown = {name: list(SCHEMAS[name].get("properties", ())) for name in _names_in(about, set())}
    fields = [f"{name}.{field}" for name, each in shown.items() for field in each]
    assert [name for name in (*asked, *fields) if not _CAMEL.fullmatch(name.rpartition(".")[2])] == []
