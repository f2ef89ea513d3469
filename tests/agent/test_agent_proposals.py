"""What the agent proposes: checked at once, made when a person says yes, and in no mode decided by a rule."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from tests.agent.killing import server_with
from tests.support.patience import wait_until
from tests.support.triggering import store

MODEL = "openrouter/scripted-large"
NIGHTLY: dict[str, Any] = {
    "kind": "schedule",
    "reason": "The tests take long.",
    "name": "nightly",
    "template": "tests",
    "cron": "0 3 * * *",
    "time_zone": "Europe/Berlin",
}
HOOK: dict[str, Any] = {
    "kind": "trigger",
    "reason": "Issues come at night.",
    "name": "issues",
    "template": "tests",
    "scheme": "github",
    "event_filter": {"event.action": ["opened"]},
    "prompt": "Look at {{ event.issue.number }}",
}


@pytest.fixture
def api(tmp_path: Path, model: ScriptedModel) -> Iterator[httpx.Client]:
    with server_with(tmp_path / "state", model) as (_, api):
        store(api, "tests", 'prompt = "mock: say Tested"')
        yield api


def _began(api: httpx.Client, *steps: str, **wanted: Any) -> str:
    session = str(api.post("/sessions", json={"agent": "ostler", "model": MODEL, **wanted}).json()["id"])
    text = "\n".join(f"SCRIPT: {step}" for step in steps)
    assert api.post(f"/sessions/{session}/messages", json={"message": text}).status_code == 202
    return session


def _propose(**fields: Any) -> str:
    return f"tool propose {json.dumps(fields)}"


def _asked(api: httpx.Client, session: str) -> dict[str, Any]:
    def found() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = api.get("/asks", params={"session": session}).json()["items"]
        return items

    wait_until(lambda: len(found()) == 1, "the agent proposes something")
    return found()[0]


def _reply(api: httpx.Client, session: str, ask: dict[str, Any], reply: str, message: str | None = None) -> None:
    body = {"reply": reply, **({"message": message} if message else {})}
    answered = api.post(f"/sessions/{session}/permissions/{ask['askId']}/reply", json=body)
    assert answered.status_code == 200, answered.text


def _told(api: httpx.Client, model: ScriptedModel, session: str) -> list[str]:
    """What came back to the model, once the turn is over."""
    wait_until(lambda: api.get(f"/sessions/{session}").json()["activity"] == "idle", "the turn is over")
    sent = model.requests[-1]["body"]["messages"]
    return [str(each["content"]) for each in sent if each["role"] == "tool"]


def test_a_schedule_and_a_trigger_are_made_when_a_person_says_yes(api: httpx.Client, model: ScriptedModel) -> None:
    steps = [_propose(**NIGHTLY), _propose(**HOOK), _propose(**{**NIGHTLY, "name": "never"}), "say Done."]
    session = _began(api, *steps, permissionMode="bypass")
    first = _asked(api, session)
    action = "make the schedule 'nightly', which begins template 'tests': The tests take long."
    assert first["permission"]["action"] == action
    assert api.get("/schedules/nightly").status_code == 404, "whatever the mode is, a person decides"
    _reply(api, session, first, "once")
    _reply(api, session, _asked(api, session), "once")
    _reply(api, session, _asked(api, session), "reject", "We sleep then.")
    told = _told(api, model, session)
    assert ("yes" in told[0], "yes" in told[1], "We sleep then." in told[2]) == (True, True, True), told
    made = api.get("/schedules/nightly").json()
    assert (made["cron"], made["timeZone"], made["template"]) == ("0 3 * * *", "Europe/Berlin", "tests")
    hook = api.get("/triggers/issues").json()
    assert (hook["filter"], hook["mapping"]["prompt"]) == (HOOK["event_filter"], HOOK["prompt"])
    assert api.get("/schedules/never").status_code == 404


def test_what_could_not_be_made_is_told_to_the_model_and_to_nobody_else(
    api: httpx.Client, model: ScriptedModel
) -> None:
    wrong = [{"template": "nobody"}, {"cron": "0 3 * *"}, {"name": "Two Words"}, {"scheme": "github"}]
    session = _began(api, *(_propose(**{**NIGHTLY, **each}) for each in wrong), "say Done.")
    told = _told(api, model, session)
    words = ["no template 'nobody'", "five fields", "lower-case letters", "a schedule takes only"]
    assert [word for word, text in zip(words, told, strict=True) if word not in text] == [], told
    assert api.get("/schedules/nightly").status_code == 404


def test_a_policy_for_a_session_that_asks_nothing_is_refused_at_once(api: httpx.Client, model: ScriptedModel) -> None:
    policy = _propose(kind="policy", reason="The same again and again.", rules={"bash": "allow"})
    session = _began(api, policy, "say Done.", permissionMode="bypass")
    (told,) = _told(api, model, session)
    assert "permissionMode bypass it asks nothing" in told
    assert api.get("/asks", params={"session": session}).json()["items"] == []


def test_a_policy_holds_from_the_yes_on_and_only_in_its_session(
    api: httpx.Client, model: ScriptedModel, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    policy = _propose(kind="policy", reason="The same again and again.", rules={"bash": "allow", "write": "deny"})
    steps = ["bash touch one", policy, "bash touch two", "write three x", "say Done."]
    session = _began(api, *steps, cwd=str(tmp_path / "work"))
    _reply(api, session, _asked(api, session), "reject")
    ask = _asked(api, session)
    assert "allow bash, deny write" in ask["permission"]["action"]
    _reply(api, session, ask, "once")
    _told(api, model, session)
    assert [each.name for each in (tmp_path / "work").iterdir()] == ["two"]
    rules = api.get(f"/sessions/{session}").json()["permissionRules"]
    assert [(rule["pattern"], rule["permission"]) for rule in rules] == [("bash", "allow"), ("write", "deny")]
    assert api.get(f"/sessions/{_began(api, 'say Hi.')}").json().get("permissionRules", []) == []
