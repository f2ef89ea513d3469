"""One message of an agent that is far too large: it costs little memory, its beginning and its end are kept."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

LOUD = Path(__file__).parents[2] / "support" / "programs" / "loud_agent.py"
SIZE = 60_000_000
_CALL = {"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "x", "kind": "edit", "status": "completed"}
UPDATES: dict[str, dict[str, Any]] = {
    "text": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"@{SIZE}"}},
    "arguments": {**_CALL, "rawInput": {"text": f"@{SIZE}"}},
    "output": {**_CALL, "rawInput": {"a": 1}, "rawOutput": {"deep": [{"stdout": f"@{SIZE}"}]}},
    "diff": {**_CALL, "rawInput": {"a": 1}, "content": [{"type": "diff", "path": "/a", "newText": f"@{SIZE}"}]},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that takes frames of 128 MiB."""
    env = {"OSTLER_AGENTS": json.dumps({"loud": {"command": [sys.executable, str(LOUD)]}})}
    state_dir = tmp_path_factory.mktemp("large") / "state"
    with running_server(state_dir, "--max-frame-bytes", str(2**27), env=env) as running:
        yield running


def memory(pid: int, field: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith(field)).split()[1])


def test_a_frame_of_very_many_tiny_values_is_not_read(server: RunningServer) -> None:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api, agent="loud")
        talk.turn("[]")
        before = memory(server.process.pid, "VmRSS")
        many = {**_CALL, "rawInput": {"a": 1}, "rawOutput": {"@times": 3_000_000, "value": {}}}
        events = talk.turn(json.dumps([many]))
        assert memory(server.process.pid, "VmHWM") - before < 2 * SIZE
    (unread,) = [event["data"] for event in events if event["type"] == "agent.unparsed"]
    assert unread["error"] == "Frame has more than 1000000 values"
    assert events[-1]["data"]["outcome"] == "completed"


@pytest.mark.parametrize("kind", UPDATES)
def test_a_huge_frame_is_cut_while_it_is_read(server: RunningServer, kind: str) -> None:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api, agent="loud")
        talk.turn("[]")
        keeper = talk.get()["process"]["keeperPid"]
        before = memory(server.process.pid, "VmRSS")
        events = talk.turn(json.dumps([UPDATES[kind]]))
        assert memory(server.process.pid, "VmHWM") - before < 2 * SIZE
        assert memory(keeper, "VmHWM") < SIZE
    assert events[-1]["data"]["outcome"] == "completed"
    (told,) = [event["data"] for event in events if event["type"] == "notice"]
    assert told["code"] == "cut"
    assert "see max_item_length" in told["message"]
    longest = max(len(json.dumps(event)) for event in events)
    assert 2**22 < longest < 2**23 + 10_000


def test_a_large_frame_is_not_stored_again_beside_its_event(server: RunningServer) -> None:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        talk.turn("mock: bigframe 1m")
        stored = talk.get("/events?limit=10000&include_raw=true")["events"]
    cut = [event["raw"]["cut"] for event in stored if "cut" in (event.get("raw") or {})]
    assert {frame["bytes"] for frame in cut} == {2**20}
    assert max(len(json.dumps(event["raw"])) for event in stored if "raw" in event) < 2**18
