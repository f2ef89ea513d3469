"""Whatever a door for messages refuses, it refuses in a form that the API's document names."""

import json
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from tests.support.http_helpers import api_document
from tests.support.serving import RunningServer

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
NO_MESSAGES = {
    "nothing": b"",
    "broken": b"{",
    "batch": json.dumps([PING]).encode(),
    "number": b"3",
    "no fields": b"{}",
    "no text": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    "deep": b'{"params":' * 10_000,
    "fraction": json.dumps({**PING, "id": 1.5, "method": 3}).encode(),
    "list": json.dumps({**HELLO, "params": [1]}).encode(),
    "no parameters": json.dumps({**HELLO, "params": {}}).encode(),
    "answer without end": json.dumps({"jsonrpc": "2.0", "id": 1}).encode(),
    "too large": b'"' + b"x" * (17 * 1024 * 1024) + b'"',
}
HEADERS = {
    "no type": {"content-type": ""},
    "other type": {"content-type": "text/plain"},
    "other answer": {"accept": "text/html"},
    "only documents": {"accept": "application/json"},
    "only streams": {"accept": "text/event-stream"},
    "other host": {"host": "evil.example"},
    "other page": {"origin": "http://evil.example"},
    "long key": {"idempotency-key": "x" * 300},
    "unknown connection": {"acp-connection-id": "nobody"},
    "other session": {"mcp-session-id": "nobody"},
    "old protocol": {"mcp-protocol-version": "1999-01-01"},
    "new protocol": {"mcp-protocol-version": "2026-07-28"},
    "new protocol, other answer": {"mcp-protocol-version": "2026-07-28", "accept": "text/html"},
    "new protocol, other type": {"mcp-protocol-version": "2026-07-28", "content-type": "text/plain"},
}
METHODS = ("GET", "PUT", "PATCH", "DELETE")


def ask(server: RunningServer, path: str, content: bytes = b"", method: str = "POST", **headers: str) -> httpx.Response:
    usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return httpx.request(method, server.url + path, content=content, headers={**usual, **headers}, timeout=60)


def assert_documented(answer: httpx.Response, path: str) -> None:
    """The answer is one of those that the document has for its status."""
    document = api_document()
    described = document["paths"][path].get(answer.request.method.lower(), {"responses": {}})["responses"]
    problem = document["components"]["responses"]["Problem"]
    told = described.get(str(answer.status_code), described.get("default", problem))
    told = problem if "$ref" in told else told
    if "content" not in told:
        assert answer.content == b""
        return
    media = answer.headers["content-type"].partition(";")[0]
    assert media in told["content"], answer.text
    for message in _messages(answer, media):
        schema = {**told["content"][media]["schema"], "components": document["components"]}
        assert [fault.message for fault in Draft202012Validator(schema).iter_errors(message)] == []


def _messages(answer: httpx.Response, media: str) -> list[Any]:
    if media == "text/event-stream":
        return [json.loads(line[5:]) for line in answer.text.splitlines() if line.startswith("data:")]
    return [answer.json()]


@pytest.mark.parametrize("path", ["/mcp", "/acp"])
@pytest.mark.parametrize("kind", NO_MESSAGES)
def test_what_is_no_message_gets_a_documented_answer(server: RunningServer, path: str, kind: str) -> None:
    assert_documented(ask(server, path, NO_MESSAGES[kind]), path)


@pytest.mark.parametrize("path", ["/mcp", "/acp"])
@pytest.mark.parametrize("kind", HEADERS)
def test_headers_that_do_not_fit_get_a_documented_answer(server: RunningServer, path: str, kind: str) -> None:
    assert_documented(ask(server, path, json.dumps(PING).encode(), **HEADERS[kind]), path)


@pytest.mark.parametrize("path", ["/mcp", "/acp"])
@pytest.mark.parametrize("method", METHODS)
def test_methods_that_do_not_fit_get_a_documented_answer(server: RunningServer, path: str, method: str) -> None:
    answer = ask(server, path, method=method)
    assert answer.status_code in {400, 405}
    assert_documented(answer, path)


@pytest.mark.parametrize("method", ["no/such", "tools/call", "ping", "notifications/initialized"])
def test_calls_get_a_documented_answer(server: RunningServer, method: str) -> None:
    message = {**PING, "method": method, "params": {"name": 3}}
    assert_documented(ask(server, "/mcp", json.dumps(message).encode()), "/mcp")
