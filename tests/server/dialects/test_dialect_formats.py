"""One turn of the log in every form that `?format=` offers, word for word."""

import json
from typing import Any

import httpx
import pytest

from tests.support.talk import Talk, stream

SCRIPT = 'mock: think Hm\nmock: say Hi\nmock: tool search {"q": 1} -> 3 results'
UNTIMED = frozenset({"_meta", "timestamp", "ts", "updatedAt"})


@pytest.fixture(scope="module")
def talk(server: Any) -> Any:
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api:
        found = Talk(api)
        found.turn(SCRIPT)
        yield found


def shown(talk: Talk, form: str) -> list[dict[str, Any]]:
    """The messages of a page, without what differs from run to run."""
    page = talk.api.get(f"/sessions/{talk.id}/events", params={"format": form}).json()
    return [{name: value for name, value in found.items() if name not in UNTIMED} for found in page["events"]]


def turn_id(talk: Talk) -> str:
    return str(talk.api.get(f"/sessions/{talk.id}/turns").json()["turns"][0]["turnId"])


def user_item(talk: Talk) -> str:
    return str(next(event["data"]["item"]["item_id"] for event in talk.events if event["type"] == "item.started"))


def test_as_acp_updates(talk: Talk) -> None:
    call = {"toolCallId": "itm_1_2", "title": "search", "kind": "search", "rawInput": {"q": 1}}
    message = {"messageId": "itm_1_1"}
    updates = shown(talk, "acp")
    assert [found["sessionUpdate"] for found in updates[:2]] == ["session_info_update", "user_message_chunk"]
    assert updates[2:] == [
        {"sessionUpdate": "current_mode_update", "currentModeId": "build"},
        {"sessionUpdate": "agent_thought_chunk", **message, "content": {"type": "text", "text": "Hm"}},
        {"sessionUpdate": "agent_message_chunk", **message, "content": {"type": "text", "text": "Hi"}},
        {"sessionUpdate": "tool_call", "status": "in_progress", **call},
        {"sessionUpdate": "tool_call_update", "status": "in_progress", **call},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "itm_1_2",
            "status": "completed",
            "rawOutput": {"output": "3 results"},
            "content": [{"type": "content", "content": {"type": "text", "text": "3 results"}}],
        },
    ]


def test_as_updates_of_the_second_acp(talk: Talk) -> None:
    call = {"toolCallId": "itm_1_2", "title": "search", "kind": "search", "rawInput": {"q": 1}}
    message = {"messageId": "itm_1_1"}
    updates = [found for found in shown(talk, "acp2") if found["sessionUpdate"] != "session_info_update"]
    assert updates == [
        {"sessionUpdate": "state_update", "state": "running"},
        {
            "sessionUpdate": "user_message_chunk",
            "messageId": user_item(talk),
            "content": {"type": "text", "text": SCRIPT},
        },
        {"sessionUpdate": "agent_thought_chunk", **message, "content": {"type": "text", "text": "Hm"}},
        {"sessionUpdate": "agent_message_chunk", **message, "content": {"type": "text", "text": "Hi"}},
        {"sessionUpdate": "tool_call_update", "status": "in_progress", **call},
        {"sessionUpdate": "tool_call_update", "status": "in_progress", **call},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "itm_1_2",
            "status": "completed",
            "rawOutput": {"output": "3 results"},
            "content": [{"type": "content", "content": {"type": "text", "text": "3 results"}}],
        },
        {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"},
    ]


def test_as_the_frames_of_the_agent(talk: Talk) -> None:
    logged = talk.api.get(f"/sessions/{talk.id}/events", params={"includeRaw": True}).json()["events"]
    page = talk.api.get(f"/sessions/{talk.id}/events", params={"format": "raw"}).json()
    frames = list({json.dumps(found["raw"]): found["raw"] for found in logged if "raw" in found}.values())
    assert page["events"] == frames
    assert len(frames) > 3
    later = talk.api.get(f"/sessions/{talk.id}/events", params={"format": "raw", "offset": page["nextOffset"] - 3})
    assert later.json()["events"] == [found for found in frames if found in later.json()["events"]]


