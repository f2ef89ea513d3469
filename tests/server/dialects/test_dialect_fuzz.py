"""Whatever is sent to a dialect is answered in the words of its protocol, and what is refused leaves nothing behind."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.client import ClientConnection, connect

from ostler.server.dialects.acp.messages import INTERNAL_ERROR
from tests.support.chatting import envelope, message, session_count
from tests.support.serving import running_server

Json = Any
IMAGE = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="}
RPC = {"jsonrpc": "2.0", "id": 7}
RANDOM = settings(
    max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server that only gets strange requests, with one session that they may be about."""
    with (
        running_server(tmp_path_factory.mktemp("strange") / "state", "--max-body-bytes", "200000") as server,
        httpx.Client(base_url=server.url, timeout=60) as client,
    ):
        client.post("/api/v1/sessions", json={"agent": "mock", "key": "known"}).raise_for_status()
        yield client


def _run(**more: Json) -> Json:
    said = {"id": "m1", "role": "user", "content": [{"type": "text", "text": "mock: say Hi"}]}
    return {"threadId": "{new}", "runId": "run-1", "messages": [said], "context": [], "forwardedProps": {}, **more}


def _execution(**more: Json) -> Json:
    task = {"userPrompt": "mock: say Hi", "config": {"permissionMode": "default"}, **more}
    return {"kind": "agent", "input": task}


AGUI_IMAGE = {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}
RESUME = {"interruptId": "per_1", "status": "resolved", "payload": {"approved": True}}
CHAT = envelope(
    message("hello"),
    message("hello", role="assistant"),
    {"role": "user", "parts": [{"type": "text", "text": "mock: say Hi"}, IMAGE]},
    session="{new}",
    parameters={"agent": {"harness": "mock", "instructions": "Be brief."}},
)
DOORS: list[tuple[str, Json]] = [
    ("/messages", CHAT),
    ("/api/v1/messages", CHAT),
    ("/load-session", {"session_id": "known"}),
    ("/invoke", {"data": {"inputs": {"messages": [{"role": "user", "content": "mock: say Hi"}]}}}),
    ("/api/chat", {"id": "{new}", "messages": CHAT["data"]["messages"], "trigger": "submit-message"}),
    ("/agui", _run(context=[{"description": "where", "value": "here"}])),
    ("/agui", _run(messages=[{"id": "m1", "role": "user", "content": [AGUI_IMAGE]}])),
    ("/agui", {**_run(resume=[RESUME]), "threadId": "known"}),
    ("/v1/sessions/{new}", {"agent": "mock", "permissionMode": "default", "mcp": {"x": {"type": "local"}}}),
    ("/v1/sessions/known/messages", {"message": "mock: say Hi", "attachments": [{"path": "/nowhere"}]}),
    ("/v1/sessions/known/permissions/per_1/reply", {"reply": "once"}),
    ("/v1/sessions/known/questions/que_1/reply", {"answers": [["yes"]]}),
    ("/v1/agents/mock/install", {"reinstall": False}),
    ("/api/orgs/acme/workflow-executions", _execution(model={"modelId": "m"}, systemPrompt="Be brief.")),
    ("/api/orgs/default/workflow-executions/known/signal", {"name": "userMessage", "payload": {"text": "hi"}}),
    ("/acp", {**RPC, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}),
    ("/mcp", {**RPC, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {"limit": 1}}}),
]


def _nested(depth: int, value: Json) -> Json:
    for _ in range(depth):
        value = [value]
    return value


ODD: list[Json] = [
    None,
    True,
    0,
    -1,
    10**30,
    1.5,
    "",
    " ",
    "x" * 5000,
    "\x00",
    "../..",
    "ses_nobody",
    "data:,",
    "image/nonsense",
    [],
    {},
    [None],
    {"type": "video"},
    {"": None},
    _nested(200, None),
]
Place = tuple[str | int, ...]


def places(value: Json, here: Place = ()) -> Iterator[Place]:
    """Everywhere in a document, the whole first."""
    yield here
    found = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in found:
        yield from places(each, (*here, name))


def _changed(document: Json, place: Place, change: Callable[[Json, str | int], None]) -> Json:
    changed = [copy.deepcopy(document)]
    holder: Json = changed
    for name in (0, *place)[:-1]:
        holder = holder[name]
    change(holder, (0, *place)[-1])
    return changed[0] if changed else None


def _replaced(value: Json) -> Callable[[Json, str | int], None]:
    return lambda holder, name: holder.__setitem__(name, value)


def _extended(holder: Json, name: str | int) -> None:
    if isinstance(holder[name], dict):
        holder[name]["colour"] = "red"
    elif isinstance(holder[name], list):
        holder[name] *= 30


CHANGES = st.one_of(
    st.sampled_from(ODD).map(_replaced), st.just(lambda holder, name: holder.__delitem__(name)), st.just(_extended)
)


@st.composite
def strange(draw: st.DrawFn, document: Json) -> Json:
    """A document with one to three things changed in it."""
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        document = _changed(document, draw(st.sampled_from(list(places(document)))), draw(CHANGES))
    return document


def post(root: httpx.Client, path: str, body: bytes, **headers: str) -> httpx.Response:
    new = f"new-{uuid4().hex}"
    told = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    return root.post(path.replace("{new}", new), content=body.replace(b"{new}", new.encode()), headers=told)


