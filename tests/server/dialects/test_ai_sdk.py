"""The chat endpoints: sessions are minted, found and branched, answers come in the form that was asked for."""

import base64
import functools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.chatting import SSE, Body, ask, assert_status, chunks, content, envelope, load, message, words
from tests.support.patience import wait_until
from tests.support.serving import RunningServer
from tests.support.talk import stream

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


@pytest.fixture
def root(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def key() -> str:
    return f"chat-{uuid4().hex}"


# Sessions


@pytest.mark.parametrize("prefix", ["", "/api/v1"])
def test_a_new_session_is_minted_told_first_and_goes_on_with_its_history(root: httpx.Client, prefix: str) -> None:
    first = message("mock: say Paris.")
    answer = root.post(f"{prefix}/messages", json=envelope(first), headers=SSE)
    start = chunks(answer)[0]
    session = start["messageMetadata"]["sessionId"]
    assert start["type"] == "start"
    assert answer.headers["x-session-id"] == session
    history = root.post(f"{prefix}/load-session", json={"session_id": session}).json()
    assert history["session_id"] == session
    assert words(history["messages"]) == [("user", "mock: say Paris."), ("assistant", "Paris.")]
    again = envelope(*history["messages"], message("mock: recall"), session=session)
    answered = chunks(root.post(f"{prefix}/messages", json=again, headers=SSE))
    assert "".join(chunk.get("delta", "") for chunk in answered) == "I remember 2 user turns, this one included."


def test_a_stream_has_the_headers_and_the_bytes_of_the_protocol(root: httpx.Client) -> None:
    answer = root.post("/messages", json=envelope(message("mock: say Hi.")), headers=SSE)
    expected = {
        "content-type": "text/event-stream",
        "x-vercel-ai-ui-message-stream": "v1",
        "cache-control": "no-cache",
        "connection": "keep-alive",
        "x-accel-buffering": "no",
    }
    assert {name: answer.headers[name] for name in expected} == expected
    assert 'data: {"type":"text-delta","id":"t1","delta":"Hi."}\n\n' in answer.text
    assert answer.text.endswith("\n\ndata: [DONE]\n\n")
    assert [chunk["type"] for chunk in chunks(answer)] == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]


def test_the_input_of_a_tool_is_shown_while_the_agent_writes_it(root: httpx.Client, key: str) -> None:
    order = message('mock: type-tool search {"query": "ostler"} -> 3 results')
    told = chunks(root.post("/messages", json=envelope(order, session=key), headers=SSE))
    pieces = [chunk["inputTextDelta"] for chunk in told if chunk["type"] == "tool-input-delta"]
    assert pieces == ['{"query": ', '"ostler"}']
    kinds = [chunk["type"] for chunk in told if chunk["type"].startswith("tool-")]
    start, *deltas, available, output = kinds
    assert (start, available, output) == ("tool-input-start", "tool-input-available", "tool-output-available")
    assert set(deltas) == {"tool-input-delta"}
    [whole] = [chunk["input"] for chunk in told if chunk["type"] == "tool-input-available"]
    assert whole == {"query": "ostler"}
    [call] = [part for part in load(root, key)[-1]["parts"] if part["type"] == "tool-search"]
    assert (call["state"], call["input"]) == ("output-available", whole)
    items = root.get(f"/api/v1/sessions/{key}/messages").json()
    assert '"arguments": "{\\"query\\": \\"ostler\\"}"' in json.dumps(items)


def test_an_unknown_id_names_the_new_session_and_a_known_one_goes_on(root: httpx.Client, key: str) -> None:
    assert ask(root, message("mock: say one"), session=key)["session_id"] == key
    second = ask(root, message("mock: recall"), session=key)
    assert (second["session_id"], content(second)) == (key, "I remember 2 user turns, this one included.")
    assert root.get(f"/api/v1/sessions/{key}").json()["turnCount"] == 2


