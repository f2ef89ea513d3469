"""What a server finds when its notes about agents are damaged, or the machine stopped: it says so, and goes on."""

import json
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from ostler.runner.processes.journal import CALLS, read_calls
from tests.support.patience import wait_until
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk


@contextmanager
def serving(state_dir: Path, **more: Any) -> Iterator[tuple[RunningServer, httpx.Client]]:
    with (
        running_server(state_dir, **more) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        yield server, api


def folder_of(state_dir: Path) -> Path:
    (folder,) = (state_dir / "keepers").iterdir()
    return folder


def killed_at_work(state_dir: Path) -> Talk:
    """A session whose server was killed while its agent waits for a permission."""
    with serving(state_dir) as (server, api):
        talk = Talk(api)
        talk.turn("mock: say before")
        talk.send("mock: permission go on\nmock: say done")
        talk.until_type("permission.requested")
        server.process.kill()
        server.process.wait()
    return talk


def lose_power(state_dir: Path) -> None:
    """End keeper and agent, and let this have been an earlier start of the machine."""
    note = folder_of(state_dir) / "running"
    running = json.loads(note.read_text())
    for pid in (running["keeper"], running["pid"]):
        with suppress(ProcessLookupError):  # an agent may end with its keeper before we come to it
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{running['pid']}").exists(), what="the agent is still there")
    note.write_text(json.dumps({**running, "boot": "an earlier one"}))


def error_of(events: list[dict[str, Any]]) -> str:
    (error,) = [event["data"]["message"] for event in events if event["type"] == "error"]
    return str(error)


def assert_given_up(api: httpx.Client, talk: Talk, why: str) -> None:
    """The turn ends with a clear answer, the log has no gap, and the session goes on."""
    talk.api = api
    ended = talk.until_type("turn.ended")["data"]
    assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "server_restarted")
    assert why in error_of(talk.events)
    assert talk.turn("mock: say after")[-1]["data"]["outcome"] == "completed"
    stored = talk.get("/events?limit=10000")["events"]
    assert [event["sequence"] for event in stored] == list(range(1, len(stored) + 1))
    assert stored == talk.events


@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
def test_a_damaged_journal_ends_the_turn_and_says_so(state_dir: Path, place: float) -> None:
    talk = killed_at_work(state_dir)
    calls = folder_of(state_dir) / CALLS
    data = bytearray(calls.read_bytes())
    data[int(place * len(data))] ^= 0xFF
    calls.write_bytes(data)
    with serving(state_dir) as (server, api):
        assert_given_up(api, talk, "what the server had noted of its turns is damaged")
        assert "journal.damaged" in server.stderr.read_text()


def test_a_journal_of_an_earlier_version_is_gone_on_with(state_dir: Path) -> None:
    talk = killed_at_work(state_dir)
    calls = folder_of(state_dir) / CALLS
    bodies = map(msgspec.msgpack.encode, read_calls(calls.parent))
    calls.write_bytes(b"".join(struct.pack("<I", len(body)) + body for body in bodies))
    with serving(state_dir) as (_, api):
        talk.api = api
        (ask,) = talk.api.get("/asks").json()["items"]
        talk.post(f"/permissions/{ask['askId']}/reply", reply="once")
        assert talk.until_type("turn.ended")["data"]["outcome"] == "completed"
    with serving(state_dir) as (_, api):
        talk.api = api
        assert talk.turn("mock: say after")[-1]["data"]["outcome"] == "completed"


@pytest.mark.parametrize("file", ["output", "calls", "running", "spec"])
@pytest.mark.parametrize("left", [b"", b"\0" * 4096], ids=["empty", "zeros"])
def test_what_the_log_has_counts_when_the_machine_stopped(state_dir: Path, file: str, left: bytes) -> None:
    talk = killed_at_work(state_dir)
    lose_power(state_dir)
    (folder_of(state_dir) / file).write_bytes(left)
    with serving(state_dir) as (_, api):
        assert_given_up(api, talk, "was lost: ")


def test_what_an_agent_said_to_the_end_without_a_server_survives_a_power_cut(state_dir: Path) -> None:
    with serving(state_dir) as (server, api):
        talk = Talk(api)
        talk.send("mock: say first\nmock: wait 1\nmock: say last\nmock: crash 3")
        talk.until_type("item.delta")
        server.process.kill()
        server.process.wait()
    folder = folder_of(state_dir)
    wait_until((folder / "end").exists, what="the agent did not end")
    running = json.loads((folder / "running").read_text())
    wait_until(lambda: not Path(f"/proc/{running['keeper']}").exists(), what="the keeper is still there")
    (folder / "running").write_text(json.dumps({**running, "boot": "an earlier one"}))
    with serving(state_dir) as (server, api):
        talk.api = api
        assert talk.until_type("turn.ended")["data"]["stop_reason"] == "agent_exited"
        said = [event["data"]["delta"]["text"] for event in talk.events if event["type"] == "item.delta"]
        assert "last" in "".join(said)


@pytest.mark.parametrize(
    ("boot", "outcome"), [(None, "completed"), ("an earlier one", "interrupted")], ids=["kill", "power cut"]
)
def test_a_prompt_is_begun_again_only_if_no_agent_can_have_heard_it(
    state_dir: Path, boot: str | None, outcome: str
) -> None:
    """A power cut may take the folder of the agent that heard it; only the database is sure to be there."""
    with serving(state_dir, env={"OSTLER_FAILPOINT": "folder.before:kill"}) as (server, api):
        talk = Talk(api)
        with suppress(httpx.TransportError):  # the server may be killed before it has answered
            talk.send("mock: say hello")
        server.process.wait(60)
    lock = state_dir / "ostler.lock"
    holder, before = lock.read_text().splitlines()
    lock.write_text(f"{holder}\n{boot or before}\n")
    with serving(state_dir) as (server, api):
        talk.api = api
        assert talk.until_type("turn.ended")["data"]["outcome"] == outcome
        assert talk.turn("mock: say after")[-1]["data"]["outcome"] == "completed"


def test_a_server_that_left_in_order_was_not_cut_off(state_dir: Path) -> None:
    with running_server(state_dir):
        assert (state_dir / "ostler.lock").read_text().split()
    assert (state_dir / "ostler.lock").read_text() == ""


def test_an_interrupt_that_cannot_be_noted_ends_the_agent_so_that_none_is_misunderstood(state_dir: Path) -> None:
    with serving(state_dir, env={"OSTLER_FAILPOINT": "journal.before:error:3"}) as (server, api):
        talk = Talk(api)
        talk.send("mock: stream 60000 words 300/s")
        talk.until_type("item.delta")
        assert talk.post("/interrupt").status_code == 200
        ended = talk.until_type("turn.ended")["data"]
        assert (ended["outcome"], ended["stop_reason"]) == ("interrupted", "interrupted")
        server.process.kill()
        server.process.wait()
    with serving(state_dir) as (_, api):
        talk.api = api
        assert talk.turn("mock: say after")[-1]["data"]["outcome"] == "completed"
