"""Whoever sends a prompt while another turn ends gets the answer of its own turn, in every dialect."""

import base64
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import acp
import httpx
import pytest
from mcp.client import Client

from ostler.server.dialects.turns import PromptTurn
from ostler.wire.events import decode_event
from ostler.wire.sessions import PromptReceipt
from tests.server.dialects.test_agui_dialect import body, run, spoken
from tests.server.dialects.test_agui_dialect import said as agui_message
from tests.server.dialects.test_mcp_dialect import call
from tests.support.acp_client import Editor, connected
from tests.support.chatting import SSE, ask, chunks, content, envelope
from tests.support.serving import RunningServer
from tests.support.talk import Talk, said, stream

LINES = (25, 50)
"""The first turn ends about when the second prompt is being looked at, on a quick machine or a busy one."""
SECOND = "mock: say SECOND"
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + os.urandom(9 * 2**20)).decode()
"""So large that the turn under way ends while it is looked at."""
Json = dict[str, Any]


@pytest.fixture(params=LINES)
def key(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """A session whose first turn is under way."""
    first = "\n".join(f"mock: wait 0.02\nmock: say FIRST{number}" for number in range(request.param))
    key = f"own-{uuid4().hex}"
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        api.post("/sessions", json={"agent": "mock", "key": key}).raise_for_status()
        api.post(f"/sessions/{key}/messages", json={"message": first}).raise_for_status()
        next(found for found in stream(api, f"/sessions/{key}/events/sse") if found["type"] == "item.completed")
        yield key


def chat_message() -> Json:
    picture = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PICTURE}"}
    return {"id": uuid4().hex, "role": "user", "parts": [{"type": "text", "text": SECOND}, picture]}


def deltas(found: list[Json]) -> str:
    return "".join(chunk.get("delta", "") for chunk in found)


def messages_json(root: httpx.Client, key: str) -> str:
    return content(ask(root, chat_message(), session=key))


def messages_stream(root: httpx.Client, key: str) -> str:
    return deltas(chunks(root.post("/messages", json=envelope(chat_message(), session=key), headers=SSE)))


def stock_chat(root: httpx.Client, key: str) -> str:
    return deltas(chunks(root.post("/api/chat", json={"id": key, "messages": [chat_message()]})))


def agui(root: httpx.Client, key: str) -> str:
    source = {"type": "data", "value": PICTURE, "mimeType": "image/png"}
    return spoken(
        run(root, body(key, agui_message([{"type": "text", "text": SECOND}, {"type": "image", "source": source}])))
    )


def native(root: httpx.Client, key: str) -> str:
    parts = [{"type": "text", "text": SECOND}, {"type": "image", "data": PICTURE, "mime": "image/png"}]
    return said(list(posted(root, f"/api/v1/sessions/{key}/messages", {"parts": parts})))


def daemon(root: httpx.Client, key: str) -> str:
    return said(list(posted(root, f"/v1/sessions/{key}/messages/stream", {"message": SECOND})))


def posted(root: httpx.Client, path: str, sent: Json) -> Iterator[Json]:
    with root.stream("POST", path, json=sent, headers=SSE) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


@pytest.mark.parametrize("door", [messages_json, messages_stream, stock_chat, agui, native, daemon])
def test_an_answer_is_that_of_its_own_turn(
    server: RunningServer, key: str, door: Callable[[httpx.Client, str], str]
) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as root:
        assert door(root, key).removeprefix("I got 1 image.").strip() == "SECOND"


def test_a_stream_begins_with_the_start_of_its_own_turn(server: RunningServer, key: str) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as root:
        events = list(posted(root, f"/api/v1/sessions/{key}/messages", {"message": SECOND}))
    kinds = [event["type"] for event in events]
    assert (kinds[0], kinds[-1]) == ("turn.started", "turn.ended")
    assert (kinds.count("turn.started"), kinds.count("turn.ended")) == (1, 1)


async def test_an_editor_hears_how_its_own_turn_ended(server: RunningServer, tmp_path: Any) -> None:
    editor = Editor()
    async with connected(server, "websocket", editor, tmp_path / "home") as agent:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        async with httpx.AsyncClient(base_url=f"{server.url}/api/v1", timeout=60) as api:
            failing = "mock: say one\nmock: wait 0.3\nmock: error broken"
            await api.post(f"/sessions/{session}/messages", json={"message": failing})
        blocks = [acp.text_block(SECOND), acp.image_block(PICTURE, "image/png")]
        answer = await agent.prompt(session_id=session, prompt=blocks)
    assert answer.stop_reason == "end_turn"
    assert editor.text().endswith("SECOND")


async def test_a_tool_call_reads_the_answer_to_its_own_message(server: RunningServer, key: str) -> None:
    async with Client(f"{server.url}/mcp") as mcp:
        await call(mcp, "send_message", session_id=key, message=SECOND)
        assert (await call(mcp, "wait_for_turn", session_id=key))["answer"] == "SECOND"


def test_answers_without_a_session_do_not_mix(server: RunningServer) -> None:
    def invoke(number: int) -> str:
        sent = {"data": {"inputs": {"messages": [{"role": "user", "content": f"mock: say {number}"}]}}}
        return content(httpx.post(f"{server.url}/invoke", json=sent, timeout=60).json())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(invoke, range(4))) == ["0", "1", "2", "3"]


def test_what_another_turn_still_says_after_a_prompt_was_sent_is_not_part_of_its_turn(server: RunningServer) -> None:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        talk = Talk(api)
        talk.turn("mock: say FIRST")
        own = talk.turn(SECOND)
        log = api.get(f"/sessions/{talk.id}/events").json()["events"]
    receipt = PromptReceipt(prompt_id="prm_x", disposition="started", turn_id=own[0]["data"]["turn_id"])
    turn = PromptTurn(receipt, after=3)  # somewhere in the first turn
    fed: list[str] = []
    for event in (decode_event(json.dumps(found).encode()) for found in log):
        turn.feed(event)
        fed += [event.event_id] if turn.has_begun and event.sequence <= own[-1]["sequence"] else []
    assert fed == [event["event_id"] for event in own]
    assert turn.is_over
