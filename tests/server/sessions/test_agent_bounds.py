"""Whatever an agent can say is bounded: names, titles, plans, asks, changed files; and it is told what was cut."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.serving import running_server
from tests.support.talk import Talk

LOUD = Path(__file__).parents[2] / "support" / "programs" / "loud_agent.py"
MOST = 20_000
TEXT = f"@{MOST - 200}"
_CALL = {"sessionUpdate": "tool_call", "toolCallId": "t1", "kind": "other", "status": "completed", "rawInput": {"a": 1}}
_LINES = {"@times": 3000, "value": "a line of text"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    env = {"OSTLER_AGENTS": json.dumps({"loud": {"command": [sys.executable, str(LOUD)]}})}
    state_dir = tmp_path_factory.mktemp("bounds") / "state"
    with (
        running_server(state_dir, "--max-item-length", str(MOST), env=env) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield api


def say(api: httpx.Client, *updates: dict[str, Any]) -> tuple[Talk, list[dict[str, Any]]]:
    talk = Talk(api, agent="loud")
    events = talk.turn(json.dumps(updates))
    assert events[-1]["data"]["outcome"] == "completed"
    return talk, events


def the(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(event["data"] for event in reversed(events) if event["type"] == kind)
    return found


def test_a_title_is_short(api: httpx.Client) -> None:
    talk, events = say(api, {"sessionUpdate": "session_info_update", "title": TEXT})
    title = the(events, "session.info")["title"]
    assert len(title) < 1100
    assert f"[{MOST - 1200} characters cut, sha256 " in title
    assert talk.get()["title"] == title
    assert the(events, "notice")["code"] == "cut"


def test_a_plan_has_so_many_entries_and_no_more(api: httpx.Client) -> None:
    entry = {"content": "step", "status": "pending", "priority": "low"}
    _, events = say(api, {"sessionUpdate": "plan", "entries": {"@times": 3000, "value": entry}})
    assert len(the(events, "plan.updated")["entries"]) == 1000
    assert the(events, "notice")["code"] == "cut"


def test_names_and_ids_of_a_call_are_short_and_the_same_in_all_its_events(api: httpx.Client) -> None:
    _, events = say(api, {**_CALL, "toolCallId": TEXT, "title": TEXT, "rawOutput": "fine"})
    items = [event["data"]["item"] for event in events if event["type"].startswith("item.")][2:]
    call = [item for item in items if item["kind"] == "tool_call"]
    assert [item["item_id"] for item in call] == [call[0]["item_id"]] * 2
    assert {item["parent_id"] for item in items if item["kind"] == "tool_result"} == {call[0]["item_id"]}
    assert max(len(json.dumps(item)) for item in items) < 6000


def test_the_diff_of_a_changed_file_is_as_long_as_a_text_may_be(api: httpx.Client) -> None:
    pieces = [{"type": "diff", "path": "/a", "oldText": TEXT, "newText": TEXT + "0"}]
    _, events = say(api, {**_CALL, "kind": "edit", "content": pieces})
    diff = the(events, "file.changed")["diff"]
    assert MOST / 2 < len(diff) < MOST + 100
    assert "characters cut, sha256" in diff
    assert the(events, "notice")["code"] == "cut"


def test_json_of_many_small_texts_is_as_long_as_a_text_may_be(api: httpx.Client) -> None:
    _, events = say(api, {**_CALL, "title": "x", "rawInput": {"lines": _LINES}, "rawOutput": {"lines": _LINES}})
    for kind in ("tool_call", "tool_result"):
        done = [event["data"]["item"] for event in events if event["type"] == "item.completed"]
        *parts, mark = next(item["content"] for item in done if item["kind"] == kind)
        assert MOST / 2 < len(json.dumps(parts)) < MOST * 1.3
        assert mark["label"] == "cut"
