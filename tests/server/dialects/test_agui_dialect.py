"""AG-UI clients run agents, answer interrupts and hear errors in their own protocol."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer

Event = dict[str, Any]


@pytest.fixture
def agui(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
def thread() -> str:
    return f"thread-{uuid4()}"


def said(text: Any, role: str = "user") -> dict[str, Any]:
    return {"id": str(uuid4()), "role": role, "content": text}


def body(thread: str, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    base = {"threadId": thread, "runId": f"run-{uuid4()}", "messages": list(messages)}
    return {**base, "tools": [], "context": [], "state": {}, "forwardedProps": {}, **more}


def run(client: httpx.Client, wanted: dict[str, Any]) -> list[Event]:
    with client.stream("POST", "/agui", json=wanted, headers={"accept": "text/event-stream"}) as answer:
        assert answer.status_code == 200, answer.read()
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    for event in events:
        event.pop("timestamp", None)
    return events


def prompt(client: httpx.Client, thread: str, text: str) -> list[Event]:
    return run(client, body(thread, said(text)))


def types(events: list[Event]) -> list[str]:
    return [event["type"] for event in events]


def spoken(events: list[Event]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def test_a_run_tells_reasoning_tools_and_text(agui: httpx.Client, thread: str) -> None:
    wanted = body(
        thread, said('mock: think Hm\nmock: tool search {"q": 1} -> 3 results\nmock: say Hi\nmock: usage 1 2')
    )
    events = run(agui, wanted)
    names = {"threadId": thread, "runId": wanted["runId"]}
    thought, call = events[1]["messageId"], next(e["toolCallId"] for e in events if e["type"] == "TOOL_CALL_START")
    result = next(event["messageId"] for event in events if event["type"] == "TOOL_CALL_RESULT")
    text = next(event["messageId"] for event in events if event["type"] == "TEXT_MESSAGE_START")
    finished = events.pop()
    assert finished["usage"] == [{"inputTokens": 1, "outputTokens": 2}]
    assert {**finished, "usage": []} == {
        "type": "RUN_FINISHED",
        **names,
        "outcome": {"type": "success"},
        "result": {"stopReason": "end_turn"},
        "usage": [],
    }
    assert events == [
        {"type": "RUN_STARTED", **names},
        {"type": "REASONING_START", "messageId": thought},
        {"type": "REASONING_MESSAGE_START", "messageId": thought, "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": thought, "delta": "Hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": thought},
        {"type": "REASONING_END", "messageId": thought},
        {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "search"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": '{"q":1}'},
        {"type": "TOOL_CALL_END", "toolCallId": call},
        {"type": "TOOL_CALL_RESULT", "messageId": result, "toolCallId": call, "content": "3 results", "role": "tool"},
        {"type": "TEXT_MESSAGE_START", "messageId": text, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": text, "delta": "Hi"},
        {"type": "TEXT_MESSAGE_END", "messageId": text},
    ]


def test_a_thread_is_a_session_that_remembers(agui: httpx.Client, thread: str) -> None:
    prompt(agui, thread, "mock: say one")
    assert "2" in spoken(prompt(agui, thread, "mock: recall"))
    assert agui.get(f"/api/v1/sessions/{thread}").json()["turnCount"] == 2


def test_a_permission_interrupts_the_run_and_a_resume_goes_on(agui: httpx.Client, thread: str) -> None:
    events = prompt(agui, thread, "mock: say before\nmock: permission delete the notes\nmock: say after")
    assert spoken(events) == "before"
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    assert (interrupt["reason"], interrupt["message"]) == ("confirmation", "delete the notes")
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    resumed = run(agui, body(thread, resume=resume))
    assert "after" in spoken(resumed)
    assert (types(resumed)[0], resumed[-1]["outcome"]) == ("RUN_STARTED", {"type": "success"})
    replayed = run(agui, body(thread, resume=resume))
    assert types(replayed) == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize("entry", [{"status": "resolved", "payload": {"approved": False}}, {"status": "cancelled"}])
def test_a_refused_permission_is_heard_by_the_agent(agui: httpx.Client, thread: str, entry: dict[str, Any]) -> None:
    (interrupt,) = prompt(agui, thread, "mock: permission delete\nmock: say done")[-1]["outcome"]["interrupts"]
    resumed = run(agui, body(thread, resume=[{"interruptId": interrupt["id"], **entry}]))
    assert "done" not in spoken(resumed)


@pytest.mark.parametrize("payload", ["tea", {"answers": [["tea"]]}], ids=str)
def test_a_question_is_answered(agui: httpx.Client, thread: str, payload: Any) -> None:
    (interrupt,) = prompt(agui, thread, "mock: question Tea or coffee? | tea | coffee")[-1]["outcome"]["interrupts"]
    assert (interrupt["reason"], interrupt["metadata"]["options"]) == ("input_required", ["tea", "coffee"])
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}]
    assert "You answered: tea" in spoken(run(agui, body(thread, resume=resume)))


def test_a_run_against_the_rules_of_interrupts_is_an_error(agui: httpx.Client, thread: str) -> None:
    (interrupt,) = prompt(agui, thread, "mock: permission delete")[-1]["outcome"]["interrupts"]
    wrong: list[tuple[dict[str, Any], str]] = [
        (body(thread, said("mock: say hi")), "interrupt_pending"),
        (body(thread, resume=[{"interruptId": "nobody", "status": "resolved"}]), "unknown_interrupt"),
        (
            body(thread, resume=[{"interruptId": interrupt["id"], "status": "resolved", "payload": 5}]),
            "invalid_payload",
        ),
        (body("elsewhere", resume=[{"interruptId": interrupt["id"], "status": "cancelled"}]), "unknown_interrupt"),
    ]
    for wanted, code in wrong:
        (event,) = run(agui, wanted)
        assert (event["type"], event["code"]) == ("RUN_ERROR", code)
    assert agui.get(f"/api/v1/sessions/{thread}").json()["openAsks"] == 1


def test_a_failed_turn_is_a_run_error_that_says_why(agui: httpx.Client, thread: str) -> None:
    event = prompt(agui, thread, "mock: error The model is overloaded")[-1]
    assert (event["type"], event["message"]) == ("RUN_ERROR", "The model is overloaded")


def test_plans_and_terminal_output_are_told(agui: httpx.Client, thread: str) -> None:
    events = prompt(agui, thread, "mock: plan A | B\nmock: terminal compiling")
    plan = next(event for event in events if event["type"] == "ACTIVITY_SNAPSHOT")
    assert (plan["activityType"], plan["content"]["entries"][1]["content"]) == ("PLAN", "B")
    custom = next(event for event in events if event["type"] == "CUSTOM")
    assert (custom["name"], "compiling" in custom["value"]["data"]) == ("terminal.output", True)


def test_what_was_said_before_a_new_thread_reaches_the_agent(agui: httpx.Client, thread: str) -> None:
    history = [said("Be brief.", "system"), said("I am Ada.", "user"), said("Hello Ada.", "assistant")]
    run(agui, body(thread, *history, said("mock: say ok")))
    (first, *_) = agui.get(f"/api/v1/sessions/{thread}/messages").json()["messages"]
    told = "".join(part["text"] for part in first["item"]["content"])
    assert all(text in told for text in ("I am Ada.", "Hello Ada."))


def test_tools_thoughts_and_files_of_an_imported_thread_are_kept(agui: httpx.Client, thread: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": 1}'}}
    picture = {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}
    history = [
        said([{"type": "text", "text": "Look."}, picture]),
        said("Hm", "reasoning"),
        {**said("I search.", "assistant"), "toolCalls": [call, {**call, "id": "c2"}]},
        {"id": "t1", "role": "tool", "content": "3 results", "toolCallId": "c1"},
        {"id": "t2", "role": "tool", "content": "", "error": "no net", "toolCallId": "c2"},
    ]
    run(agui, body(thread, *history, said("mock: say ok")))
    shown = agui.post("/load-session", json={"session_id": thread}).json()["messages"]
    tool = {"type": "tool-search", "input": {"q": 1}}
    assert [found["parts"] for found in shown[1:3]] == [
        [{"type": "reasoning", "text": "Hm"}],
        [
            {"type": "text", "text": "I search."},
            {**tool, "toolCallId": "c1", "state": "output-available", "output": "3 results"},
            {**tool, "toolCallId": "c2", "state": "output-error", "errorText": "no net"},
        ],
    ]
    assert [part["type"] for part in shown[0]["parts"]] == ["text", "file"]
    (first, *_) = agui.get(f"/api/v1/sessions/{thread}/messages").json()["messages"]
    assert [part["type"] for part in first["item"]["content"]] == ["text", "image", "text"]


def test_system_messages_are_the_instructions_of_a_new_thread(agui: httpx.Client, thread: str) -> None:
    told = [said("Be brief.", "system"), said("Be kind.", "developer")]
    assert spoken(run(agui, body(thread, *told, said("mock: instructions")))) == "Be brief.\n\nBe kind."
    run(agui, body(thread, said("Be loud.", "system"), said("mock: say ok")))
    stored = agui.get(f"/api/v1/sessions/{thread}/messages").json()["messages"]
    prompts = [entry["item"]["content"] for entry in stored if entry["item"]["role"] == "user"]
    assert [len(parts) for parts in prompts] == [1, 2]
    assert "Be loud." in prompts[1][0]["text"]


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"threadId": "a b"}, "invalid_request", "threadId"),
        ({"threadId": None}, "invalid_request", "threadId"),
        ({"messages": []}, "invalid_request", "messages"),
        ({"messages": [said("hi", "assistant")]}, "invalid_request", "messages"),
        ({"messages": [said(" ")]}, "invalid_request", "messages"),
        ({"messages": [said([{"type": "video"}])]}, "invalid_request", "messages"),
        (
            {
                "messages": [
                    said([{"type": "image", "source": {"type": "data", "value": "?", "mimeType": "image/png"}}])
                ]
            },
            "invalid_request",
            "messages",
        ),
        ({"forwardedProps": {"agent": "nobody"}}, "unsupported_agent", None),
        ({"resume": [{"status": "resolved"}]}, "invalid_request", "resume"),
    ],
)
def test_a_bad_run_is_refused_and_starts_no_session(
    agui: httpx.Client, thread: str, change: dict[str, Any], code: str, field: str | None
) -> None:
    wanted = {**body(thread, said("mock: say hi")), **change}
    assert_problem(agui.post("/agui", json=wanted), code, field=field)
    assert_problem(agui.get(f"/api/v1/sessions/{thread}"), "session_not_found")


def test_a_client_that_leaves_does_not_stop_the_run(agui: httpx.Client, thread: str) -> None:
    wanted = body(thread, said("mock: say begun\nmock: wait 0.3\nmock: say finished"))
    with agui.stream("POST", "/agui", json=wanted) as answer:
        next(line for line in answer.iter_lines() if "TEXT_MESSAGE_CONTENT" in line)
    events = prompt(agui, thread, "mock: say next")
    assert spoken(events) == "next"
    assert [turn["outcome"] for turn in agui.get(f"/api/v1/sessions/{thread}/turns").json()["turns"]] == [
        "completed"
    ] * 2


def test_a_prompt_that_cannot_be_taken_leaves_no_thread_behind(agui: httpx.Client, thread: str) -> None:
    source = {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/nonsense"}
    answer = agui.post("/agui", json=body(thread, said([{"type": "image", "source": source}])))
    assert_problem(answer, "unprocessable")
    assert_problem(agui.get(f"/api/v1/sessions/{thread}"), "session_not_found")