def test_turns_that_create_the_same_session_at_once_share_it(root: httpx.Client, key: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, root, message(f"mock: say {number}"), session=key) for number in range(4)]
        assert {found.result()["session_id"] for found in asked} == {key}
    assert root.get(f"/api/v1/sessions/{key}").json()["turnCount"] == 4
    assert {content(found.result()) for found in asked} == {"0", "1", "2", "3"}


def test_a_json_answer_has_the_fields_of_the_protocol(root: httpx.Client, key: str) -> None:
    body = ask(root, message("mock: say One.\nmock: tool search {} -> 3\nmock: say Two."), session=key)
    assert (len(body.pop("trace_id")), len(body.pop("span_id"))) == (32, 16)
    assert body == {
        "session_id": key,
        "status": {"code": 200},
        "data": {"outputs": {"role": "assistant", "content": "One.\n\nTwo."}},
    }


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
        ("text/*", "text/event-stream"),
        ("text/event-stream, application/json;q=0.5", "text/event-stream"),
        ("application/json, text/event-stream", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
    ],
)
def test_the_accept_header_chooses_the_form(root: httpx.Client, accept: str | None, form: str) -> None:
    headers = {} if accept is None else {"accept": accept}
    request = root.build_request("POST", "/messages", json=envelope(message("mock: say hi")), headers=headers)
    if accept is None:
        del request.headers["accept"]
    assert root.send(request).headers["content-type"] == form


@pytest.mark.parametrize("path", ["/messages", "/api/chat"])
def test_the_body_of_a_stock_client_streams_whatever_it_accepts(root: httpx.Client, key: str, path: str) -> None:
    body = {"id": key, "messages": [message("mock: say hi")], "trigger": "submit-message"}
    answer = root.post(path, json=body, headers={"accept": "*/*"})
    assert chunks(answer)[0]["messageMetadata"] == {"sessionId": key}


def test_unknown_keys_and_parts_of_a_client_are_passed_over(root: httpx.Client, key: str) -> None:
    sent = message("mock: say hi", metadata={"a": 1}, annotations=[])
    sent["parts"] += [
        {"type": "data-ours", "data": None},
        {"type": "reasoning", "text": "hm", "id": "r1", "state": "done"},
    ]
    body = {"id": key, "messages": [sent], "tools": {}, "system": "", "config": {}, "callSettings": {}}
    assert "hi" in root.post("/api/chat", json=body).text


# Agents


def test_the_agent_is_configured_by_the_request(root: httpx.Client, key: str) -> None:
    agent = {
        "harness": "mock",
        "model": "mock-large",
        "variant": "high",
        "mode": "build",
        "permissions": "allow",
        "instructions": "Be brief.",
        "tools": {"files": {"type": "stdio", "command": "true"}},
        "sandbox": "local",
    }
    answer = ask(root, message("mock: permission delete x\nmock: say done"), session=key, parameters={"agent": agent})
    assert content(answer).endswith("done")
    session = root.get(f"/api/v1/sessions/{key}").json()
    shown = ("model", "variant", "mode", "instructions", "permissionMode", "mcpServers")
    assert {name: session[name] for name in shown} == {
        "model": "mock-large",
        "variant": "high",
        "mode": "build",
        "instructions": "Be brief.",
        "permissionMode": "bypass",
        "mcpServers": ["files"],
    }
    assert words(load(root, key))[0] == ("user", "mock: permission delete x\nmock: say done")


def test_system_messages_are_the_instructions_of_a_new_session(root: httpx.Client, key: str) -> None:
    system = [message("Be brief.", "system"), message("Be kind.", "system")]
    parameters = {"agent": {"harness": "mock", "instructions": "Speak French."}}
    answer = ask(root, *system, message("mock: instructions"), session=key, parameters=parameters)
    assert content(answer) == "Speak French.\n\nBe brief.\n\nBe kind."


