"""Events: pages and streams give every client the same gap-free log, whatever it does."""

import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_helpers import assert_problem, metrics
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk, stream


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["sequence"] for event in events]


def test_pages_follow_each_other_without_gap(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: stream 60 words")
    seen: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        page = talk.get(f"/events?offset={len(seen)}&limit=7")
        seen += page["events"]
        has_more = page["hasMore"]
        assert len(page["events"]) <= 7
    assert seen == talk.events
    assert talk.get("/events?offset=1000000") == {"events": [], "hasMore": False, "nextOffset": 1000000}


def test_a_stream_gives_what_pages_give_byte_for_byte(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: stream 60 words")
    page = api.get(f"/sessions/{talk.id}/events").text
    with api.stream("GET", f"/sessions/{talk.id}/events", headers={"accept": "text/event-stream"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = list(takewhile(lambda line: "turn.ended" not in line, answer.iter_lines()))
    assert all(line[6:] in page for line in lines if line.startswith("data: "))
    assert lines[0] == "id: 1"


def test_last_event_id_beats_offset(api: httpx.Client) -> None:
    talk = Talk(api)
    headers = {"last-event-id": "2"}
    with api.stream("GET", f"/sessions/{talk.id}/events/sse", params={"offset": 0}, headers=headers) as answer:
        assert next(answer.iter_lines()) == "id: 3"
    bad = api.get(f"/sessions/{talk.id}/events/sse", headers={"last-event-id": "x"})
    assert (bad.status_code, list(bad.json()["errors"])) == (400, ["Last-Event-ID"])


def test_many_clients_at_any_offset_see_the_same_events(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.send("mock: stream 400 words 400/s")
    talk.until_type("item.delta")
    views = [
        takewhile(lambda e: e["type"] != "turn.ended", stream(api, f"/sessions/{talk.id}/events/sse", offset=offset))
        for offset in (0, 3, 7)
    ]
    seen = [numbers(list(view)) for view in views]
    talk.until_type("turn.ended")
    last = talk.events[-1]["sequence"]
    assert seen == [list(range(offset + 1, last)) for offset in (0, 3, 7)]


def test_raw_frames_come_only_when_asked_for(api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: say hi")
    assert not any("raw" in event for event in talk.get("/events")["events"])
    raw = [event["raw"] for event in talk.get("/events?include_raw=true")["events"] if "raw" in event]
    assert raw
    assert all(isinstance(frame, dict) and frame["type"] for frame in raw)
    streamed = stream(api, f"/sessions/{talk.id}/events/sse", include_raw=True)
    first = next(event for event in streamed if "raw" in event)
    assert first["raw"] == raw[0]


def test_the_project_stream_carries_all_sessions_and_resumes_by_position(api: httpx.Client) -> None:
    start = api.get("/events", params={"limit": 10000}).json()["nextOffset"]
    one, two = Talk(api), Talk(api)
    one.turn("mock: say first")
    two.turn("mock: say second")
    wanted = len(one.events) + len(two.events)

    def ours(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Other sessions of this server may say something too, and what they said may be shown late."""
        return (event for event in events if event["session_id"] in {one.id, two.id})

    streamed = list(islice(ours(stream(api, "/events", stream=1, offset=start)), wanted))
    assert [event for event in streamed if event["session_id"] == one.id] == one.events
    assert [event for event in streamed if event["session_id"] == two.id] == two.events
    page = api.get("/events", params={"offset": start, "limit": 10000}).json()
    assert list(ours(page["events"])) == streamed


def test_a_quiet_stream_gets_heartbeats(state_dir: Path) -> None:
    with running_server(state_dir, "--heartbeat-seconds", "0.2") as server:
        api = httpx.Client(base_url=f"{server.url}/api/v1", timeout=60)
        talk = Talk(api)
        with api.stream("GET", f"/sessions/{talk.id}/events/sse", params={"offset": 3}) as answer:
            lines = answer.iter_lines()
            assert [next(lines), next(lines), next(lines)] == [": still here", "", ": still here"]


def test_logs_tell_what_the_agent_says_and_does_and_what_goes_wrong(api: httpx.Client) -> None:
    talk = Talk(api)
    script = 'mock: tool search {"query": "ostler"} -> 3 results\nmock: say Done.\nmock: error The model is overloaded'
    turn = talk.turn(script)[-1]["data"]["turn_id"]
    logs = talk.get("/logs")["logs"]
    assert [(line["level"], line["message"]) for line in logs] == [
        ("info", "session is provisioning"),
        ("info", "session is running"),
        ("info", f"turn {turn} began"),
        ("info", f"user: {script}"),
        ("info", 'tool search: {"query":"ostler"}'),
        ("info", "result: 3 results"),
        ("info", "Done."),
        ("error", "The model is overloaded"),
        ("info", f"turn {turn} ended: failed"),
    ]
    assert talk.get("/logs?tail=2")["logs"] == logs[-2:]


def test_lines_of_all_sessions_say_which_session_they_are_about(api: httpx.Client) -> None:
    start = int(metrics(api)["ostler_events_total"])
    talks = [Talk(api), Talk(api)]
    for talk in talks:
        talk.turn("mock: say Done.")
    said = {(talk.id, "Done.") for talk in talks}
    page = api.get("/events", params={"format": "flat", "offset": start, "limit": 10_000}).json()["events"]
    assert said <= {(line["sessionId"], line.get("message")) for line in page}
    assert {line["type"] for line in page} <= {"status", "log", "moment", "delivery"}
    heard: set[tuple[str, str]] = set()
    for line in stream(api, "/events", format="flat", offset=start, stream="1"):
        heard.add((line["sessionId"], line.get("message", "")))
        if said <= heard:
            break
    assert_problem(api.get("/events?format=ui"), "invalid_request", field="format")


@pytest.fixture
def stalled(server: RunningServer, api: httpx.Client) -> Iterator[tuple[Talk, socket.socket]]:
    """A client that subscribes and then does not read."""
    talk = Talk(api)
    with closing(socket.create_connection(("127.0.0.1", server.port))) as client:
        request = f"GET /api/v1/sessions/{talk.id}/events/sse HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        client.sendall(request.encode())
        client.recv(100)
        yield talk, client


@pytest.mark.lane("server")
def test_a_stalled_client_loses_nothing_and_costs_little(
    server: RunningServer, stalled: tuple[Talk, socket.socket]
) -> None:
    talk, client = stalled
    before = resident_kib(server.process.pid)
    talk.turn("mock: stream 60000 words max")
    assert resident_kib(server.process.pid) - before < 60_000
    client.settimeout(60)
    received = bytearray()
    while b'"turn.ended"' not in received[-4096:]:
        received += client.recv(1 << 20)
    seen = [json.loads(line[6:])["sequence"] for line in dechunked(bytes(received)) if line.startswith(b"data: ")]
    assert all(later == earlier + 1 for earlier, later in pairwise(seen))
    assert seen[-1] == talk.events[-1]["sequence"]


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def dechunked(received: bytes) -> list[bytes]:
    """Lines of a chunked body; the first bytes of the answer may be missing."""
    body = bytearray()
    rest = received[received.index(b"\r\n\r\n") + 4 :]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16)
        body += rest[:length]
        rest = rest[length + 2 :]
    return bytes(body).split(b"\n")


def test_the_stream_of_a_turn_ends_with_the_turn_whatever_clients_write(api: httpx.Client) -> None:
    talk = Talk(api)
    seen = []
    message, headers = {"message": "mock: wait 60"}, {"accept": "text/event-stream"}
    with api.stream("POST", f"/sessions/{talk.id}/messages", json=message, headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line[6:])["type"])
            if seen[-1:] == ["turn.started"]:
                api.patch(f"/sessions/{talk.id}", json={"labels": {"type": "session.ended", "x": '"turn.ended"'}})
            if seen[-1:] == ["session.info"]:
                talk.post("/interrupt")
    assert "session.info" in seen
    assert seen[-1] == "turn.ended"


@pytest.mark.parametrize(
    ("accept", "is_stream"),
    [
        ("text/event-stream", True),
        ("text/event-stream, application/json", True),
        ("application/json;q=0.1, text/event-stream;q=1", True),
        ("TEXT/Event-Stream", True),
        ("application/json;q=1, text/event-stream;q=0.1", False),
        ("text/event-stream;q=0", False),
        ("*/*", False),
        ("text/html", False),
        ("application/json, */*", False),
        ("x/text/event-stream", False),
    ],
)
@pytest.mark.parametrize("path", ["/sessions/{id}/events", "/events"])
def test_the_form_that_a_client_takes_best_is_given(api: httpx.Client, path: str, accept: str, is_stream: bool) -> None:
    talk = Talk(api)
    with api.stream("GET", path.format(id=talk.id), headers={"accept": accept}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream") == is_stream


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 17, "9007199254740993", "-1", "1.5", "½", "٣", "0x1"])
@pytest.mark.parametrize("path", ["/sessions/{id}/events/sse", "/events?stream=1"])
def test_the_number_of_no_event_is_refused(api: httpx.Client, path: str, number: str) -> None:
    talk = Talk(api)
    answer = api.get(path.format(id=talk.id), headers={b"last-event-id": number.encode()})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["Last-Event-ID"])
    assert "Traceback" not in answer.text
