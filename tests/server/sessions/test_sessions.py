"""Sessions: creation, keys, lists, status changes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.talk import Talk, said


def test_a_new_session_is_running_and_idle_and_links_to_itself(api: httpx.Client) -> None:
    answer = api.post(
        "/sessions", json={"agent": "mock", "title": "Try", "labels": {"team": "a"}, "env": {"X": "secret"}}
    )
    session = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/api/v1/sessions/{session['id']}" == session["links"]["self"]
    assert (session["status"], session["activity"], session["key"]) == ("running", "idle", session["id"])
    assert (session["title"], session["labels"], session["envNames"]) == ("Try", {"team": "a"}, ["X"])
    assert "secret" not in answer.text


def test_a_log_begins_with_the_start_of_the_session(api: httpx.Client) -> None:
    talk = Talk(api)
    page = talk.get("/events")
    assert [event["type"] for event in page["events"]] == ["session.started", "session.status", "session.status"]
    assert [event["sequence"] for event in page["events"]] == [1, 2, 3]
    assert page["hasMore"] is False


def test_a_session_is_found_by_id_and_by_key(api: httpx.Client) -> None:
    talk = Talk(api, key="my.key:1-a_b")
    assert api.get("/sessions/my.key:1-a_b").json()["id"] == talk.id
    assert api.get(f"/sessions/{talk.id}").json()["key"] == "my.key:1-a_b"


def test_creating_a_key_again_gives_the_same_session(api: httpx.Client) -> None:
    first = api.post("/sessions", json={"agent": "mock", "key": "again"})
    second = api.post("/sessions", json={"agent": "mock", "key": "again"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", "a b", "ü", "x" * 129])
def test_an_impossible_key_is_refused(api: httpx.Client, key: str) -> None:
    answer = api.post("/sessions", json={"agent": "mock", "key": key})
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["key"]


def test_concurrent_creations_of_one_key_give_one_session(api: httpx.Client) -> None:
    gate = threading.Barrier(12)

    def create(_: int) -> Any:
        gate.wait()
        return api.post("/sessions", json={"agent": "mock", "key": "race"}).json()["id"]

    with ThreadPoolExecutor(12) as pool:
        ids = set(pool.map(create, range(12)))
    assert len(ids) == 1
    assert api.get("/sessions", params={"q": "race"}).json()["total"] == 1


def test_a_turn_is_recorded_from_prompt_to_end(api: httpx.Client) -> None:
    talk = Talk(api)
    events = talk.turn("mock: say Hello there.")
    assert said(events) == "Hello there."
    ended = events[-1]["data"]
    assert (ended["phase"], ended["outcome"]) == ("ended", "completed")
    assert [event["sequence"] for event in talk.events] == list(range(1, len(talk.events) + 1))
    (turn,) = talk.get("/turns")["turns"]
    assert (turn["number"], turn["outcome"], turn["lastSequence"]) == (1, "completed", talk.events[-1]["sequence"])


def test_the_transcript_folds_deltas_into_items(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say One two three.")
    messages = talk.get("/messages")["messages"]
    shown = [(message["item"]["role"], message["item"]["content"][-1]["text"]) for message in messages]
    assert shown == [("user", "mock: say One two three."), ("assistant", "One two three.")]


def test_the_first_prompt_names_the_session_and_a_patch_renames_it(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say hi")
    assert talk.get()["title"] == "mock: say hi"
    answer = api.patch(f"/sessions/{talk.id}", json={"title": "Mine", "labels": {"a": "b"}})
    assert (answer.json()["title"], answer.json()["labels"]) == ("Mine", {"a": "b"})
    assert talk.get()["title"] == "Mine"


def test_a_filter_takes_the_names_of_an_agent_that_a_new_session_takes(api: httpx.Client) -> None:
    created = api.post("/sessions", json={"agent": "claude", "labels": {"batch": "names"}}).json()
    assert created["agent"]["type"] == "claude-code"
    for name, expected in (("claude", [created["id"]]), ("claude-code", [created["id"]]), ("nobody", [])):
        items = api.get("/sessions", params={"agent": name, "label": "batch=names"}).json()["items"]
        assert [found["id"] for found in items] == expected


def test_lists_are_paged_filtered_and_newest_first(api: httpx.Client) -> None:
    ids = [Talk(api, labels={"batch": "list-test"}).id for _ in range(5)]
    Talk(api, labels={"batch": "other"})
    api.post(f"/sessions/{ids[0]}/stop")
    first = api.get("/sessions", params={"label": "batch=list-test", "per_page": 2}).json()
    assert ([item["id"] for item in first["items"]], first["total"], first["nextPage"]) == (ids[:-3:-1], 5, 2)
    last = api.get("/sessions", params={"label": "batch=list-test", "perPage": 2, "page": 3}).json()
    assert ([item["id"] for item in last["items"]], "nextPage" in last) == ([ids[0]], False)
    stopped = api.get("/sessions", params={"label": "batch=list-test", "status": "stopped,failed"}).json()
    assert [item["id"] for item in stopped["items"]] == [ids[0]]
    assert api.get("/sessions", params={"agent": "nobody"}).json()["total"] == 0


def test_stop_ends_the_turn_and_the_session_once(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: wait 600")
    talk.send("mock: say never", when_busy="queue")
    talk.until_type("queue.updated")
    assert talk.post("/stop").json()["status"] == "stopped"
    assert talk.post("/stop").json()["status"] == "stopped"
    talk.until_type("session.ended")
    assert talk.types().count("turn.ended") == talk.types().count("session.ended") == 1
    assert talk.events[-1]["data"] == {"reason": "terminated", "terminated_by": "daemon"}
    assert talk.get()["queueLength"] == 0
    refused = talk.post("/messages", message="more")
    assert (refused.status_code, refused.json()["code"]) == (409, "session_ended")


def test_cancel_ends_by_force_even_an_agent_that_ignores_signals(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: ignore-signals\nmock: hang I am stuck")
    talk.until(lambda event: "stuck" in str(event["data"]))
    assert talk.post("/cancel").json()["status"] == "cancelled"
    assert talk.get()["activity"] == "idle"


def test_an_ended_session_cannot_be_paused_or_cancelled(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.post("/stop")
    for verb in ("pause", "resume", "cancel"):
        refused = talk.post(f"/{verb}")
        assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    assert talk.post("/interrupt").json() == {"interrupted": False}


def test_a_paused_session_stands_still_and_goes_on(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: stream 100000 words 50/s")
    talk.until_type("item.delta")
    assert talk.post("/pause").json()["status"] == "paused"
    assert talk.post("/pause").status_code == 409
    before = talk.get()["lastSequence"]
    queued = talk.send("mock: say after the pause")
    assert queued["disposition"] == "queued"
    assert talk.get()["lastSequence"] <= before + 2  # the queue, and at most one burst that was under way
    assert talk.post("/resume").json()["status"] == "running"
    talk.until(lambda event: event["sequence"] > before + 20 and event["type"] == "item.delta")
    talk.post("/interrupt")
    talk.until(lambda event: "pause" in said([event]))


def test_a_deleted_session_is_gone_and_its_stream_ends(api: httpx.Client) -> None:
    talk = Talk(api, key="gone")
    talk.send("mock: wait 600")
    talk.until_type("turn.started")
    assert api.delete("/sessions/gone").status_code == 204
    assert api.get("/sessions/gone").status_code == 404
    assert api.delete(f"/sessions/{talk.id}").status_code == 204
    assert api.delete("/sessions/never-was").status_code == 404
    assert Talk(api, key="gone").id != talk.id


def test_each_session_has_its_own_environment_folder_model_and_mode(api: httpx.Client, tmp_path: Any) -> None:
    talk = Talk(api, env={"FLAVOUR": "mint"}, cwd=str(tmp_path), model="mock-large", variant="high", mode="plan")
    text = said(talk.turn("mock: env FLAVOUR\nmock: pwd\nmock: about"))
    assert all(word in text for word in ("mint", str(tmp_path), "mock-large", "high", "plan"))


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("cwd", "relative", 422),
        ("cwd", "/does/not/exist", 422),
        ("model", "nonsense", 422),
        ("mode", "nonsense", 422),
        ("variant", "nonsense", 422),
        ("permissionMode", "nonsense", 400),
        ("agent", "nobody", 404),
    ],
)
def test_a_session_that_could_never_start_is_refused_by_name(
    api: httpx.Client, field: str, value: str, status: int
) -> None:
    answer = api.post("/sessions", json={"agent": "mock", field: value})
    assert answer.status_code == status
    assert value in answer.json()["detail"] or field in answer.json()["errors"]


def test_camel_case_fields_are_understood(api: httpx.Client) -> None:
    answer = api.post("/sessions", json={"agent": "mock", "permissionMode": "bypass"})
    assert answer.json()["permissionMode"] == "bypass"


def test_a_path_that_nobody_could_have_is_refused_like_one_that_is_not_there(api: httpx.Client) -> None:
    endless = "/" + "x" * 5000
    assert api.post("/sessions", json={"agent": "mock", "cwd": endless}).status_code == 422
    talk = Talk(api)
    assert talk.post("/messages", parts=[{"type": "file_ref", "path": endless}]).status_code == 422


def test_what_a_session_used_and_changed_is_added_up_in_lists(api: httpx.Client) -> None:
    talk = Talk(api)
    assert "usage" not in talk.created
    assert "changes" not in talk.created
    talk.turn("mock: usage 1000 200 0.1\nmock: usage 1500 300 0.15\nmock: write notes.md one\\ntwo\\n")
    talk.turn("mock: usage 500 100 0.2\nmock: edit notes.md two -> three\nmock: write more.md x\\n")
    [listed] = [each for each in api.get("/sessions").json()["items"] if each["id"] == talk.id]
    assert listed["usage"] == {"inputTokens": 2000, "outputTokens": 400, "cost": {"USD": 0.35}}
    assert listed["changes"] == {"files": 2, "added": 4, "removed": 1}
    assert listed == talk.get()


def test_very_many_changed_files_are_counted_up_to_a_limit(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("\n".join(f"mock: write note{number}.md x\\n" for number in range(210)))
    assert talk.get()["changes"] == {"files": 200, "added": 210}


def test_what_a_turn_took_so_far_is_counted_once(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: usage 10 1 0.25\nmock: usage 20 2 0.5\nmock: wait 600")
    talk.until(lambda event: event["type"] == "usage.updated" and event["data"]["output_tokens"] == 2)
    assert talk.get()["usage"] == {"inputTokens": 20, "outputTokens": 2, "cost": {"USD": 0.5}}
