"""Clients that show sessions ask only for the events they show."""

import json
from typing import Any

import httpx
import pytest

from tests.support.patience import wait_until

SCRIPT = "mock: think Hm hm.\nmock: say One two three.\nmock: run echo hi\nmock: usage 1 2 0.1\nmock: say Four five."


@pytest.fixture
def session(api: httpx.Client) -> str:
    session = str(api.post("/sessions", json={"agent": "mock"}).json()["id"])
    api.post(f"/sessions/{session}/messages", json={"message": SCRIPT}).raise_for_status()
    wait_until(lambda: _page(api, session)["events"][-1]["type"] == "turn.ended", what="the turn is in the log")
    return session


def _page(api: httpx.Client, session: str, **params: str | int | bool) -> dict[str, Any]:
    answer = api.get(f"/sessions/{session}/events", params=params)
    answer.raise_for_status()
    page: dict[str, Any] = answer.json()
    return page


def test_a_folded_page_has_everything_but_the_deltas_of_complete_items(api: httpx.Client, session: str) -> None:
    whole, folded = _page(api, session), _page(api, session, fold=True)
    assert folded["events"] == [event for event in whole["events"] if event["type"] != "item.delta"]
    assert len(folded["events"]) < len(whole["events"])
    assert folded["nextOffset"] == whole["nextOffset"] == whole["events"][-1]["sequence"]


def test_a_page_that_ends_within_an_item_keeps_its_deltas(api: httpx.Client, session: str) -> None:
    events = _page(api, session)["events"]
    first = next(event["sequence"] for event in events if event["type"] == "item.delta")
    page = _page(api, session, fold=True, limit=first)
    assert page["events"][-1]["type"] == "item.delta"
    assert (page["hasMore"], page["nextOffset"]) == (True, first)


def test_pages_have_only_the_types_that_were_asked_for(api: httpx.Client, session: str) -> None:
    page = _page(api, session, types="usage.updated, turn.ended")
    assert [event["type"] for event in page["events"]] == ["usage.updated", "turn.ended"]
    assert page["nextOffset"] == page["events"][-1]["sequence"]
    assert _page(api, session, types="")["events"] == []


@pytest.mark.parametrize("path", ["/sessions/{}/events", "/sessions/{}/events/sse", "/events"])
def test_a_type_that_does_not_exist_is_named(api: httpx.Client, session: str, path: str) -> None:
    answer = api.get(path.format(session), params={"types": "turn.ended,nonsense"})
    assert answer.status_code == 400
    assert "'nonsense' is not a type of event" in answer.json()["detail"]


@pytest.mark.parametrize("raw", [False, True])
def test_a_stream_has_only_the_types_that_were_asked_for(api: httpx.Client, session: str, raw: bool) -> None:
    params: dict[str, str | bool] = {"types": "turn.started,turn.ended", "include_raw": raw}
    with api.stream("GET", f"/sessions/{session}/events/sse", params=params) as stream:
        types = _types(stream, 2)
    assert types == ["turn.started", "turn.ended"]


def test_the_stream_of_the_project_can_be_narrowed_too(api: httpx.Client, session: str) -> None:
    headers = {"accept": "text/event-stream"}
    with api.stream("GET", "/events", params={"types": "turn.ended"}, headers=headers) as stream:
        api.post(f"/sessions/{session}/messages", json={"message": SCRIPT}).raise_for_status()
        assert _types(stream, 1) == ["turn.ended"]


def _types(stream: httpx.Response, count: int) -> list[str]:
    found: list[str] = []
    for line in stream.iter_lines():
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: "))["type"])
        if len(found) == count:
            break
    return found
