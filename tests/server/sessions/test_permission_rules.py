"""Rules decide what an agent asks about a tool, in whatever order they stand."""

from typing import Any

import httpx
import pytest

from ostler.server.sessions.log.state import SessionState
from ostler.server.sessions.policy import vet
from ostler.wire.events import PermissionData, PermissionMode, PermissionRule, RulePermission
from ostler.wire.running import Draft
from tests.support.http_helpers import assert_problem
from tests.support.talk import Talk

ALLOW: dict[str, Any] = {"pattern": "delete *", "permission": "allow"}
DENY: dict[str, Any] = {"pattern": "delete every*", "permission": "deny"}


def decided(talk: Talk) -> list[tuple[str, str | None]]:
    resolved = [event["data"] for event in talk.events if event["type"] == "permission.resolved"]
    return [(data["status"], data.get("message")) for data in resolved]


@pytest.mark.parametrize(
    ("tool", "mode", "status"),
    [
        ("mcp__notes__read", "default", "accept"),
        ("mcp__notes__drop", "default", "reject"),
        ("Bash", "default", None),
        ("Fetch", "default", "accept_for_session"),
        ("mcp__notes__read", "plan", "reject"),
    ],
)
def test_the_strictest_rule_that_fits_holds(tool: str, mode: PermissionMode, status: str | None) -> None:
    given: list[tuple[str, RulePermission]] = [("mcp__notes__*", "allow"), ("*__drop", "deny"), ("Bash", "ask")]
    rules = [PermissionRule(pattern=pattern, permission=permission) for pattern, permission in given]
    asked = PermissionData(permission_id="1", action="x", status="requested", tool=tool)
    for order in (rules, rules[::-1]):
        state = SessionState(always_allowed=("Bash", "Fetch"))
        written, answers = vet([Draft("permission.requested", asked)], state, mode, order)
        found = [draft.data.status for draft in written[1:] if isinstance(draft.data, PermissionData)]
        assert (found, len(answers)) == (([], 0) if status is None else ([status], 1))


def test_rules_of_a_session_decide_what_its_agent_asks(api: httpx.Client) -> None:
    talk = Talk(api, permissionRules=[ALLOW, DENY])
    talk.turn("mock: permission delete a note\nmock: permission delete everything\nmock: say over")
    assert decided(talk) == [("accept", None), ("reject", "A rule of the session forbids delete everything.")]


def test_rules_that_could_not_hold_are_refused(api: httpx.Client) -> None:
    body = {"agent": "mock", "permissionMode": "bypass", "permissionRules": [DENY]}
    assert_problem(api.post("/sessions", json=body), "unprocessable", field="permissionRules")
    wrong = api.post("/sessions", json={"agent": "mock", "permissionRules": [{"pattern": "", "permission": "allow"}]})
    assert wrong.status_code in {400, 422}
    talk = Talk(api, permissionRules=[DENY])
    changed = api.patch(f"/sessions/{talk.created['id']}", json={"permissionMode": "bypass"})
    assert_problem(changed, "unprocessable", field="permissionRules")


def said(api: httpx.Client, session: str, text: str, agent: dict[str, Any]) -> httpx.Response:
    message = {"role": "user", "parts": [{"type": "text", "text": text}]}
    body = {"session_id": session, "data": {"messages": [message], "parameters": {"agent": agent}}}
    return api.post("/messages", json=body)


def test_a_chat_changes_its_rules_with_a_message(api: httpx.Client) -> None:
    talk = Talk(api)
    script = "mock: permission delete everything\nmock: say over"
    for permission, status in (("allow", "accept"), ("deny", "reject")):
        rules = [{"pattern": "delete *", "permission": permission}]
        agent = {"harness": "mock", "permissions": {"default": "ask", "rules": rules}}
        assert said(api, talk.created["key"], script, agent).status_code == 200
        talk.until_type("turn.ended")
        assert decided(talk)[-1][0] == status


def test_a_chat_says_which_tools_the_model_may_have(api: httpx.Client) -> None:
    refused = said(api, "few-tools", "mock: say hi", {"harness": "mock", "tools": ["bash"]})
    assert refused.status_code == 422
    assert "tools" in refused.json()["status"]["message"]
    taken = said(api, "own-tools", "hi", {"harness": "ostler", "model": "openai/x", "tools": ["read", "nothing"]})
    assert "nothing" in taken.json()["status"]["message"]
