"""A session whose log is full ends its turn, says why, and takes no more prompts; others go on."""

import sqlite3
from pathlib import Path

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk

MOST = 300_000
LOUD = {
    "small deltas": "mock: stream 200000 words 1000000/s",
    "printed by a command": "mock: run for i in $(seq 1 1000000); do echo $i $RANDOM$RANDOM; done",
    "an agent that does not hear": "mock: ignore-signals\nmock: flood 300m",
}


def test_an_agent_that_says_too_much_is_stopped_and_the_next_prompt_starts_it_again(state_dir: Path) -> None:
    limit = ("--max-output-bytes", "3000000", "--stop-grace-seconds", "1")
    with running_server(state_dir, *limit) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        first = talk.turn("mock: flood 1m")  # said twice: as it grows and when it is whole
        assert first[-1]["data"]["outcome"] == "completed", first[-2:]
        events = talk.turn("mock: flood 300m")
        assert (events[-1]["data"]["outcome"], events[-1]["data"]["stop_reason"]) == ("failed", "output_full")
        (error,) = [event["data"] for event in events if event["type"] == "error"]
        assert error["code"] == "output_full"
        assert "max_output_bytes" in error["message"]
        wait_until(lambda: "process" not in talk.get(), what="its process stayed")
        wait_until(lambda: not list((state_dir / "keepers").glob(f"{talk.id}*")), what="what it said stayed on disk")
        assert talk.turn("mock: say hello")[-1]["data"]["outcome"] == "completed"


def test_what_an_agent_said_leaves_the_disk_with_its_turn_and_the_next_prompt_goes_on(state_dir: Path) -> None:
    limit = ("--max-idle-output-bytes", "1000000", "--stop-grace-seconds", "1")
    with running_server(state_dir, *limit) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        talk.turn("mock: say hello")
        process = talk.get()["process"]["pid"]
        events = talk.turn("mock: flood 3m\nmock: say the end")
        assert events[-1]["data"]["outcome"] == "completed"
        wait_until(lambda: not list((state_dir / "keepers").glob(f"{talk.id}*")), what="what it said stayed on disk")
        assert talk.turn("mock: say more")[-1]["data"]["outcome"] == "completed"
        assert talk.get()["process"]["pid"] != process
        talk.send("mock: flood 3m")
        talk.send("mock: recall", when_busy="queue")
        talk.until(lambda event: event["type"] == "item.completed" and "I remember 5 user turns" in str(event["data"]))
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"


def stored_bytes(state_dir: Path, session_id: str) -> int:
    with sqlite3.connect(f"file:{state_dir / 'ostler.db'}?mode=ro", uri=True) as database:
        tables = ("chunks", "items", "lines", "artifacts")
        query = " UNION ALL ".join(f"SELECT sum(length(body)) FROM {table} WHERE session = ?1" for table in tables)
        return sum(size or 0 for (size,) in database.execute(query, (session_id,)))


@pytest.mark.parametrize("kind", LOUD)
def test_the_turn_of_a_full_log_fails_and_the_next_prompt_is_refused(state_dir: Path, kind: str) -> None:
    limit = ("--max-log-bytes", str(MOST), "--interrupt-grace-seconds", "1")
    with running_server(state_dir, *limit) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk, other = Talk(api), Talk(api)
        events = talk.turn(LOUD[kind])
        assert (events[-1]["data"]["outcome"], events[-1]["data"]["stop_reason"]) == ("failed", "log_full")
        (error,) = [event["data"] for event in events if event["type"] == "error"]
        assert error["code"] == "log_full"
        assert "max_log_bytes" in error["message"]
        refused = talk.post("/messages", message="mock: say more")
        assert_problem(refused, "log_full")
        assert MOST // 2 <= stored_bytes(state_dir, talk.id) < 4 * MOST
        assert other.turn("mock: say hello")[-1]["data"]["outcome"] == "completed"
        opened = {event["data"]["item"]["item_id"] for event in events if event["type"] == "item.started"}
        assert opened == {event["data"]["item"]["item_id"] for event in events if event["type"] == "item.completed"}
    with running_server(state_dir, *limit) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        assert api.post(f"/sessions/{talk.id}/messages", json={"message": "x"}).json()["code"] == "log_full"
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        assert api.post(f"/sessions/{talk.id}/messages", json={"message": "mock: say x"}).status_code == 202
