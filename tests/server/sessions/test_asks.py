"""Asks: never dropped, decided once, also from two clients at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.talk import Talk, said


def ask(talk: Talk, directive: str, kind: str) -> Any:
    talk.send(f"mock: {directive}\nmock: say Done.")
    return talk.until_type(f"{kind}.requested")["data"]


def test_a_permission_waits_in_the_inbox_until_it_is_allowed(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "permission delete the old notes", "permission")
    assert (asked["status"], talk.get()["activity"], talk.get()["openAsks"]) == ("requested", "waiting", 1)
    (entry,) = api.get("/asks", params={"session": talk.id}).json()["items"]
    assert (entry["askId"], entry["kind"], entry["sessionId"]) == (asked["permission_id"], "permission", talk.id)
    answer = talk.post(f"/permissions/{asked['permission_id']}/reply", reply="once")
    assert (answer.status_code, answer.json()["status"]) == (200, "accept")
    assert talk.until_type("permission.resolved")["data"]["status"] == "accept"
    talk.until_type("turn.ended")
    assert "Done." in said(talk.events)
    assert api.get("/asks", params={"session": talk.id}).json()["items"] == []
    assert len(api.get("/asks", params={"session": talk.id, "status": "all"}).json()["items"]) == 1


def test_a_rejection_reaches_the_agent_with_its_reason(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "permission delete the old notes", "permission")
    talk.post(f"/permissions/{asked['permission_id']}/reply", reply="reject", message="they are mine")
    assert talk.until_type("permission.resolved")["data"]["message"] == "they are mine"
    talk.until_type("turn.ended")
    assert "they are mine" in said(talk.events)


def test_always_answers_the_same_ask_for_the_rest_of_the_session(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "permission delete the old notes", "permission")
    talk.post(f"/permissions/{asked['permission_id']}/reply", reply="always")
    talk.until_type("turn.ended")
    events = talk.turn("mock: permission delete the old notes\nmock: say Again.")
    (resolved,) = [event["data"] for event in events if event["type"] == "permission.resolved"]
    assert (resolved["status"], resolved["metadata"]["resolved_by"]) == ("accept_for_session", "policy")
    assert "Again." in said(events)


def test_bypass_asks_nobody(api: httpx.Client) -> None:
    talk = Talk(api, permission_mode="bypass")
    events = talk.turn("mock: permission delete everything\nmock: say Done.")
    assert "Done." in said(events)
    assert talk.get()["openAsks"] == 0


def test_of_two_clients_one_wins_and_the_other_hears_the_outcome(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "permission delete the old notes", "permission")
    gate = threading.Barrier(8)

    def reply(number: int) -> httpx.Response:
        gate.wait()
        choice = "once" if number % 2 else "reject"
        return talk.post(f"/permissions/{asked['permission_id']}/reply", reply=choice)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(reply, range(8)))
    (winner,) = [answer for answer in answers if answer.status_code == 200]
    losers = [answer.json() for answer in answers if answer.status_code != 200]
    outcome = {"accept": "allowed once", "reject": "rejected"}[winner.json()["status"]]
    assert [(loser["status"], loser["code"]) for loser in losers] == [(409, "ask_resolved")] * 7
    assert all(outcome in loser["detail"] for loser in losers)
    talk.until_type("turn.ended")
    assert talk.types().count("permission.resolved") == 1


def test_a_question_is_answered_with_labels(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "question Tea or coffee? | tea | coffee", "question")
    assert (asked["prompt"], asked["options"]) == ("Tea or coffee?", ["tea", "coffee"])
    answer = talk.post(f"/questions/{asked['question_id']}/reply", answers=[["tea"]])
    assert answer.json()["question"]["response"] == "tea"
    talk.until_type("turn.ended")
    assert "tea" in said(talk.events)
    again = talk.post(f"/questions/{asked['question_id']}/reply", answers=[["coffee"]])
    assert (again.status_code, "tea" in again.json()["detail"]) == (409, True)


def test_a_question_can_be_rejected(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "question Tea or coffee? | tea | coffee", "question")
    assert talk.post(f"/questions/{asked['question_id']}/reject", message="ask Ann").json()["status"] == "rejected"
    resolved = talk.until_type("question.resolved")["data"]
    assert (resolved["status"], resolved["message"]) == ("rejected", "ask Ann")
    talk.until_type("turn.ended")


def test_answers_must_fit_the_questions(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "questions Which size? | S | M ;; *Which extras? | milk | sugar", "question")
    wrong = talk.post(f"/questions/{asked['question_id']}/reply", answers=[["S"]])
    assert (wrong.status_code, list(wrong.json()["errors"])) == (422, ["answers"])
    right = talk.post(f"/questions/{asked['question_id']}/reply", answers=[["S"], ["milk", "sugar"]])
    assert right.status_code == 200


def test_an_interrupt_cancels_an_open_ask(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "permission delete the old notes", "permission")
    talk.post("/interrupt")
    assert talk.until_type("permission.resolved")["data"]["status"] == "reject"
    assert talk.until_type("turn.ended")["data"]["outcome"] == "interrupted"
    late = talk.post(f"/permissions/{asked['permission_id']}/reply", reply="once")
    assert (late.status_code, "rejected" in late.json()["detail"]) == (409, True)


def test_an_ask_that_never_was_is_not_found(api: httpx.Client) -> None:
    talk = Talk(api)
    answer = talk.post("/permissions/per_9_9/reply", reply="once")
    assert (answer.status_code, answer.json()["code"]) == (404, "ask_not_found")


UNFIT = [
    ("question Tea or coffee? | tea | coffee", [["XXL"]], ["answers[0]", "'XXL'", "'tea', 'coffee'"]),
    ("question Tea or coffee? | tea | coffee", [["tea", "coffee"]], ["answers[0]", "only one", "'tea', 'coffee'"]),
    ("question Tea or coffee? | tea | coffee", [[]], ["answers[0]", "choose one"]),
    ("multi-select Which fruit? | apple | pear", [["apple", "nail"]], ["answers[0]", "'nail'"]),
    ("questions Which size? | S | M ;; *Extras? | milk | sugar", [["S"], ["tar"]], ["answers[1]", "'tar'"]),
    ("question Your name?", [["a", "b"]], ["answers[0]", "only one"]),
]


@pytest.mark.parametrize("door", ["/api/v1/sessions/{}/questions/{}/reply", "/v1/sessions/{}/questions/{}/reply"])
@pytest.mark.parametrize(("directive", "answers", "words"), UNFIT)
def test_answers_that_are_not_on_offer_are_refused_and_the_question_stays(
    api: httpx.Client, door: str, directive: str, answers: list[list[str]], words: list[str]
) -> None:
    talk = Talk(api)
    asked = ask(talk, directive, "question")
    root = str(api.base_url).removesuffix("/api/v1/")
    refused = httpx.post(root + door.format(talk.id, asked["question_id"]), json={"answers": answers}, timeout=60)
    assert refused.status_code == 422
    assert [word for word in words if word not in refused.json()["detail"]] == []
    assert talk.get()["openAsks"] == 1
    talk.post("/cancel")


@pytest.mark.parametrize(
    ("directive", "answers"),
    [
        ("question Your name?", [["Ada"]]),
        ("multi-select Which fruit? | apple | pear", [["apple", "pear"]]),
        ("multi-select Which fruit? | apple | pear", [[]]),
    ],
)
def test_answers_that_fit_are_taken(api: httpx.Client, directive: str, answers: list[list[str]]) -> None:
    talk = Talk(api)
    asked = ask(talk, directive, "question")
    assert talk.post(f"/questions/{asked['question_id']}/reply", answers=answers).status_code == 200
    talk.until_type("turn.ended")


def test_a_signal_with_an_unfit_answer_is_refused(api: httpx.Client) -> None:
    talk = Talk(api)
    asked = ask(talk, "question Tea or coffee? | tea | coffee", "question")
    root = str(api.base_url).removesuffix("/api/v1/")
    signal = {"name": "questionReply", "payload": {"questionId": asked["question_id"], "answers": [["XXL"]]}}
    path = f"{root}/api/orgs/default/workflow-executions/{talk.id}/signal"
    assert httpx.post(path, json=signal, timeout=60).status_code == 422
    talk.post("/cancel")
