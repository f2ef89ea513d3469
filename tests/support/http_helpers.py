"""The route table as data, and what every answer of the API must look like."""

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from ostler.base.errors import ERRORS

_ROOT = Path(__file__).resolve().parents[2]
CODES = {error.code: error.status for error in ERRORS}
VALID_BODIES: dict[str, dict[str, Any]] = {
    "AddComment": {"path": "a.txt", "text": "Why?"},
    "ChangeComment": {"text": "Why?"},
    "SendComments": {},
    "CreateSession": {"agent": "mock"},
    "UpdateSession": {"title": "Tea"},
    "RestartSession": {},
    "UndoTurn": {"turn": 1},
    "ApplyChanges": {"paths": ["a.txt"]},
    "InstallAgent": {},
    "StartLogin": {"method": "machine"},
    "AnswerLogin": {"code": "x"},
    "ImportConversation": {"agent": "mock", "conversationId": "nobody"},
    "NewTenant": {"name": "acme"},
    "NewProject": {"name": "web"},
    "NewApiKey": {"name": "ci", "role": "viewer"},
    "SavePrompt": {"name": "tea", "text": "Make tea."},
    "EditPrompt": {"text": "Make tea."},
    "PushTemplate": {"files": [{"path": "template.toml", "text": 'name = "tea"'}]},
    "TagTemplate": {"tag": "stable", "revision": "latest"},
    "NewSchedule": {"name": "tea", "template": "tea", "cron": "@daily"},
    "EditSchedule": {"paused": True},
    "NewTrigger": {"name": "tea", "template": "tea", "signature": {"scheme": "token"}},
    "EditTrigger": {"paused": True},
    "TryDelivery": {"event": {"tea": 1}},
    "PreviewTrigger": {"event": {"tea": 1}},
    "NewWebhook": {"url": "https://example.com/hook", "events": ["turn.ended"]},
    "EditWebhook": {"paused": True},
    "DrainRunner": {},
    "AskKeys": {"providers": ["none"]},
    "Handshake": {"sessionId": "nobody", "hosts": ["lin-01"], "timeoutSec": 0},
    "HandshakeAck": {"sessionId": "nobody", "host": "lin-01"},
    "ControlOrder": {"type": "run", "run": "one", "command": ["true"]},
    "RunStatus": {"state": "started"},
    "SendMessage": {"message": "mock: say hello"},
    "ReplyPermission": {"reply": "once"},
    "ReplyQuestion": {"answers": [["yes"]]},
    "RejectQuestion": {},
    "CreateTask": {"prompt": "mock: say hello", "agent": {"type": "mock"}},
    "RewindSession": {"turn": 0},
    "ForkSession": {},
    "DeliverSession": {"mode": "patch"},
    "HandoffSession": {"agent": "claude-code"},
    "TaskDelivery": {"mode": "patch"},
    "OpenIde": {"ide": "vscode"},
    "NewRunnerToken": {},
    "RegisterRunner": {"name": "builder", "keyHash": "0" * 64},
}
DIALECTS = frozenset({"chat", "daemon", "workflows", "acp", "agui", "mcp"})
"""Tags of operations whose protocol fixes other answers; they have tests of their own."""
_NAMES = re.compile(r"{(\w+)}")


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One row of the route table."""

    method: str
    path: str
    about: dict[str, Any]

    def __str__(self) -> str:
        return str(self.about["operationId"])

    @property
    def body_type(self) -> str | None:
        """The name of the body's struct."""
        content = self.about.get("requestBody", {}).get("content", {})
        return str(content["application/json"]["schema"]["$ref"]).rsplit("/", 1)[1] if content else None

    @property
    def body(self) -> dict[str, Any]:
        """A body that is fine, if the operation takes one."""
        return VALID_BODIES.get(self.body_type, {}) if self.body_type else {}

    @property
    def body_schema(self) -> dict[str, Any]:
        """The JSON Schema of the body."""
        return dict(api_document()["components"]["schemas"][self.body_type])

    @property
    def path_names(self) -> list[str]:
        """The names in the path that must be filled."""
        return _NAMES.findall(self.path)

    def query(self) -> dict[str, dict[str, Any]]:
        """The schema of each query parameter."""
        return {found["name"]: found["schema"] for found in self.about.get("parameters", ()) if found["in"] == "query"}

    def needed_query(self) -> dict[str, str]:
        """A value for each query parameter that cannot be left out."""
        return {found["name"]: "x" for found in self.about.get("parameters", ()) if _is_needed(found)}

    def url(self, **names: str) -> str:
        """The path below /api/v1 with every name filled in; a name not given is one that nothing has."""
        return _NAMES.sub(lambda found: names.get(found[1], "nobody"), self.path).removeprefix("/api/v1")


def _is_needed(parameter: dict[str, Any]) -> bool:
    return parameter["in"] == "query" and bool(parameter.get("required"))


@cache
def api_document() -> dict[str, Any]:
    """The OpenAPI document, as it is committed; that this is the one that is served has tests of its own."""
    found: dict[str, Any] = json.loads((_ROOT / "schema" / "openapi.json").read_text())
    return found


def operations() -> list[Operation]:
    """The route table of our own API, without second places of the same."""
    paths = api_document()["paths"]
    return [
        Operation(method=method.upper(), path=path, about=about)
        for path, item in paths.items()
        for method, about in item.items()
        if not DIALECTS.intersection(about["tags"]) and "x-alias-of" not in about
    ]


def assert_problem(response: httpx.Response, code: str, *, field: str | None = None) -> dict[str, Any]:
    """The answer is a complete problem document with this code that, for bad input, names the field."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    problem: dict[str, Any] = response.json()
    assert (problem["code"], response.status_code) == (code, CODES[code]), problem
    assert problem["status"] == response.status_code
    assert problem["type"] == f"urn:ostler:error:{code}"
    assert problem["instance"] == response.request.url.path
    assert problem["title"]
    assert problem["detail"]
    assert "Traceback" not in response.text
    if field is not None:
        assert any(re.split(r"[.\[]", name)[0] == field for name in problem.get("errors", {})), problem
    return problem


def wait_idle(api: httpx.Client, session: str, *, turns: int, seconds: float = 60.0) -> dict[str, Any]:
    """Wait until this many turns have begun and none is under way; gives the session."""
    deadline = time.monotonic() + seconds
    while True:
        found: dict[str, Any] = api.get(f"/sessions/{session}").json()
        if found["turnCount"] >= turns and found["activity"] == "idle" and not found["queueLength"]:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def event_types(api: httpx.Client, session: str, params: Mapping[str, str] | None = None) -> list[str]:
    """The types of a session's events."""
    return [event["type"] for event in api.get(f"/sessions/{session}/events", params=params).json()["events"]]


def metrics(api: httpx.Client) -> dict[str, float]:
    """The server's numbers by name, those with labels as `name{label}`."""
    families = text_string_to_metric_families(api.get("/metrics").text)
    samples = [each for family in families for each in family.samples]
    return {each.name + "".join(f"{{{label}}}" for label in each.labels.values()): each.value for each in samples}
