"""What an agent says without end is cut with a mark; the session goes on, and nothing is lost in silence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.serving import running_server
from tests.support.talk import Talk

_MOST = 20_000
_LIMIT = ("--max-item-length", str(_MOST))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    state_dir: Path = tmp_path_factory.mktemp("cut") / "state"
    with running_server(state_dir, *_LIMIT) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        yield api


def _long(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The last event of its kind that is about an item with a mark."""
    return [event for event in events if event["type"] == kind and "cut" in str(event["data"])][-1]


def test_a_long_message_keeps_its_beginning_and_its_end(api: httpx.Client) -> None:
    events = Talk(api).turn("mock: stream 9000 words 100000/s")
    deltas = "".join(
        event["data"]["delta"]["text"]
        for event in events
        if event["type"] == "item.delta" and event["data"]["delta"]["type"] == "text"
    )
    assert _MOST < len(deltas) < _MOST + 200
    assert deltas.startswith("w1 w2")
    assert "cut here: more than 20000 characters; see max_item_length" in deltas
    *parts, mark = _long(events, "item.completed")["data"]["item"]["content"]
    (text,) = [part["text"] for part in parts if part["type"] == "text"]
    assert text.startswith("w1 w2")
    assert text.rstrip().endswith("w9000")
    assert len(text) < _MOST + 200
    assert mark["label"] == "cut"
    assert "characters are not kept; an item has at most 20000 (max_item_length)" in mark["detail"]
    assert events[-1]["data"]["outcome"] == "completed"


def test_the_output_of_a_command_is_cut_too_and_the_session_goes_on(api: httpx.Client) -> None:
    talk = Talk(api)
    events = talk.turn("mock: run seq 1 100000")
    assert len(str([event["data"] for event in events])) < 6 * _MOST
    mark = _long(events, "item.completed")["data"]["item"]["content"][-1]
    assert mark["label"] == "cut"
    assert int(mark["detail"].split()[1]) > _MOST
    assert talk.turn("mock: say hello")[-1]["data"]["outcome"] == "completed"
