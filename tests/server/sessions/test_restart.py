"""The agent of a session is restarted: its process is another one, its memory is the same."""

import httpx

from tests.support.http_helpers import assert_problem
from tests.support.talk import Talk, said


def test_a_restarted_agent_is_another_process_that_remembers(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say first")
    before = talk.get()["process"]["pid"]
    assert "process" not in talk.post("/restart").json()
    notice = talk.until_type("notice")
    assert notice["data"]["code"] == "agent_restarted"
    assert "I remember 2 user turns" in said(talk.turn("mock: recall"))
    assert talk.get()["process"]["pid"] != before


def test_a_turn_is_ended_by_force_only_and_what_waits_goes_on(api: httpx.Client) -> None:
    talk = Talk(api)
    turn = talk.send("mock: wait 600")["turnId"]
    talk.until_type("turn.started")
    talk.send("mock: say second")
    problem = assert_problem(api.post(f"/sessions/{talk.id}/restart"), "turn_under_way")
    assert turn in problem["detail"]
    assert "force" in problem["detail"]
    assert talk.get()["activity"] == "working"
    assert talk.post("/restart", force=True).status_code == 200
    ended = talk.until(lambda event: event["type"] == "turn.ended")
    assert (ended["data"]["turn_id"], ended["data"]["outcome"]) == (turn, "interrupted")
    talk.until_type("notice")
    talk.until(lambda event: event["type"] == "turn.ended" and event["data"]["turn_id"] != turn)
    assert "second" in said(talk.events)


def test_an_agent_that_does_not_listen_is_restarted_all_the_same(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: permission go on")
    talk.until_type("permission.requested")
    assert talk.post("/restart", force=True).status_code == 200
    talk.until_type("notice")
    assert (talk.get()["openAsks"], talk.get()["activity"]) == (0, "idle")
    assert "here again" in said(talk.turn("mock: say here again"))


def test_a_session_that_was_never_used_is_over_or_rests_has_no_agent_to_restart(api: httpx.Client) -> None:
    talk = Talk(api)
    assert talk.post("/restart").status_code == 200
    talk.post("/pause")
    assert_problem(talk.post("/restart"), "invalid_transition")
    talk.post("/resume")
    talk.post("/stop")
    assert talk.post("/restart").status_code == 409
