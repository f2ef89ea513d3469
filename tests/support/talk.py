"""Talking to a session over plain HTTP."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx

Event = dict[str, Any]


class Talk:
    """One session and the events seen of it so far."""

    def __init__(self, api: httpx.Client, **body: Any) -> None:
        answer = api.post("/sessions", json={"agent": "mock", **body})
        assert answer.status_code in {200, 201}, answer.text
        self.api = api
        self.created = answer.json()
        self.id: str = self.created["id"]
        self.events: list[Event] = []

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.api.post(f"/sessions/{self.id}{path}", json=body)

    def send(self, text: str, **more: Any) -> dict[str, Any]:
        answer = self.post("/messages", message=text, **more)
        assert answer.status_code == 202, answer.text
        receipt: dict[str, Any] = answer.json()
        return receipt

    def get(self, path: str = "") -> Any:
        answer = self.api.get(f"/sessions/{self.id}{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, found: Callable[[Event], bool]) -> Event:
        """Read on until an event is found; every event is seen once."""
        offset = self.events[-1]["sequence"] if self.events else 0
        for event in stream(self.api, f"/sessions/{self.id}/events/sse", offset=offset):
            self.events.append(event)
            if found(event):
                return event
        raise AssertionError(f"the stream ended; last event {self.events[-1:]}")

    def until_type(self, kind: str) -> Event:
        return self.until(lambda event: event["type"] == kind)

    def turn(self, text: str) -> list[Event]:
        """Run one prompt to its end and give the events of that turn."""
        start = len(self.events)
        receipt = self.send(text)
        self.until(lambda event: event["type"] == "turn.ended" and event["data"]["turn_id"] == receipt["turnId"])
        return self.events[start:]

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


def stream(api: httpx.Client, path: str, **params: Any) -> Iterator[Event]:
    """Events of a stream until it ends."""
    with api.stream("GET", path, params=params, timeout=60) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


def said(events: list[Event]) -> str:
    """What the agent said in these events, from finished messages."""
    return "".join(
        part["text"]
        for event in events
        if event["type"] == "item.completed" and event["data"]["item"].get("role") == "assistant"
        for part in event["data"]["item"]["content"]
        if part["type"] == "text"
    )
