"""Every turn belongs to a trace: the one that its request names, or one of its own; the log keeps it."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.serving import running_server
from tests.support.talk import Talk

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHER = "0af7651916cd43dd8448eb211c80319c"
SPAN = "00f067aa0ba902b7"


def named(trace: str) -> dict[str, str]:
    return {"traceparent": f"00-{trace}-{SPAN}-01"}


def traces(talk: Talk) -> list[Any]:
    """The trace of each turn, as its event and the list of turns tell alike."""
    events = talk.api.get(f"/sessions/{talk.id}/events").json()["events"]
    told = [event["data"]["trace_id"] for event in events if event["type"] == "turn.started"]
    assert told == [turn["traceId"] for turn in talk.get("/turns")["turns"]]
    return told


def send(talk: Talk, text: str, headers: Any = None) -> None:
    answer = talk.api.post(f"/sessions/{talk.id}/messages", json={"message": text}, headers=headers)
    assert answer.status_code == 202, answer.text


def test_a_turn_belongs_to_the_trace_that_its_request_names(api: httpx.Client) -> None:
    talk = Talk(api)
    send(talk, "one", named(TRACE))
    talk.until_type("turn.ended")
    send(talk, "two", named(OTHER))
    talk.until_type("turn.ended")
    assert traces(talk) == [TRACE, OTHER]


def test_a_newer_version_of_the_header_is_read_as_far_as_it_is_known(api: httpx.Client) -> None:
    talk = Talk(api)
    send(talk, "one", {"traceparent": f"01-{TRACE}-{SPAN}-01-more"})
    talk.until_type("turn.ended")
    assert traces(talk) == [TRACE]


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("traceparent", "")],
        [("traceparent", f"00-{TRACE}-{SPAN}")],
        [("traceparent", f"00-{TRACE}-{SPAN}-01-more")],
        [("traceparent", f"ff-{TRACE}-{SPAN}-01")],
        [("traceparent", f"00-{TRACE.upper()}-{SPAN}-01")],
        [("traceparent", f"00-{'0' * 32}-{SPAN}-01")],
        [("traceparent", f"00-{TRACE}-{'0' * 16}-01")],
        [("traceparent", f"00-{TRACE}-{SPAN}-01"), ("traceparent", f"00-{OTHER}-{SPAN}-01")],
    ],
)
def test_without_a_trace_that_is_one_each_turn_has_its_own(api: httpx.Client, headers: Any) -> None:
    talk = Talk(api)
    for text in ("one", "two"):
        send(talk, text, headers)
        talk.until_type("turn.ended")
    first, second = traces(talk)
    assert re.fullmatch(r"[0-9a-f]{32}", first)
    assert re.fullmatch(r"[0-9a-f]{32}", second)
    assert len({first, second, TRACE, OTHER}) == 4


def test_one_answer_tells_the_trace_of_the_log(api: httpx.Client) -> None:
    def ask(headers: dict[str, str]) -> Any:
        said = {"role": "user", "parts": [{"type": "text", "text": "mock: say Hello."}]}
        data = {"messages": [said], "parameters": {"agent": {"harness": "mock"}}}
        body = {"session_id": "traced", "data": data}
        answer = api.post("/messages", json=body, headers={"accept": "application/json", **headers})
        assert answer.status_code == 200, answer.text
        return answer.json()["trace_id"]

    told = [ask(named(TRACE)), ask({})]
    turns = api.get("/sessions/traced/turns").json()["turns"]
    assert told == [turn["traceId"] for turn in turns]
    assert told[0] == TRACE != told[1]


def test_a_prompt_that_waits_keeps_its_trace_also_through_a_crash(state_dir: Path) -> None:
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        send(talk, "mock: wait 600", named(TRACE))
        send(talk, "mock: say Hello.", named(OTHER))
        send(talk, "mock: say Hello again.")
        queued = talk.get("/queue")["entries"]
        own = queued[1]["traceId"]
        assert queued[0]["traceId"] == OTHER
        server.process.kill()
        server.process.wait()
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as talk.api:
        assert talk.post("/interrupt").status_code == 200
        for _ in range(3):
            talk.until_type("turn.ended")
        assert traces(talk) == [TRACE, OTHER, own]


def test_the_turn_of_a_task_belongs_to_the_trace_of_its_order(state_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    order = {
        "prompt": "mock: say Hello.",
        "repo": {"mode": "folder", "path": str(tmp_path / "project")},
        "runtime": {"type": "local"},
        "agent": {"type": "mock"},
    }
    flags = ("--repository-folder", str(tmp_path))
    with running_server(state_dir, *flags) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        answer = api.post("/tasks", json=order, headers=named(TRACE))
        assert answer.status_code == 201, answer.text
        with api.stream("GET", f"/sessions/{answer.json()['id']}/events/sse") as stream:
            started = next(line for line in stream.iter_lines() if '"turn.started"' in line)
    assert f'"trace_id":"{TRACE}"' in started
