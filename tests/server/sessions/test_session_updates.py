"""A session is changed while it goes on: how its agent works, what it is called, and where people see it."""

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.talk import Talk, said


def test_the_agent_works_as_it_was_told_from_the_next_turn_on_and_remembers(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say first")
    change = {"model": "mock-large", "variant": "high", "mode": "plan", "permissionMode": "plan"}
    changed = api.patch(f"/sessions/{talk.id}", json=change).json()
    assert {name: changed[name] for name in change} == change
    told = said(talk.turn("mock: about\nmock: recall"))
    assert "mock-large" in told
    assert "I remember 2 user turns" in told
    (event,) = [each for each in talk.events if each["type"] == "session.info" and each["data"].get("variant")]
    assert event["data"]["permission_mode"] == "plan"


def test_how_the_agent_works_is_not_changed_in_the_middle_of_a_turn(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: permission go on")
    talk.until_type("permission.requested")
    problem = assert_problem(
        api.patch(f"/sessions/{talk.id}", json={"model": "mock-large", "title": "New"}), "settings_in_use"
    )
    assert "model" in problem["detail"]
    assert talk.get().get("model") != "mock-large"
    assert talk.get()["title"] != "New"  # all of it, or nothing
    assert api.patch(f"/sessions/{talk.id}", json={"title": "New", "pinned": True}).json()["title"] == "New"


def test_a_session_that_is_over_can_be_renamed_but_has_no_agent_to_change(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.post("/stop")
    assert api.patch(f"/sessions/{talk.id}", json={"model": "mock-large"}).status_code == 409
    assert api.patch(f"/sessions/{talk.id}", json={"archived": True}).json()["archived"]


def test_pins_and_archives_are_kept_and_a_turn_brings_a_session_back(api: httpx.Client) -> None:
    talk = Talk(api)
    assert (talk.get().get("pinned", False), talk.get().get("archived", False)) == (False, False)
    api.patch(f"/sessions/{talk.id}", json={"pinned": True, "archived": True})
    (found,) = [each for each in api.get("/sessions").json()["items"] if each["id"] == talk.id]
    assert (found["pinned"], found["archived"]) == (True, True)
    talk.turn("mock: say again")
    assert (talk.get()["pinned"], talk.get().get("archived", False)) == (True, False)
    assert not api.patch(f"/sessions/{talk.id}", json={"pinned": False}).json().get("pinned", False)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"model": "-"}, "model"), ({"permissionMode": "god"}, "permissionMode"), ({"pinned": "maybe"}, "pinned")],
)
def test_what_cannot_be_is_refused_by_name(api: httpx.Client, change: dict[str, object], field: str) -> None:
    talk = Talk(api)
    assert_problem(api.patch(f"/sessions/{talk.id}", json=change), "invalid_request", field=field)