def test_as_ag_ui_events(talk: Talk) -> None:
    thought, text, call, run = "itm_1_1-reasoning", "itm_1_1", "itm_1_2", {"threadId": talk.id, "runId": turn_id(talk)}
    user = user_item(talk)
    assert shown(talk, "agui") == [
        {"type": "RUN_STARTED", **run},
        {"type": "TEXT_MESSAGE_START", "messageId": user, "role": "user"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": user, "delta": SCRIPT},
        {"type": "TEXT_MESSAGE_END", "messageId": user},
        {"type": "REASONING_START", "messageId": thought},
        {"type": "REASONING_MESSAGE_START", "messageId": thought, "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": thought, "delta": "Hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": thought},
        {"type": "REASONING_END", "messageId": thought},
        {"type": "TEXT_MESSAGE_START", "messageId": text, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": text, "delta": "Hi"},
        {"type": "TEXT_MESSAGE_END", "messageId": text},
        {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "search"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": '{"q":1}'},
        {"type": "TOOL_CALL_END", "toolCallId": call},
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": "itm_1_2_result",
            "toolCallId": call,
            "content": "3 results",
            "role": "tool",
        },
        {"type": "RUN_FINISHED", **run, "outcome": {"type": "success"}, "result": {"stopReason": "end_turn"}},
    ]


def test_as_messages_of_a_workflow_execution(talk: Talk) -> None:
    def token(task: str, data: Any) -> dict[str, Any]:
        return {"event": "Token", "data": {"taskExecutionId": task, "data": data}}

    def task(name: str, status: str) -> dict[str, Any]:
        return {"event": "TaskState", "data": {"taskExecutionId": name, "status": status}}

    def state(key: str, value: Any) -> dict[str, Any]:
        return {"event": "WorkflowState", "data": {"key": key, "value": value}}

    call = {"id": "itm_1_2", "name": "search"}
    assert shown(talk, "workflow") == [
        state("status", "pending"),
        state("status", "running"),
        state("currentTurn", 1),
        task("itm_1_1", "RUNNING"),
        token("itm_1_1", {"type": "thinking_delta", "delta": "Hm"}),
        token("itm_1_1", "Hi"),
        task("itm_1_1", "COMPLETED"),
        task("itm_1_2", "RUNNING"),
        token("itm_1_2", {"type": "tool_call_start", "tool_call": {**call, "arguments": {"q": 1}}}),
        task("itm_1_2", "COMPLETED"),
        token(
            "itm_1_2",
            {"type": "tool_call_end", "tool_call": call, "result": {"content": "3 results", "is_error": False}},
        ),
        state("status", "waiting_for_input"),
    ]


def test_as_flat_lines(talk: Talk) -> None:
    turn = turn_id(talk)
    assert shown(talk, "flat") == [
        {"type": "status", "status": "provisioning"},
        {"type": "status", "status": "running"},
        {"type": "log", "level": "info", "message": f"turn {turn} began"},
        {"type": "log", "level": "info", "message": f"user: {SCRIPT}"},
        {"type": "log", "level": "info", "message": "Hi"},
        {"type": "log", "level": "info", "message": 'tool search: {"q":1}'},
        {"type": "log", "level": "info", "message": "result: 3 results"},
        {"type": "log", "level": "info", "message": f"turn {turn} ended: completed"},
    ]


@pytest.mark.parametrize("form", ["acp", "agui", "workflow", "flat"])
def test_a_stream_tells_the_same_as_a_page(talk: Talk, form: str) -> None:
    page = talk.api.get(f"/sessions/{talk.id}/events", params={"format": form}).json()["events"]
    told = stream(talk.api, f"/sessions/{talk.id}/events/sse", format=form)
    assert [next(told) for _ in page] == page