def assert_in_its_words(path: str, answer: httpx.Response) -> None:
    """A refusal has the shape that its protocol fixes, and names what is wrong."""
    if answer.status_code < 400:
        return
    assert answer.status_code < 500 or (path, answer.status_code) == BATCH, answer.text
    found = answer.json()
    media = answer.headers["content-type"].partition(";")[0]
    if path in {"/messages", "/load-session", "/invoke", "/api/v1/messages"}:
        assert (media, found["status"]["code"]) == ("application/json", answer.status_code), answer.text
    elif "jsonrpc" in found:
        assert (media, found["error"]["code"] < 0) == ("application/json", True), answer.text
    else:
        assert (media, found["status"]) == ("application/problem+json", answer.status_code), answer.text


BATCH = ("/acp", 501)
"""What the protocol says about a list of messages."""


def _title(door: tuple[str, Json]) -> str:
    return door[0]


@pytest.mark.parametrize("door", DOORS, ids=_title)
def test_what_is_meant_well_is_taken(root: httpx.Client, door: tuple[str, Json]) -> None:
    path, body = door
    assert_in_its_words(path, post(root, path, json.dumps(body).encode()))


@pytest.mark.parametrize("door", DOORS, ids=_title)
@given(data=st.data())
@RANDOM
def test_a_strange_body_is_answered_and_leaves_nothing_behind(
    root: httpx.Client, door: tuple[str, Json], data: st.DataObject
) -> None:
    path, wanted = door
    body = json.dumps(data.draw(strange(wanted))).encode()
    before = session_count(root)
    answer = post(root, path, body)
    assert_in_its_words(path, answer)
    assert session_count(root) == before or answer.status_code < 400, (body, answer.text)


EDITOR: list[tuple[str, Json]] = [
    ("initialize", {"protocolVersion": 1, "clientCapabilities": {"elicitation": {"form": {}}}}),
    ("session/new", {"cwd": "/", "mcpServers": [{"name": "x", "command": "true", "args": [], "env": []}]}),
    ("session/new", {"cwd": "/", "mcpServers": [], "_meta": {"ostler": {"agent": "mock", "mode": "build"}}}),
    ("session/load", {"sessionId": "known", "cwd": "/", "mcpServers": []}),
    ("session/resume", {"sessionId": "known", "cwd": "/", "mcpServers": []}),
    ("session/list", {"cwd": "/", "cursor": "1"}),
    ("session/prompt", {"sessionId": "ses_nobody", "prompt": [{"type": "text", "text": "mock: say Hi"}]}),
    ("session/set_mode", {"sessionId": "known", "modeId": "build"}),
    ("session/set_config_option", {"sessionId": "known", "configId": "mode", "value": "build"}),
    ("session/close", {"sessionId": "ses_nobody"}),
    ("session/delete", {"sessionId": "ses_nobody"}),
]


@pytest.mark.parametrize("wanted", EDITOR, ids=lambda wanted: wanted[0])
@given(data=st.data())
@RANDOM
def test_an_editor_that_sends_strange_things_is_told(
    root: httpx.Client, wanted: tuple[str, Json], data: st.DataObject
) -> None:
    method, params = wanted
    with connect(f"{str(root.base_url).replace('http', 'ws')}/acp?agent=mock") as socket:
        hello = {"protocolVersion": 1}
        socket.send(json.dumps({**RPC, "id": 1, "method": "initialize", "params": hello}))
        before, strange_one = session_count(root), data.draw(strange({**RPC, "method": method, "params": params}))
        socket.send(json.dumps(strange_one))
        socket.send(json.dumps({**RPC, "id": "last", "method": "session/list", "params": {}}))
        told = _until_answered(socket, "last")
    errors = [each["error"] for each in told if "error" in each]
    assert [error for error in errors if error["code"] == INTERNAL_ERROR] == []
    assert session_count(root) == before or errors == [], (strange_one, errors)


def _until_answered(socket: ClientConnection, last: str) -> list[Json]:
    told: list[Json] = []
    while not told or told[-1].get("id") != last:
        told.append(json.loads(socket.recv(timeout=60)))
    return told


RAW = {
    "nothing": b"",
    "half": b'{"messages": [',
    "not utf-8": b'{"id": "\xff\xfe"}',
    "half a character": b'{"id": "\\ud800", "session_id": "\\ud800", "threadId": "\\ud800"}',
    "not a number": b'{"id": NaN}',
    "deep": b"[" * 50_000 + b"]" * 50_000,
    "deep objects": b'{"data":' * 20_000 + b"1" + b"}" * 20_000,
    "too large": b'{"messages": "' + b"x" * 300_000 + b'"}',
    "a long history": json.dumps({"messages": [{"role": "user", "parts": []}] * 3000}).encode(),
    "twice the same name": b'{"messages": [], "messages": null}',
}


@pytest.mark.parametrize("name", RAW)
@pytest.mark.parametrize("path", sorted({path for path, _ in DOORS}))
def test_bytes_that_are_no_request_are_refused(root: httpx.Client, path: str, name: str) -> None:
    before = session_count(root)
    answer = post(root, path, RAW[name])
    assert_in_its_words(path, answer)
    assert (answer.status_code >= 400) or path.endswith("/install"), answer.text
    assert session_count(root) == before


@pytest.mark.parametrize("path", sorted({path for path, _ in DOORS}))
@pytest.mark.parametrize("accept", ["text/html", "image/*;q=1", "nonsense", ""])
def test_an_answer_that_is_not_taken_is_none_or_the_documented_one(root: httpx.Client, path: str, accept: str) -> None:
    answer = post(root, path, b"{}", accept=accept)
    assert_in_its_words(path, answer)


def test_the_server_still_works(root: httpx.Client) -> None:
    answer = root.post("/messages", json=envelope(message("mock: say Hi")))
    assert (answer.status_code, answer.json()["data"]["outputs"]["content"]) == (200, "Hi")