def test_other_instructions_than_those_of_the_session_go_along_with_the_message(root: httpx.Client, key: str) -> None:
    brief, kind = message("Be brief.", "system"), message("Be kind.", "system")
    for system in (brief, brief, kind):
        assert content(ask(root, system, message("mock: instructions"), session=key)) == "Be brief."
    stored = root.get(f"/api/v1/sessions/{key}/messages").json()["messages"]
    prompts = [entry["item"]["content"] for entry in stored if entry["item"]["role"] == "user"]
    assert [len(parts) for parts in prompts] == [1, 1, 2]
    assert "Be kind." in prompts[2][0]["text"]
    assert ("user", "mock: instructions") in words(load(root, key))[-2:]


def test_a_branch_of_a_conversation_keeps_its_instructions(root: httpx.Client, key: str) -> None:
    ask(root, message("Be brief.", "system"), message("mock: say one"), session=key)
    told = [message("mock: say another"), message("another", "assistant"), message("mock: instructions")]
    assert content(ask(root, *told, session=key)) == "Be brief."


def test_a_reference_can_name_an_agent(root: httpx.Client, key: str) -> None:
    body = {**envelope(message("mock: say hi"), session=key), "references": {"agent": {"slug": "mock"}}}
    assert root.post("/messages", json=body).status_code == 200
    assert_status(root.post("/messages", json={**body, "references": {"workflow": {"id": "1"}}}), 422, "unprocessable")


