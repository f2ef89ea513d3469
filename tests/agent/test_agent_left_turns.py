"""What people say and are asked in a turn, and the files that it edits, when its process is killed."""

import json
from pathlib import Path
from typing import Any

import pytest

from ostler.conformance.model import ScriptedModel
from tests.agent.killing import Killed, server_with


def test_a_message_into_a_turn_is_neither_lost_nor_told_twice(tmp_path: Path, model: ScriptedModel) -> None:
    with server_with(tmp_path / "state", model) as (_, api):
        killed = Killed(tmp_path / "state", api)
        killed.begin(2, pause=2)
        assert killed.comes_to("begun")
        assert killed.talk.send("And mind the gap.", whenBusy="steer")["disposition"] == "steered"
        killed.kill_now()
        events = killed.until_over()
    said = [item for item in _items(events) if item["role"] == "user" and "mind the gap" in json.dumps(item)]
    assert len(said) == 1
    told = json.dumps(model.requests[-1]["body"]["messages"])
    assert told.count("And mind the gap.") == 1
    assert "cut off" in told


def test_what_was_asked_before_a_kill_can_still_be_answered(tmp_path: Path, model: ScriptedModel) -> None:
    with server_with(tmp_path / "state", model) as (_, api):
        killed = Killed(tmp_path / "state", api, permissionMode="default")
        killed.begin(1)
        ask = killed.talk.until_type("permission.requested")["data"]["permission_id"]
        killed.kill_now()
        answer = killed.talk.post(f"/permissions/{ask}/reply", reply="once")
        assert answer.is_success, answer.text
        events = killed.until_over()
    assert [event["type"] for event in events].count("permission.requested") == 1
    assert killed.witness.read_text().split() == ["0"]
    assert events[-1]["data"]["outcome"] == "completed"


@pytest.mark.lane("chaos")
def test_what_was_asked_is_answered_while_neither_agent_nor_keeper_is_there(
    tmp_path: Path, model: ScriptedModel
) -> None:
    state = tmp_path / "state"
    with server_with(state, model) as (server, api):
        killed = Killed(state, api, permissionMode="default")
        killed.begin(1)
        ask = killed.talk.until_type("permission.requested")["data"]["permission_id"]
        server.process.kill()
        server.process.wait()
        killed.stop_the_machine()
    with server_with(state, model) as (_, api):
        killed.go_on_with(api)
        assert killed.talk.post(f"/permissions/{ask}/reply", reply="once").is_success
        events = killed.until_over()
    assert killed.witness.read_text().split() == ["0"]
    assert events[-1]["data"]["outcome"] == "completed"


def test_an_edit_is_not_made_twice(tmp_path: Path, model: ScriptedModel) -> None:
    with server_with(tmp_path / "state", model) as (_, api):
        killed = Killed(tmp_path / "state", api)
        edit = json.dumps({"path": "sum", "old_string": "1=", "new_string": "1+1="})
        killed.talk.send(f"SCRIPT: write sum 1=\nSCRIPT: tool edit {edit}")
        killed.kill_at("change", "pid")
        killed.kill_at("change", "keeper")
        killed.until_over()
        changed = api.get(f"/sessions/{killed.talk.id}/files/content", params={"path": "sum"})
    assert changed.text == "1+1="


def _items(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["data"]["item"] for event in events if event["type"] == "item.completed"]
