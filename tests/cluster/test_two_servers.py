"""Any of two servers answers any request about a session that one of them has."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from operator import contains
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from tests.cluster.conftest import Servers
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, clean_env
from tests.support.talk import Event, Talk, said, stream


def at(api: httpx.Client, talk: Talk) -> Talk:
    """The same session, asked for somewhere else."""
    other = Talk.__new__(Talk)
    other.api, other.id, other.created, other.events = api, talk.id, talk.created, []
    return other


@contextmanager
def following(api: httpx.Client, path: str, **params: Any) -> Iterator[list[Event]]:
    """What a stream says, as it says it."""
    events: list[Event] = []
    opened = threading.Event()
    client = httpx.Client(base_url=api.base_url, timeout=120)

    def read() -> None:
        with client.stream("GET", path, params=params) as answer:
            opened.set()
            try:
                for line in answer.iter_lines():
                    if line.startswith("data: "):
                        events.append(json.loads(line[6:]))
            except (httpx.HTTPError, OSError):
                return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert opened.wait(60)
    try:
        yield events
    finally:
        client.close()


def sequences(events: list[Event]) -> list[int]:
    return [event["sequence"] for event in events]


def test_a_prompt_sent_to_the_other_server_is_done_by_the_one_that_has_the_session(
    a: httpx.Client, b: httpx.Client
) -> None:
    here = Talk(a, title="shared")
    there = at(b, here)
    assert said(there.turn("mock: say over there")) == "over there"
    assert said(here.turn("mock: say and here")) == "over thereand here"
    there.until_type("turn.ended")
    assert sequences(there.events) == list(range(1, len(there.events) + 1))
    assert there.get()["title"] == "shared"
    assert [found["id"] for found in b.get("/sessions", params={"q": "SHARED"}).json()["items"]] == [here.id]
    assert len(there.get("/turns")["turns"]) == 2
    metrics = b.get("/metrics").text
    assert re.search(r"^ostler_relayed_requests_total [1-9]", metrics, re.MULTILINE)
    assert re.search(r"^ostler_relay_seconds_count [1-9]", metrics, re.MULTILINE)


def test_what_happens_at_one_server_is_followed_at_the_other(a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    with (
        following(b, f"/sessions/{talk.id}/events/sse") as session,
        following(b, "/events", stream=1, types="turn.ended") as project,
    ):
        talk.turn("mock: stream 50 words 500/s")
        ended = talk.events[-1]
        wait_until(lambda: session[-1:] == [ended], what="the session's stream did not get there")
        wait_until(lambda: ended in project, what="the project's stream did not get there")
    assert session == talk.events


def test_the_project_stream_carries_the_sessions_of_both_servers_and_resumes_at_either(
    a: httpx.Client, b: httpx.Client
) -> None:
    start = b.get("/events", params={"limit": 10000}).json()["nextOffset"]
    one, two = Talk(a), Talk(b)
    with (
        following(a, "/events", stream=1, offset=start) as at_a,
        following(b, "/events", stream=1, offset=start) as at_b,
    ):
        for number in range(3):
            one.turn(f"mock: say one {number}")
            two.turn(f"mock: say two {number}")
        for followed in (at_a, at_b):
            for talk in (one, two):
                wait_until(partial(contains, followed, talk.events[-1]), what="it is not there")
        seen = [[event for event in followed if event["session_id"] in {one.id, two.id}] for followed in (at_a, at_b)]
    assert seen[0] == seen[1]
    assert [event for event in seen[0] if event["session_id"] == one.id] == one.events
    assert [event for event in seen[0] if event["session_id"] == two.id] == two.events
    middle = a.get("/events", params={"offset": start, "limit": 5}).json()
    rest = b.get("/events", params={"offset": middle["nextOffset"], "limit": 10000}).json()
    both = [event for page in (middle, rest) for event in page["events"] if event["session_id"] in {one.id, two.id}]
    assert both == seen[0]


def test_every_change_is_passed_on(a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    assert b.patch(f"/sessions/{talk.id}", json={"title": "renamed"}).json()["title"] == "renamed"
    assert a.get(f"/sessions/{talk.id}").json()["title"] == "renamed"
    there = at(b, talk)
    there.send("mock: permission delete the old notes\nmock: say done")
    asked = there.until_type("permission.requested")["data"]["permission_id"]
    assert [ask["askId"] for ask in b.get("/asks", params={"session": talk.id}).json()["items"]] == [asked]
    answer = b.post(f"/sessions/{talk.id}/permissions/{asked}/reply", json={"reply": "once"})
    assert answer.status_code == 200, answer.text
    there.until_type("turn.ended")
    there.send("mock: stream 2000 words 50/s")
    there.until(lambda event: event["type"] == "item.delta")
    assert b.post(f"/sessions/{talk.id}/interrupt").status_code == 200
    assert there.until_type("turn.ended")["data"]["outcome"] == "interrupted"
    assert b.delete(f"/sessions/{talk.id}").status_code == 204
    assert (a.get(f"/sessions/{talk.id}").status_code, b.get(f"/sessions/{talk.id}").status_code) == (404, 404)


def test_the_answer_to_a_prompt_streams_through(a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    headers = {"accept": "text/event-stream"}
    body = {"message": "mock: stream 100 words 500/s"}
    events = []
    with b.stream("POST", f"/sessions/{talk.id}/messages", json=body, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert json.loads(answer.headers["ostler-receipt"])["turnId"]
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    assert events[-1]["type"] == "turn.ended"
    texts = [event["data"]["delta"]["text"] for event in events if event["type"] == "item.delta"]
    assert "".join(texts).split() == [f"w{number}" for number in range(1, 101)]


def test_a_key_makes_one_prompt_whichever_server_gets_it(a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    headers = {"idempotency-key": "the same"}
    body = {"message": "mock: say once"}
    answers = [api.post(f"/sessions/{talk.id}/messages", json=body, headers=headers) for api in (b, a, b)]
    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert len({answer.json()["promptId"] for answer in answers}) == 1
    talk.until_type("turn.ended")
    assert len(talk.get("/turns")["turns"]) == 1
    created = [
        api.post("/sessions", json={"agent": "mock"}, headers={"idempotency-key": "new"}).json()["id"] for api in (a, b)
    ]
    assert len(set(created)) == 1


def test_a_request_that_reaches_both_servers_at_once_makes_one_session(a: httpx.Client, b: httpx.Client) -> None:
    def create(api: httpx.Client, key: str) -> str:
        answer = api.post("/sessions", json={"agent": "mock"}, headers={"idempotency-key": key})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    with ThreadPoolExecutor(8) as pool:
        for number in range(5):
            made = [pool.submit(create, api, f"both {number}") for api in (a, b, a, b)]
            assert len({each.result() for each in made}) == 1


def test_tools_of_mcp_reach_a_session_at_the_other_server(servers: Servers, a: httpx.Client) -> None:
    talk = Talk(a)
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}

    def call(tool: str, **arguments: str) -> str:
        params = {"name": tool, "arguments": {"session_id": talk.id, **arguments}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = httpx.post(f"{servers.url('b')}/mcp", json=body, headers=headers, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.text

    call("send_message", message="mock: say by tool")
    assert "by tool" in call("wait_for_turn")


def test_a_key_of_a_session_is_taken_everywhere(a: httpx.Client, b: httpx.Client) -> None:
    made = [api.post("/sessions", json={"agent": "mock", "key": "one-key"}) for api in (a, b)]
    assert [answer.status_code for answer in made] == [201, 200]
    assert made[0].json()["id"] == made[1].json()["id"]
    refused = b.post("/sessions", json={"agent": "amp", "key": "one-key"})
    assert refused.status_code == 409, refused.text


def test_the_chat_dialect_finds_its_session_at_the_other_server(servers: Servers, a: httpx.Client) -> None:
    del a
    body = {
        "id": "chat-1",
        "messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "mock: say a"}]}],
    }
    first = httpx.post(f"{servers.url('a')}/api/chat", json=body, timeout=60)
    assert first.status_code == 200, first.text
    body["messages"] = [{"id": "2", "role": "user", "parts": [{"type": "text", "text": "mock: say b"}]}]
    second = httpx.post(f"{servers.url('b')}/api/chat", json=body, timeout=60)
    assert second.status_code == 200, second.text
    assert '"b"' in second.text
    assert second.headers["x-vercel-ai-ui-message-stream"] == "v1"


def test_nobody_but_a_server_can_speak_for_others(servers: Servers, a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    scope = quote('{"actor": "x", "roles": ["viewer", "operator", "admin"], "reach": "server"}')
    forged = {"ostler-relay": "guessed", "ostler-relay-scope": scope}
    answer = b.post(f"/sessions/{talk.id}/messages", json={"message": "mock: say hi"}, headers=forged)
    assert answer.status_code == 202
    talk.until_type("turn.ended")
    assert {event.get("actor") for event in talk.events} <= {"local", None}
    foreign = httpx.get(f"{servers.url('a')}/api/v1/sessions", headers={**forged, "host": "evil.example"}, timeout=60)
    assert foreign.status_code == 403


def test_what_was_said_at_one_server_is_found_at_the_other(a: httpx.Client, b: httpx.Client) -> None:
    here, there = Talk(a), Talk(b)
    here.turn("mock: say A numbat here.")
    there.turn("mock: say A numbat there.")

    def found(api: httpx.Client) -> set[str]:
        return {hit["sessionId"] for hit in api.get("/search", params={"q": "numbat from:agent"}).json()["items"]}

    for api in (a, b):
        wait_until(lambda api=api: found(api) == {here.id, there.id}, what="what both servers heard")  # type: ignore[misc]
    a.delete(f"/sessions/{here.id}")
    wait_until(lambda: found(b) == {there.id}, what="one of them being gone")


def test_who_reads_leaves_nothing_behind(a: httpx.Client, b: httpx.Client) -> None:
    talk = Talk(a)
    talk.turn("mock: say hi")
    for _ in range(3):
        first = next(stream(b, f"/sessions/{talk.id}/events/sse"))
        assert first["sequence"] == 1
    assert b.delete(f"/sessions/{talk.id}").status_code == 204
    assert b.get(f"/sessions/{talk.id}/events/sse").status_code == 404


def test_the_command_line_says_which_servers_local_runner_it_drains(servers: Servers, tmp_path: Path) -> None:
    def runners(server: str, *words: str) -> str:
        command = [*OSTLER, "--endpoint", servers.url(server), "runners", *words, "local"]
        done = subprocess.run(
            command, env=clean_env(tmp_path), capture_output=True, text=True, check=True, timeout=stretched(120)
        )
        return done.stdout

    whose = f"local of the server at {servers.url('b')}"
    assert runners("b", "drain").startswith(f"{whose} gets no more sessions; ")
    shown = runners("b", "get").splitlines()
    assert [line.split()[1] for line in shown if line.startswith("server ")] == [servers.url("b")]
    assert runners("b", "resume") == f"{whose} gets sessions again.\n"
