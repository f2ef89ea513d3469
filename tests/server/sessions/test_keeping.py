"""Agents at work are not disturbed when their server is killed, restarted or away."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

ENDS = [signal.SIGKILL, signal.SIGTERM]


@contextmanager
def api_of(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as client:
        yield client


def end(server: RunningServer, how: signal.Signals) -> None:
    server.process.send_signal(how)
    server.process.wait(60)


def again(talk: Talk, api: httpx.Client) -> Talk:
    """The same session on another server."""
    talk.api = api
    return talk


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def words(events: list[dict[str, Any]]) -> list[str]:
    deltas = [event["data"]["delta"] for event in events if event["type"] == "item.delta"]
    return "".join(delta["text"] for delta in deltas if delta["type"] == "text").split()


def assert_whole(events: list[dict[str, Any]]) -> None:
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("how", ENDS)
def test_a_turn_goes_on_while_no_server_runs(state_dir: Path, how: signal.Signals) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: stream 300 words 100/s")
        talk.until_type("item.delta")
        process = talk.get()["process"]
        end(server, how)
    assert is_alive(process["pid"])
    assert is_alive(process["keeperPid"])
    with running_server(state_dir) as server, api_of(server) as api:
        again(talk, api)
        assert talk.get()["process"] == process
        ended = talk.until_type("turn.ended")
        assert ended["data"]["outcome"] == "completed"
        assert_whole(talk.events)
        assert words(talk.events) == [f"w{number}" for number in range(1, 301)]
        assert talk.turn("mock: say more")[-1]["data"]["outcome"] == "completed"
        assert talk.get()["process"] == process
    wait_until(lambda: not is_alive(process["pid"]), what="the agent did not end with its server")


@pytest.mark.parametrize("how", ENDS)
def test_an_open_ask_can_be_answered_after_a_restart(state_dir: Path, how: signal.Signals) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: permission write it\nmock: say done")
        ask = talk.until_type("permission.requested")["data"]["permission_id"]
        end(server, how)
    with running_server(state_dir) as server, api_of(server) as api:
        again(talk, api)
        assert talk.get()["activity"] == "waiting"
        assert talk.post(f"/permissions/{ask}/reply", reply="once").status_code == 200
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert talk.types().count("permission.requested") == 1
        assert_whole(talk.events)


def test_a_turn_that_ended_while_no_server_ran_is_in_the_log(state_dir: Path) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: stream 150 words 50/s\nmock: crash 3")
        talk.until_type("item.delta")
        process = talk.get()["process"]
        end(server, signal.SIGKILL)
    wait_until(lambda: not is_alive(process["keeperPid"]), what="the keeper stayed")
    with running_server(state_dir) as server, api_of(server) as api:
        again(talk, api)
        ended = talk.until_type("turn.ended")
        assert ended["data"]["outcome"] == "failed"
        assert talk.types().count("error") == 1
        assert talk.get().get("process") is None
        assert words(talk.events) == [f"w{number}" for number in range(1, 151)]
        assert_whole(talk.events)
        assert list((state_dir / "keepers").iterdir()) == []
        assert talk.turn("mock: say back")[-1]["data"]["outcome"] == "completed"


def test_queued_prompts_go_on_after_a_restart(state_dir: Path) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: stream 100 words 100/s")
        talk.send("mock: say second")
        talk.until_type("item.delta")
        end(server, signal.SIGKILL)
    with running_server(state_dir) as server, api_of(server) as api:
        again(talk, api)
        talk.until_type("turn.ended")
        talk.until_type("turn.ended")
        assert words(talk.events)[-1] == "second"
        assert_whole(talk.events)


def test_an_agent_whose_server_stays_away_is_stopped(state_dir: Path) -> None:
    patience = ["--orphan-timeout-seconds", "0.5"]
    with running_server(state_dir, *patience) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: wait 600")
        talk.until(lambda event: "start" in event["data"])
        process = talk.get()["process"]
        end(server, signal.SIGKILL)
    wait_until(lambda: not is_alive(process["pid"]), what="the orphan was not stopped")
    wait_until(lambda: not is_alive(process["keeperPid"]), what="its keeper stayed")
    with running_server(state_dir) as server, api_of(server) as api:
        again(talk, api)
        ended = talk.until_type("turn.ended")["data"]
        assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "server_gone")
        assert talk.turn("mock: say back")[-1]["data"]["outcome"] == "completed"


def test_a_killed_keeper_takes_its_agent_along_and_the_session_goes_on(state_dir: Path) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.turn("mock: say one")
        talk.send("mock: wait 600")
        process = talk.get()["process"]
        os.kill(process["keeperPid"], signal.SIGKILL)
        ended = talk.until_type("turn.ended")["data"]
        assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "keeper_lost")
        wait_until(lambda: not is_alive(process["pid"]), what="the agent outlived its keeper")
        assert talk.turn("mock: recall")[-1]["data"]["outcome"] == "completed"


def test_a_keeper_that_was_killed_while_no_server_ran_is_noticed(state_dir: Path) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: wait 600")
        talk.until(lambda event: "start" in event["data"])
        process = talk.get()["process"]
        end(server, signal.SIGKILL)
    os.kill(process["keeperPid"], signal.SIGKILL)
    with running_server(state_dir) as server, api_of(server) as api:
        again(talk, api)
        assert talk.until_type("turn.ended")["data"]["stop_reason"] == "keeper_lost"
        wait_until(lambda: not is_alive(process["pid"]), what="the agent outlived its keeper")


def test_an_idle_session_sleeps_and_a_prompt_wakes_it(state_dir: Path) -> None:
    with running_server(state_dir, "--idle-timeout-seconds", "0.3") as server, api_of(server) as api:
        talk = Talk(api)
        talk.turn("mock: say one")
        process = talk.get().get("process")
        wait_until(lambda: "process" not in talk.get(), what="the session did not fall asleep")
        wait_until(lambda: process is None or not is_alive(process["pid"]), what="its agent stayed")
        assert talk.get()["status"] == "running"
        events = talk.turn("mock: recall")
        info = next(event["data"] for event in events if "start" in event["data"])
        assert info["memory"] == "native"


def test_a_paused_session_stays_paused_over_a_restart(state_dir: Path) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: stream 200 words 200/s")
        talk.until_type("item.delta")
        assert talk.post("/pause").status_code == 200
        end(server, signal.SIGKILL)
    with running_server(state_dir) as server, api_of(server) as api:
        again(talk, api)
        assert talk.get()["status"] == "paused"
        assert talk.post("/resume").status_code == 200
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
        assert words(talk.events) == [f"w{number}" for number in range(1, 201)]


def test_a_deleted_sessions_agent_does_not_come_back(state_dir: Path) -> None:
    with running_server(state_dir) as server, api_of(server) as api:
        talk = Talk(api)
        talk.send("mock: wait 600")
        talk.until(lambda event: "start" in event["data"])
        process = talk.get()["process"]
        assert api.delete(f"/sessions/{talk.id}").status_code == 204
    wait_until(lambda: not is_alive(process["pid"]), what="the agent outlived its session")
    assert list((state_dir / "keepers").iterdir()) == []
