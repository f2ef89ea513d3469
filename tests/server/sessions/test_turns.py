"""Turns: what happens to prompts while the agent works, and whatever the agent does."""

import json
from pathlib import Path

import httpx
import pytest

from tests.support.talk import Talk, said


def test_a_prompt_sent_during_a_turn_waits_and_then_runs(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: wait 600")
    assert talk.send("mock: say second")["position"] == 1
    assert talk.send("mock: say third")["position"] == 2
    entries = talk.get("/queue")["entries"]
    assert [entry["parts"][0]["text"] for entry in entries] == ["mock: say second", "mock: say third"]
    assert talk.post("/interrupt").json()["interrupted"] is True
    talk.until(lambda event: said([event]) == "third")
    assert talk.get("/queue")["entries"] == []
    talk.until_type("turn.ended")
    assert [turn["outcome"] for turn in talk.get("/turns")["turns"]] == ["interrupted", "completed", "completed"]


def test_a_waiting_prompt_can_be_taken_back(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: wait 600")
    second, third = talk.send("mock: say second"), talk.send("mock: say third")
    assert api.delete(f"/sessions/{talk.id}/queue/{second['promptId']}").status_code == 204
    assert api.delete(f"/sessions/{talk.id}/queue/{second['promptId']}").json()["code"] == "queue_entry_not_found"
    assert [entry["promptId"] for entry in talk.get("/queue")["entries"]] == [third["promptId"]]
    assert api.delete(f"/sessions/{talk.id}/queue").status_code == 204
    assert talk.get("/queue")["entries"] == []


def test_reject_refuses_while_busy_and_names_the_turn(api: httpx.Client) -> None:
    talk = Talk(api)
    turn = talk.send("mock: wait 600")["turnId"]
    refused = talk.post("/messages", message="now", when_busy="reject")
    assert (refused.status_code, refused.json()["code"]) == (409, "session_busy")
    assert turn in refused.json()["detail"]


def test_interrupt_puts_the_prompt_first_and_ends_the_turn(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: wait 600")
    talk.send("mock: say later")
    talk.send("mock: say at once", when_busy="interrupt")
    talk.until(lambda event: said([event]) == "later")
    texts = [said([event]) for event in talk.events if said([event])]
    assert texts == ["at once", "later"]


def test_steer_reaches_the_running_turn(api: httpx.Client) -> None:
    talk = Talk(api)
    turn = talk.send("mock: wait 600")["turnId"]
    talk.until_type("item.started")
    talk.until(lambda event: "start" in event["data"])
    steered = talk.send("mock: say steered", when_busy="steer")
    assert (steered["disposition"], steered["turnId"]) == ("steered", turn)
    talk.post("/interrupt")
    talk.until_type("turn.ended")


def test_an_interrupt_drops_what_was_steered_and_not_heard_and_the_log_tells_it(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: stream 600 words 1/s")  # a wait would take up what is steered
    talk.until_type("item.delta")
    assert talk.send("mock: say LEFT", when_busy="steer")["disposition"] == "steered"
    assert talk.post("/interrupt").is_success
    ended = talk.until_type("turn.ended")["data"]
    (dropped,) = [event["data"] for event in talk.events if event["type"] == "notice"]
    assert (dropped["code"], "mock: say LEFT" in dropped["message"]) == ("unheard", True)
    assert ended["outcome"] == "interrupted"
    assert said(talk.turn("mock: say NEXT")) == "NEXT"


def test_the_beginning_of_a_result_that_no_agent_tells_is_ours(api: httpx.Client) -> None:
    events = Talk(api).turn('mock: tool search {"q": 1} -> 3 results')
    items = [event for event in events if event["data"].get("item", {}).get("kind") == "tool_result"]
    assert [(event["type"], event["source"], event["synthetic"]) for event in items] == [
        ("item.started", "daemon", True),
        ("item.completed", "agent", False),
    ]


def test_an_interrupt_during_text_ends_the_turn_and_closes_its_items(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: stream 100000 words 100/s")
    talk.until_type("item.delta")
    talk.post("/interrupt")
    assert talk.until_type("turn.ended")["data"]["outcome"] == "interrupted"
    started = {e["data"]["item"]["item_id"] for e in talk.events if e["type"] == "item.started"}
    completed = {e["data"]["item"]["item_id"] for e in talk.events if e["type"] == "item.completed"}
    assert started == completed
    assert said(talk.turn("mock: say still here")) == "still here"


def test_a_failed_turn_leaves_the_session_usable_and_tells_why(api: httpx.Client) -> None:
    talk = Talk(api)
    events = talk.turn("mock: error The model is overloaded")
    assert events[-1]["data"]["outcome"] == "failed"
    assert talk.get()["error"] == "The model is overloaded"
    assert said(talk.turn("mock: say fine")) == "fine"
    assert "error" not in talk.get()


def test_a_crashed_agent_fails_its_turn_with_stderr_and_is_started_again_with_its_memory(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say one")
    events = talk.turn("mock: stderr 100\nmock: crash 3")
    (error,) = [event["data"] for event in events if event["type"] == "error"]
    assert (error["code"], error["details"]["exit_code"]) == ("agent_process_exited", 3)
    stderr = error["details"]["stderr"]
    assert (stderr["truncated"], len(stderr["head"].splitlines()), len(stderr["tail"].splitlines())) == (True, 20, 50)
    assert events[-1]["data"]["outcome"] == "failed"
    assert (talk.get()["status"], talk.get()["activity"]) == ("running", "idle")
    assert "3" in said(talk.turn("mock: recall"))
    starts = [e["data"]["start"] for e in talk.events if e["type"] == "session.info" and "start" in e["data"]]
    assert starts == [1, 2]


@pytest.mark.parametrize("directive", ["hang", "ignore-signals\nmock: hang"])
def test_an_agent_that_does_not_obey_an_interrupt_is_stopped(api: httpx.Client, directive: str) -> None:
    talk = Talk(api, turn_timeout_seconds=1)
    events = talk.turn(f"mock: {directive}")
    assert next(event["data"]["code"] for event in events if event["type"] == "error") == "turn_timeout"
    assert events[-1]["data"]["outcome"] == "failed"
    assert talk.get()["activity"] == "idle"


def test_garbage_becomes_unparsed_events_and_the_turn_goes_on(api: httpx.Client) -> None:
    talk = Talk(api)
    events = talk.turn("mock: garbage\nmock: say fine")
    unparsed = [event for event in events if event["type"] == "agent.unparsed"]
    assert len(unparsed) >= 3
    assert all(event["data"]["raw_hash"] for event in unparsed)
    assert events[-1]["data"]["outcome"] == "completed"
    assert api.get("/agents/mock").json()["unparsedFrames"] >= len(unparsed)


def test_a_frame_of_five_megabytes_arrives_whole(api: httpx.Client) -> None:
    talk = Talk(api)
    events = talk.turn("mock: bigframe 5000000")
    assert max(len(str(event["data"])) for event in events) > 4_900_000


def test_an_agent_that_cannot_start_ends_the_session_with_the_reason(api: httpx.Client, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    talk = Talk(api, cwd=str(folder))
    folder.rmdir()
    talk.send("hello")
    ended = talk.until_type("session.ended")["data"]
    assert (ended["reason"], ended["terminated_by"]) == ("error", "agent")
    assert str(folder) in ended["message"]
    assert talk.types()[-4:] == ["error", "turn.ended", "session.status", "session.ended"]
    assert (talk.get()["status"], talk.get()["activity"]) == ("failed", "idle")


def test_images_reach_the_agent_and_stay_with_the_session(api: httpx.Client) -> None:
    talk = Talk(api)
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image", "data": pixel, "mime": "image/png"}]
    receipt = talk.post("/messages", parts=parts).json()
    talk.until(lambda event: event["type"] == "turn.ended" and event["data"]["turn_id"] == receipt["turnId"])
    user = next(e["data"]["item"] for e in talk.events if e["type"] == "item.completed")
    assert [part["type"] for part in user["content"]] == ["text", "image"]
    assert user["content"][1]["path"].endswith(".png")


def test_a_prompt_can_be_answered_by_the_stream_of_its_turn(api: httpx.Client) -> None:
    talk = Talk(api)
    body = {"message": "mock: say streamed"}
    headers = {"accept": "text/event-stream"}
    with api.stream("POST", f"/sessions/{talk.id}/messages", json=body, headers=headers) as answer:
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    assert '"type":"turn.started"' in lines[0] or '"type":"session.info"' in lines[0]
    assert '"type":"turn.ended"' in lines[-1]


@pytest.mark.parametrize("data", ["not base64!", "¬ÒW", "abc"])
def test_an_image_that_is_not_base64_is_refused_by_name(api: httpx.Client, data: str) -> None:
    refused = Talk(api).post("/messages", parts=[{"type": "image", "data": data}])
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["parts[0].data"])


def test_the_stream_of_a_prompt_that_is_taken_back_ends(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: wait 600")
    wanted, headers = {"message": "mock: say never"}, {"accept": "text/event-stream"}
    with api.stream("POST", f"/sessions/{talk.id}/messages", json=wanted, headers=headers) as stream:
        prompt_id = json.loads(stream.headers["ostler-receipt"])["promptId"]
        api.delete(f"/sessions/{talk.id}/queue/{prompt_id}").raise_for_status()
        assert "turn.ended" not in stream.read().decode()
