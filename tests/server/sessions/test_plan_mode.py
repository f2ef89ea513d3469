"""In permission mode plan an agent may only read, whoever says yes; an approved plan ends that."""

import httpx
import pytest

from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.policy import PLANNING, vet
from ostler.wire.events import PermissionData
from ostler.wire.running import Draft, PermissionAnswer
from tests.support.talk import Event, Talk


def resolved(events: list[Event]) -> list[tuple[str, str | None, str]]:
    return [
        (event["data"]["status"], event["data"].get("message"), event["data"]["metadata"]["resolved_by"])
        for event in events
        if event["type"] == "permission.resolved"
    ]


def test_whatever_is_not_reading_is_refused_and_the_agent_hears_why(api: httpx.Client) -> None:
    talk = Talk(api, permission_mode="plan")
    events = talk.turn("mock: permission delete everything\nmock: say over")
    assert resolved(events) == [("reject", PLANNING, "policy")]
    assert talk.get()["activity"] == "idle"


def test_a_rule_of_another_permission_mode_does_not_let_a_plan_write(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: permission delete x\nmock: say over")
    asked = talk.until_type("permission.requested")["data"]["permission_id"]
    talk.post(f"/permissions/{asked}/reply", reply="always")
    talk.until_type("turn.ended")
    key = talk.created["key"]
    chosen = {"harness": "mock", "permissions": "plan"}
    said = {"role": "user", "parts": [{"type": "text", "text": "mock: permission delete x\nmock: say over"}]}
    root = str(api.base_url).removesuffix("/api/v1/")
    body = {"session_id": key, "data": {"messages": [said], "parameters": {"agent": chosen}}}
    assert httpx.post(f"{root}/messages", json=body, timeout=60).status_code == 200
    talk.until_type("turn.ended")
    assert resolved(talk.events)[-1] == ("reject", PLANNING, "policy")


@pytest.mark.parametrize(
    ("tool", "is_asked"),
    [
        ("Read", True),
        ("WebFetch", True),
        ("read_file", True),
        ("grep_search", True),
        ("Write", False),
        ("Bash", False),
        ("exec_command", False),
        ("apply_patch", False),
        ("search_replace", False),
        ("mcp__notes__read_all", False),
        ("frobnicate", False),
        (None, False),
    ],
)
def test_reading_is_still_for_people_to_decide(tool: str | None, is_asked: bool) -> None:
    asked = Draft("permission.requested", PermissionData(permission_id="1", action="x", status="requested", tool=tool))
    written, answers = vet([asked], SessionState(always_allowed=() if is_asked else (tool or "x",)), "plan")
    refused = [PermissionAnswer(ask_id="1", allow=False, message=PLANNING)]
    assert (len(written), answers) == ((1, []) if is_asked else (2, refused))


def test_bypass_leaves_no_rule_behind() -> None:
    asked = PermissionData(permission_id="1", action="x", status="requested", tool="Bash")
    written, answers = vet([Draft("permission.requested", asked)], SessionState(), "bypass")
    decided = written[1].data
    assert isinstance(decided, PermissionData)
    assert (decided.status, answers) == ("accept", [PermissionAnswer(ask_id="1", allow=True)])
