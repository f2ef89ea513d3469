"""Talking to the chat endpoints over plain HTTP."""

import json
from typing import Any
from uuid import uuid4

import httpx

SSE = {"accept": "text/event-stream"}
Body = dict[str, Any]


def message(text: str, role: str = "user", **more: Any) -> Body:
    return {"id": uuid4().hex, "role": role, "parts": [{"type": "text", "text": text}], **more}


def envelope(*messages: Body, session: str | None = None, **data: Any) -> Body:
    named = {} if session is None else {"session_id": session}
    return {**named, "data": {"messages": list(messages), **data}}


def ask(root: httpx.Client, *messages: Body, session: str | None = None, **data: Any) -> Body:
    """One turn as a JSON answer."""
    answer = root.post("/messages", json=envelope(*messages, session=session, **data))
    assert answer.status_code == 200, answer.text
    body: Body = answer.json()
    return body


def content(body: Body) -> str:
    return str(body["data"]["outputs"]["content"])


def chunks(answer: httpx.Response) -> list[Body]:
    """The chunks of a stream that is complete."""
    assert answer.status_code == 200, answer.text
    *lines, last, nothing = answer.text.split("\n\n")
    assert (last, nothing) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in lines if not line.startswith(":")]


def load(root: httpx.Client, session: str) -> list[Body]:
    answer = root.post("/load-session", json={"session_id": session})
    assert answer.status_code == 200, answer.text
    messages: list[Body] = answer.json()["messages"]
    return messages


def words(messages: list[Body]) -> list[tuple[str, str]]:
    return [
        (found["role"], "".join(part["text"] for part in found["parts"] if part["type"] == "text"))
        for found in messages
    ]


def session_count(root: httpx.Client) -> int:
    return int(root.get("/api/v1/sessions", params={"per_page": 1}).json()["total"])


def assert_status(answer: httpx.Response, code: int, error: str) -> Body:
    """The answer is the error that the protocol fixes."""
    assert answer.headers["content-type"].partition(";")[0] == "application/json", answer.text
    status: Body = answer.json()["status"]
    assert (answer.status_code, status["code"], status["type"]) == (code, code, f"urn:ostler:error:{error}")
    assert status["message"]
    assert "stacktrace" not in status
    return status
