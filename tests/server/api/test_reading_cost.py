"""What a request takes out of the database depends on what it answers, not on how long the session's log is."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from uuid import uuid4

import httpx

from tests.support.chatting import Body, load, message
from tests.support.finding import find
from tests.support.folding import folded
from tests.support.http_helpers import metrics
from tests.support.serving import RunningServer, running_server
from tests.support.talk import Talk

WORDS = " ".join(["word"] * 250)
SLACK = 30_000
"""Bytes by which two answers about the same may differ: a chunk more or less, a longer number."""


def bytes_read(api: httpx.Client) -> int:
    return int(metrics(api)["ostler_store_read_bytes_total"])


def cost(api: httpx.Client, request: Callable[[], httpx.Response]) -> int:
    """What one request reads; the index, which reads beside it, is up to date before."""
    find(api, "word")
    before = bytes_read(api)
    answer = request()
    assert answer.status_code in {200, 201, 202, 204}, answer.text
    return bytes_read(api) - before


def grow(talk: Talk, turns: int) -> None:
    for _ in range(turns):
        talk.turn(f"mock: say {WORDS}")


PATHS = (
    "",
    "/queue",
    "/messages?limit=2",
    "/messages?offset=2&limit=2",
    "/logs?tail=3",
    "/artifacts",
    *(f"/events?format={name}&limit=3&offset=" for name in ("ui", "acp", "agui", "flat", "workflow")),
)


def costs(talk: Talk) -> dict[str, int]:
    near_the_end = talk.events[-1]["sequence"] - 3
    places = {path: f"/sessions/{talk.id}{path}{near_the_end if path.endswith('=') else ''}" for path in PATHS}
    return {path: cost(talk.api, partial(talk.api.get, place)) for path, place in places.items()}


def test_what_a_request_reads_does_not_grow_with_the_log(api: httpx.Client) -> None:
    talk = Talk(api)
    grow(talk, 2)
    short = costs(talk)
    grow(talk, 10)
    long = costs(talk)
    grown = {name: (short[name], long[name]) for name in PATHS if long[name] > short[name] + SLACK}
    assert grown == {}
    log = cost(talk.api, lambda: talk.api.get(f"/sessions/{talk.id}/events?limit=10000"))
    assert max(long.values()) * 5 < log
    assert_pages_are_the_fold(talk)


def assert_pages_are_the_fold(talk: Talk) -> None:
    everything = folded(talk.events)
    pages = [talk.get(f"/messages?offset={offset}&limit=5") for offset in range(0, len(everything), 5)]
    assert [found for page in pages for found in page["messages"]] == everything
    assert [page["hasMore"] for page in pages] == [True] * (len(pages) - 1) + [False]


def test_a_message_that_still_grows_is_shown_as_far_as_it_is(api: httpx.Client) -> None:
    talk = Talk(api)
    grow(talk, 1)
    talk.send("mock: stream 500 words 5/s")
    talk.until_type("item.delta")
    messages = talk.get("/messages?offset=2")["messages"]
    assert messages[-1]["item"]["status"] == "in_progress"
    last = messages[-1]["lastSequence"]
    assert messages == folded(talk.get(f"/events?limit={last}")["events"])[2:]
    talk.post("/interrupt")


def test_a_chat_reads_no_more_of_its_log_than_its_client_tells(server: RunningServer, api: httpx.Client) -> None:
    chat = Talk(api, key=f"cost-{uuid4().hex}")
    key = chat.created["key"]
    grow(chat, 12)
    with httpx.Client(base_url=server.url, timeout=60) as root:

        def post(*told: Body) -> httpx.Response:
            answer = root.post("/api/chat", json={"id": key, "messages": told, "trigger": "submit-message"})
            assert answer.headers["x-session-id"] == key
            return answer

        told = load(root, key)
        assert cost(api, lambda: post(*told, message("mock: say ok"))) < 3 * len(json.dumps(told)) + SLACK
        assert cost(api, lambda: post(message("mock: say ok"))) < SLACK


def test_a_large_message_is_stored_once_and_told_whole_everywhere(state_dir: Path) -> None:
    text = " ".join(f"word{number:020d}" for number in range(4000))
    with running_server(state_dir) as server, httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        for words in ("a short one", text, "another"):
            talk.turn(f"mock: say {words}")
        messages = talk.get("/messages")["messages"]
        assert messages == folded(talk.get("/events?limit=10000")["events"])
        said = [found["item"]["content"] for found in messages if found["item"]["role"] == "assistant"]
        assert [part["text"].strip() for content in said for part in content] == ["a short one", text, "another"]
        assert any(text[:50] in line["message"] for line in talk.get("/logs")["logs"])
    with closing(sqlite3.connect(state_dir / "ostler.db")) as database:
        (kept,) = database.execute("SELECT sum(length(body)) FROM items").fetchone()
    assert kept < len(text)