def test_inputs_are_told_to_the_agent_and_are_no_part_of_the_conversation(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say hi"), session=key, inputs={"record": 17})
    prompt = root.get(f"/api/v1/sessions/{key}/messages").json()["messages"][0]["item"]["content"]
    assert '"record": 17' in prompt[0]["text"]
    assert root.get(f"/api/v1/sessions/{key}").json()["title"] == "mock: say hi"
    assert words(load(root, key)) == [("user", "mock: say hi"), ("assistant", "hi")]


def test_a_conversation_stays_with_its_agent(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say hi"), session=key)
    other = envelope(message("hi"), session=key, parameters={"agent": {"harness": "codex"}})
    assert_status(root.post("/messages", json=other), 409, "session_already_exists")


def test_images_and_files_reach_the_agent_and_come_back(root: httpx.Client, key: str) -> None:
    image = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{PNG}"}
    note = {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain,hello%20you"}
    link = {"type": "file", "mediaType": "application/pdf", "filename": "b.pdf", "url": "https://example.org/b.pdf"}
    asked = {"role": "user", "parts": [{"type": "text", "text": "Look"}, image, note, link]}
    ask(root, asked, session=key)
    prompt = root.get(f"/api/v1/sessions/{key}/messages").json()["messages"][0]["item"]["content"]
    assert [part["type"] for part in prompt] == ["text", "text", "image"]
    assert "hello you" in prompt[0]["text"]
    stored = load(root, key)[0]["parts"]
    assert stored[:2] == [{"type": "text", "text": "Look"}, image]
    assert [part["filename"] for part in stored[2:]] == ["a.txt", "b.pdf"]
    answers = load(root, key)
    assert "2 user turns" in content(ask(root, *answers, message("mock: recall"), session=key))


# History


def test_the_whole_conversation_or_only_the_new_message_both_go_on(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say one"), session=key)
    ask(root, message("mock: say two"), session=key)
    whole = [
        *(message("mock: say one"), message("one", "assistant")),
        *(message("mock: say two"), message("two", "assistant")),
    ]
    assert "3 user turns" in content(ask(root, *whole, message("mock: recall"), session=key))
    lone = [message("Be kind.", "system"), message("mock: recall")]
    assert "4 user turns" in content(ask(root, *lone, session=key))


def test_a_client_that_saw_only_half_of_an_answer_goes_on(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say one two three"), session=key)
    half = [message("mock: say one two three"), message("one t", "assistant")]
    assert "2 user turns" in content(ask(root, *half, message("mock: recall"), session=key))


@pytest.mark.parametrize(
    "told",
    [
        [("user", "mock: say uno"), ("assistant", "one"), ("user", "mock: recall")],
        [("user", "mock: say one"), ("assistant", "another"), ("user", "mock: recall")],
        [
            ("user", "mock: say one"),
            ("assistant", "one"),
            ("user", "more"),
            ("assistant", "more"),
            ("user", "mock: recall"),
        ],
    ],
)
def test_another_conversation_gets_a_branch_that_knows_it(
    root: httpx.Client, key: str, told: list[tuple[str, str]]
) -> None:
    ask(root, message("mock: say one"), session=key)
    sent = [message(text, role) for role, text in told]
    answer = ask(root, *sent, session=key)
    assert (answer["session_id"], content(answer)) == (
        f"{key}:fork-2",
        "I remember 1 user turn, this one included.",
    )
    assert words(load(root, f"{key}:fork-2"))[:-1] == told
    assert root.get(f"/api/v1/sessions/{key}").json()["turnCount"] == 1
    branch, trunk = (root.get(f"/api/v1/sessions/{name}").json() for name in (f"{key}:fork-2", key))
    assert (branch["cwd"], branch["labels"]) == (trunk["cwd"], {"forked_from": trunk["id"]})
    told_again = [*sent, message(content(answer), "assistant"), message("mock: recall")]
    assert "2 user turns" in content(ask(root, *told_again, session=key))
    assert words(load(root, key)) == words(load(root, f"{key}:fork-2"))


def test_a_conversation_from_elsewhere_is_brought_along(root: httpx.Client, key: str) -> None:
    told = [message("Be kind.", "system"), message("My name is Ada."), message("Hello Ada.", "assistant")]
    ask(root, *told, message("mock: say hi"), session=key)
    prompt = root.get(f"/api/v1/sessions/{key}/messages").json()["messages"][0]["item"]["content"]
    assert all(text in prompt[0]["text"] for text in ("My name is Ada.", "Hello Ada."))
    assert root.get(f"/api/v1/sessions/{key}").json()["instructions"] == "Be kind."
    stored = load(root, key)
    assert words(stored) == [
        ("user", "My name is Ada."),
        ("assistant", "Hello Ada."),
        ("user", "mock: say hi"),
        ("assistant", "hi"),
    ]
    assert [found["id"] for found in stored[:2]] == [told[1]["id"], told[2]["id"]]
    assert "2 user turns" in content(ask(root, *stored, message("mock: recall"), session=key))


TOOL = {
    "type": "tool-search",
    "toolCallId": "call_1",
    "state": "output-available",
    "input": {"query": "tea"},
    "output": "3 leaves",
}
PICTURE = {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": f"data:image/png;base64,{PNG}"}
NOTE = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,RGFyamVlbGluZw=="}
THOUGHT = {"type": "reasoning", "text": "Hm, tea."}
BROUGHT: list[Body] = [
    message("Look.", parts=[{"type": "text", "text": "Look."}, PICTURE, NOTE]),
    message("", "assistant", parts=[{"type": "step-start"}, THOUGHT, TOOL, {"type": "text", "text": "Found it."}]),
]


def test_tools_thoughts_and_files_of_a_conversation_from_elsewhere_are_kept(root: httpx.Client, key: str) -> None:
    ask(root, *BROUGHT, message("mock: say hi"), session=key)
    prompt = root.get(f"/api/v1/sessions/{key}/messages").json()["messages"][0]["item"]["content"]
    assert all(text in prompt[0]["text"] for text in ("3 leaves", "Hm, tea.", "Darjeeling", "a.png"))
    assert PNG not in prompt[0]["text"]
    assert [part["type"] for part in prompt] == ["text", "image", "text"]
    stored = load(root, key)
    assert stored[:2] == BROUGHT
    assert words(stored[2:]) == [("user", "mock: say hi"), ("assistant", "I got 1 image.\nhi")]
    assert "2 user turns" in content(ask(root, *stored, message("mock: recall"), session=key))


def test_a_branch_keeps_tools_and_thoughts_of_what_was_said_before(root: httpx.Client, key: str) -> None:
    ask(root, message('mock: tool search {"q": 1} -> found\nmock: say one'), session=key)
    told = load(root, key)
    other = [*told[:1], {**told[1], "parts": [*told[1]["parts"], {"type": "text", "text": "!"}]}]
    forked = ask(root, *other, message("mock: say two"), session=key)
    assert forked["session_id"] != key
    assert load(root, forked["session_id"])[:2] == [
        {name: value for name, value in found.items() if name != "metadata"} for found in other
    ]


def test_a_very_long_history_is_kept_whole_and_goes_on_in_its_session(root: httpx.Client, key: str) -> None:
    told = [message(f"{number} {'x' * 20_000}", role) for number in range(6) for role in ("user", "assistant")]
    ask(root, *told, message("mock: say hi"), session=key)
    loaded = load(root, key)
    assert words(loaded) == [*words(told), ("user", "mock: say hi"), ("assistant", "hi")]
    prompt = root.get(f"/api/v1/sessions/{key}/messages").json()["messages"][0]["item"]["content"]
    assert all(f"{number} xxx" in prompt[0]["text"] for number in range(6))
    for turn in (2, 3):
        answer = ask(root, *loaded, message("mock: recall"), session=key)
        assert (answer["session_id"], content(answer)) == (key, f"I remember {turn} user turns, this one included.")
        loaded = load(root, key)


def test_a_message_while_a_turn_runs_waits_for_its_own(root: httpx.Client, key: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, root, message("mock: stream 60 words 12/s"), session=key)
        wait_until(lambda: root.get(f"/api/v1/sessions/{key}").status_code == 200, what="the session exists")
        wait_until(lambda: root.get(f"/api/v1/sessions/{key}").json()["activity"] == "working", what="it works")
        answer = root.post("/messages", json=envelope(message("mock: say second"), session=key), headers=SSE)
        assert content(first.result()).endswith("w60 ")
    assert [chunk["delta"] for chunk in chunks(answer) if "delta" in chunk] == ["second"]


def test_a_conversation_with_messages_that_still_wait_goes_on(root: httpx.Client, key: str) -> None:
    running, waiting, last = (message(f"mock: stream {number} words 20/s") for number in (100, 2, 3))
    half = message("w1 w2", "assistant")
    told = [[running], [running, half, waiting], [running, half, waiting, last]]
    with ThreadPoolExecutor(3) as pool:
        for number, messages in enumerate(told):
            pool.submit(root.post, "/api/chat", json={"id": key, "messages": messages})
            wait_until(functools.partial(_has_taken, root, key, number + 1), what="it is taken")
    assert root.get(f"/api/v1/sessions/{key}").json()["turnCount"] == 3


def _has_taken(root: httpx.Client, key: str, count: int) -> bool:
    """Whether a session has so many prompts, also those that wait."""
    answer = root.get(f"/api/v1/sessions/{key}").json()
    return int(answer.get("turnCount", 0)) + int(answer.get("queueLength", 0)) >= count


def test_a_message_that_is_taken_back_ends_its_stream_with_an_error(root: httpx.Client, key: str) -> None:
    created = root.post("/api/v1/sessions", json={"agent": "mock", "key": key}).json()
    root.post(f"/api/v1/sessions/{created['id']}/messages", json={"message": "mock: wait 60"})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(root.post, "/api/chat", json={"id": key, "messages": [message("mock: say never")]})
        wait_until(lambda: root.get(f"/api/v1/sessions/{key}").json()["queueLength"] == 1, what="it waits")
        root.delete(f"/api/v1/sessions/{key}/queue")
        root.post(f"/api/chat/{key}/stop")
        answer = waiting.result()
    assert [chunk["type"] for chunk in chunks(answer)] == ["start", "error"]


# Resuming, stopping, waiting


def test_there_is_nothing_to_resume_of_a_chat_that_rests_or_is_unknown(root: httpx.Client, key: str) -> None:
    assert root.get(f"/api/chat/{key}/stream").status_code == 204
    ask(root, message("mock: say hi"), session=key)
    assert root.get(f"/api/chat/{key}/stream").status_code == 204
    assert root.get("/api/chat/not%20a%20key/stream").status_code == 204


def test_a_turn_is_resumed_whole_and_stopped_on_demand(root: httpx.Client, key: str) -> None:
    body = {"id": key, "messages": [message("mock: say first\nmock: wait 60")]}
    with root.stream("POST", "/api/chat", json=body) as answer:
        seen = next(line for line in answer.iter_lines() if "first" in line)
    with root.stream("GET", f"/api/chat/{key}/stream") as resumed:
        lines = resumed.iter_lines()
        assert json.loads(next(lines).removeprefix("data: "))["type"] == "start"
        assert any(line == seen for line in lines)
        assert root.post(f"/api/chat/{key}/stop").json()["interrupted"] is True
        rest = [line for line in lines if line]
    assert json.loads(rest[-2].removeprefix("data: "))["messageMetadata"]["outcome"] == "interrupted"
    assert rest[-1] == "data: [DONE]"


def test_the_same_message_again_while_it_is_answered_joins_its_turn(root: httpx.Client, key: str) -> None:
    ask(root, message("mock: say one"), session=key)
    told = [message("mock: say one"), message("one", "assistant"), message("mock: stream 100000 words 40/s")]
    body = {"id": key, "messages": told}
    with root.stream("POST", "/api/chat", json=body) as first:
        start = next(first.iter_lines())
    with root.stream("POST", "/api/chat", json={**body, "trigger": "regenerate-message"}) as again:
        assert next(again.iter_lines()) == start
    root.post(f"/api/chat/{key}/stop")
    assert root.get(f"/api/v1/sessions/{key}").json()["turnCount"] == 2


def test_a_json_client_hears_what_the_agent_waits_for(root: httpx.Client, key: str) -> None:
    body = ask(root, message("mock: say First.\nmock: permission delete x\nmock: say done"), session=key)
    assert body["status"] == {
        "code": 200,
        "message": "The agent wants permission to delete x.",
        "type": "urn:ostler:turn:waiting",
    }
    assert content(body) == "First."
    root.post(f"/api/chat/{key}/stop")


def test_a_failed_turn_is_a_failure_of_a_json_answer(root: httpx.Client, key: str) -> None:
    answer = root.post("/messages", json=envelope(message("mock: error overloaded"), session=key))
    status = assert_status(answer, 502, "agent_error")
    assert (status["message"], answer.json()["session_id"]) == ("overloaded", key)


def test_a_stream_of_a_session_that_is_deleted_ends_properly(root: httpx.Client, key: str) -> None:
    body = {"id": key, "messages": [message("mock: say first\nmock: wait 60")]}
    with root.stream("POST", "/api/chat", json=body) as answer:
        lines = answer.iter_lines()
        next(line for line in lines if "first" in line)
        root.delete(f"/api/v1/sessions/{key}")
        rest = [line for line in lines if line]
    assert rest[-1] == "data: [DONE]"
    assert {json.loads(line.removeprefix("data: "))["type"] for line in rest[:-1]} & {"error", "finish"}


def test_a_repeated_request_with_a_key_is_done_once(root: httpx.Client, key: str) -> None:
    body = {"id": key, "messages": [message("mock: say hi")]}
    headers = {"idempotency-key": key}
    assert chunks(root.post("/api/chat", json=body, headers=headers))
    again = root.post("/api/chat", json=body, headers=headers)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (202, "true")
    assert root.get(f"/api/v1/sessions/{key}").json()["turnCount"] == 1


def test_an_approval_that_waits_is_in_the_resumed_stream_until_somebody_decides(root: httpx.Client, key: str) -> None:
    body = {"id": key, "messages": [message("mock: permission delete x\nmock: say done\nmock: wait 60")]}
    asked = chunks(root.post("/api/chat?sdk=6", json=body))
    assert [chunk["type"] for chunk in asked[-3:]] == ["tool-approval-request", "finish-step", "finish"]
    assert chunks(root.get(f"/api/chat/{key}/stream?sdk=6")) == asked
    root.post(f"/api/v1/sessions/{key}/permissions/{asked[-3]['approvalId']}/reply", json={"reply": "once"})
    for version, kinds in {"6": {"data-permission"}, "7": {"tool-approval-request", "tool-approval-response"}}.items():
        with root.stream("GET", f"/api/chat/{key}/stream", params={"sdk": version}) as resumed:
            seen = _until(resumed.iter_lines(), "done")
        assert kinds <= {chunk["type"] for chunk in seen}
    root.post(f"/api/chat/{key}/stop")


def _until(lines: Iterator[str], text: str) -> list[Body]:
    seen: list[Body] = []
    while text not in json.dumps(seen[-1:]):
        line = next(lines)
        seen += [json.loads(line[6:])] if line.startswith("data: ") else []
    return seen


# Invoke


def invoke(*messages: tuple[str, str], **data: Any) -> Body:
    told = [{"role": role, "content": text} for role, text in messages]
    return {"data": {"inputs": {"messages": told}, **data}}


@pytest.mark.parametrize("path", ["/invoke", "/api/v1/invoke"])
def test_invoke_answers_without_a_session_and_leaves_none(root: httpx.Client, path: str) -> None:
    answer = root.post(path, json=invoke(("user", "Hi"), ("assistant", "Hello"), ("user", "mock: say done")))
    body = answer.json()
    assert set(body) == {"trace_id", "span_id", "status", "data"}
    assert body["data"] == {"outputs": {"role": "assistant", "content": "done"}}
    gone = answer.headers["x-session-id"]
    assert root.get(f"/api/v1/sessions/{gone}").status_code == 404
    assert gone not in [found["key"] for found in root.get("/api/v1/sessions").json()["items"]]


def test_invoke_tells_the_agent_every_named_input(root: httpx.Client) -> None:
    body = invoke(("user", "mock: wait 600"))
    body["data"]["inputs"] |= {"ticket": "T-17", "doc": {"title": "Tea"}}
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(root.post, "/invoke", json=body)
        heard = (
            line for line in stream(root, "/api/v1/events", offset="0", stream="1") if line["type"] == "item.completed"
        )
        asked = next(event for event in heard if "T-17" in str(event["data"]["item"]["content"]))
        root.post(f"/api/v1/sessions/{asked['session_id']}/interrupt")
        assert answer.result().status_code == 200
    assert '"title": "Tea"' in asked["data"]["item"]["content"][0]["text"]


def test_invoke_refuses_an_agent_that_has_to_ask(root: httpx.Client) -> None:
    answer = root.post("/invoke", json=invoke(("user", "mock: permission delete x")))
    assert "bypass" in assert_status(answer, 422, "unprocessable")["message"]


def test_a_history_is_replayed_as_a_stream(root: httpx.Client) -> None:
    key = f"chat-{uuid4().hex}"
    first = chunks(root.post("/messages", json=envelope(message("mock: say Paris."), session=key), headers=SSE))
    second = chunks(root.post("/messages", json=envelope(message("mock: run echo hi"), session=key), headers=SSE))
    answer = root.post("/load-session", json={"session_id": key}, headers=SSE)
    assert (answer.headers["x-vercel-ai-ui-message-stream"], answer.headers["x-session-id"]) == ("v1", key)
    replayed = chunks(answer)
    told = [chunk for chunk in replayed if chunk["type"] == "data-message"]
    assert [(each["transient"], words([each["data"]])) for each in told] == [
        (True, [("user", "mock: say Paris.")]),
        (True, [("user", "mock: run echo hi")]),
    ]
    ids = [chunk["messageId"] for chunk in replayed if chunk["type"] == "start"]
    assert ids == [first[0]["messageId"], second[0]["messageId"]]
    assert [chunk["delta"] for chunk in replayed if chunk["type"] == "text-delta"] == ["Paris."]
    assert answer.text.endswith("data: [DONE]\n\n")
    refused = root.post("/load-session", json={"session_id": "nobody"}, headers=SSE)
    assert refused.status_code == 404
