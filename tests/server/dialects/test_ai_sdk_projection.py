"""A turn as a UI Message Stream: the chunks that events become, and the message a client makes of them."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ostler.server.dialects.ai_sdk.chunks import DONE, AnyChunk, encoded
from ostler.server.dialects.ai_sdk.folding import Folded
from ostler.server.dialects.ai_sdk.profile import SAFE, Profile, Version
from ostler.server.dialects.ai_sdk.projection import UiProjection, latest
from ostler.server.dialects.formats import Subject
from ostler.wire import events
from ostler.wire.events import AnyEvent
from ostler.wire.items import PlanEntry, PlanUpdatedData
from ostler.wire.parts import ReasoningPart, StatusPart, TextPart
from ostler.wire.workspace_events import ArtifactCreatedData
from tests.server.dialects.event_logs import Writer, call, item, logs, result, typed

SUBJECT = Subject(session_id="ses_1", key="sess_123", agent="mock")
APPENDIX_A = """\
data: {"type":"start","messageId":"msg_1","messageMetadata":{"sessionId":"sess_123"}}

data: {"type":"start-step"}

data: {"type":"tool-input-start","toolCallId":"call_1","toolName":"getWeather"}

data: {"type":"tool-input-available","toolCallId":"call_1","toolName":"getWeather","input":{"city":"Paris"}}

data: {"type":"tool-output-available","toolCallId":"call_1","output":{"weather":"sunny","temp":24}}

data: {"type":"finish-step"}

data: {"type":"start-step"}

data: {"type":"text-start","id":"t1"}

data: {"type":"text-delta","id":"t1","delta":"It is sunny "}

data: {"type":"text-delta","id":"t1","delta":"and 24°C in Paris."}

data: {"type":"text-end","id":"t1"}

data: {"type":"finish-step"}

data: {"type":"finish","messageMetadata":{"usage":{"input":820,"output":36,"cost":0.004}}}

data: [DONE]

"""
Chunk = dict[str, Any]


def project(log: list[AnyEvent], profile: Profile = SAFE) -> list[AnyChunk]:
    projection = UiProjection(SUBJECT, profile)
    return [chunk for event in log for chunk in projection.feed(event)]


def told(log: Writer, profile: Profile = SAFE) -> list[Chunk]:
    """What a client gets between the start of the step and its end."""
    chunks: list[Chunk] = [msgspec.json.decode(msgspec.json.encode(chunk)) for chunk in project(log.events, profile)]
    assert [chunk["type"] for chunk in chunks[:2]] == ["start", "start-step"]
    return chunks[2:]


def kinds(chunks: list[Chunk]) -> list[str]:
    return [chunk["type"] for chunk in chunks]


@pytest.fixture
def log() -> Writer:
    writer = Writer()
    writer.turn()
    return writer


def test_the_transcript_of_the_protocol_comes_out_byte_for_byte(log: Writer) -> None:
    log.started(call("1", "getWeather", '{"city":"Paris"}'))
    log.completed(call("1", "getWeather", '{"city":"Paris"}', status="completed"))
    log.started(item("1_result", "tool_result", parent="1"))
    log.completed(result("1", '{"weather":"sunny","temp":24}'))
    log.say("2", "It is sunny ", "and 24°C in Paris.")
    cost = events.Cost(amount=0.004, currency="USD")
    log.add("usage.updated", events.UsageUpdatedData(input_tokens=820, output_tokens=36, cost=cost))
    log.end()
    assert (b"".join(map(encoded, project(log.events))) + DONE).decode() == APPENDIX_A


def test_thoughts_and_text_of_one_item_are_blocks_one_after_the_other(log: Writer) -> None:
    log.started(item("1", "message"))
    log.grew("1", ReasoningPart(text="hm", visibility="private"))
    log.grew("1", TextPart(text="Yes."))
    log.grew("1", ReasoningPart(text="so", visibility="public"))
    log.completed(item("1", "message", TextPart(text="Yes."), status="completed"))
    assert told(log) == [
        {"type": "reasoning-start", "id": "r1"},
        {"type": "reasoning-delta", "id": "r1", "delta": "hm"},
        {"type": "reasoning-end", "id": "r1"},
        {"type": "text-start", "id": "t1"},
        {"type": "text-delta", "id": "t1", "delta": "Yes."},
        {"type": "text-end", "id": "t1"},
        {"type": "reasoning-start", "id": "r2"},
        {"type": "reasoning-delta", "id": "r2", "delta": "so"},
        {"type": "reasoning-end", "id": "r2"},
    ]


@pytest.mark.parametrize(
    ("final", "heard"),
    [
        ("Hello there", "Hello there"),
        ("Hello there, friend", "Hello there, friend"),
        ("Hello", "Hello there"),
        ("Hello\nthere", "Hello there"),
        ("Hello\nthere, friend", "Hello there, friend"),
        ("Goodbye", "Hello thereGoodbye"),
    ],
)
def test_the_final_content_adds_what_the_deltas_left_out(log: Writer, final: str, heard: str) -> None:
    log.started(item("1", "message"))
    log.grew("1", TextPart(text="Hello "))
    log.grew("1", TextPart(text="there"))
    log.completed(item("1", "message", TextPart(text=final), status="completed"))
    assert "".join(chunk.get("delta", "") for chunk in told(log)) == heard


def test_a_message_without_deltas_is_one_delta(log: Writer) -> None:
    log.completed(item("1", "message", TextPart(text="All at once."), status="completed"))
    assert kinds(told(log)) == ["text-start", "text-delta", "text-end"]


def test_the_input_of_a_tool_grows_until_it_is_whole(log: Writer) -> None:
    log.started(call("1", "search", ""))
    for piece in ('{"query":', ' "tea"', "}"):
        log.grew("1", typed("1", "search", piece))
    log.completed(call("1", "search", '{"query": "tea"}', status="completed"))
    log.completed(result("1", "3 results"))
    assert told(log) == [
        {"type": "tool-input-start", "toolCallId": "call_1", "toolName": "search"},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": '{"query":'},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": ' "tea"'},
        {"type": "tool-input-delta", "toolCallId": "call_1", "inputTextDelta": "}"},
        {"type": "tool-input-available", "toolCallId": "call_1", "toolName": "search", "input": {"query": "tea"}},
        {"type": "tool-output-available", "toolCallId": "call_1", "output": "3 results"},
    ]


def test_parallel_calls_are_one_step_and_what_follows_is_the_next(log: Writer) -> None:
    log.started(call("1", "read", "{}"))
    log.started(call("2", "read", "{}"))
    log.completed(result("2", "two"))
    log.completed(result("1", "one"))
    log.started(call("3", "read", "{}"))
    assert kinds(told(log)) == [
        *["tool-input-start", "tool-input-available"] * 2,
        "tool-output-available",
        "tool-output-available",
        "finish-step",
        "start-step",
        "tool-input-start",
        "tool-input-available",
    ]


def test_a_block_never_spans_two_steps(log: Writer) -> None:
    log.started(item("1", "message"))
    log.grew("1", TextPart(text="Let me look"))
    log.started(call("2", "read", "{}"))
    log.completed(result("2", "found"))
    log.grew("1", TextPart(text=" and see."))
    log.started(call("3", "read", "{}"))
    assert "finish-step" not in kinds(told(log))
    log.completed(item("1", "message", TextPart(text="Let me look and see."), status="completed"))
    log.completed(result("3", "found"))
    log.started(call("4", "read", "{}"))
    assert kinds(told(log)).count("finish-step") == 1


def test_arguments_that_are_not_complete_are_told_when_they_are(log: Writer) -> None:
    log.started(call("1", "read", '{"path":'))
    assert kinds(told(log)) == ["tool-input-start"]
    log.completed(call("1", "read", '{"path":"a"}', status="completed"))
    assert told(log)[1:] == [
        {"type": "tool-input-available", "toolCallId": "call_1", "toolName": "read", "input": {"path": "a"}}
    ]


def test_arguments_that_are_never_complete_are_told_as_text(log: Writer) -> None:
    log.started(call("1", "read", '{"path":'))
    log.completed(result("1", "cannot", status="failed"))
    assert told(log)[1:] == [
        {"type": "tool-input-available", "toolCallId": "call_1", "toolName": "read", "input": '{"path":'},
        {"type": "tool-output-error", "toolCallId": "call_1", "errorText": "cannot"},
    ]


def test_what_a_command_prints_is_a_preliminary_output_until_it_answers(log: Writer) -> None:
    log.started(call("1", "shell", "{}"))
    log.printed("one\n", "1")
    log.printed("two\n", "1")
    log.completed(result("1", "one\ntwo\n"))
    output = {"type": "tool-output-available", "toolCallId": "call_1"}
    assert told(log)[2:] == [
        {**output, "output": "one\n", "preliminary": True},
        {**output, "output": "one\ntwo\n", "preliminary": True},
        {**output, "output": "one\ntwo\n"},
    ]


def test_only_the_last_preliminary_output_of_a_batch_is_sent(log: Writer) -> None:
    log.started(call("1", "shell", "{}"))
    log.printed("one\n", "1")
    log.printed("two\n", "1")
    shown = [msgspec.to_builtins(chunk) for chunk in latest(project(log.events))]
    assert [chunk["output"] for chunk in shown if "output" in chunk] == ["one\ntwo\n"]


def test_a_long_output_is_repeated_only_from_its_end(log: Writer) -> None:
    log.started(call("1", "shell", "{}"))
    log.printed("x" * 100_000, "1")
    log.printed("end", "1")
    assert len(told(log)[-1]["output"]) == 16 * 1024
    assert told(log)[-1]["output"].endswith("xend")


def test_output_of_no_tool_is_one_terminal_that_grows(log: Writer) -> None:
    log.printed("one\n")
    log.printed("two\n")
    assert told(log) == [
        {"type": "data-terminal", "id": "terminal", "data": {"output": "one\n"}},
        {"type": "data-terminal", "id": "terminal", "data": {"output": "one\ntwo\n"}},
    ]


def test_a_result_that_nobody_called_for_gets_a_call(log: Writer) -> None:
    log.completed(result("1", "surprise"))
    assert kinds(told(log)) == ["tool-input-start", "tool-input-available", "tool-output-available"]


def test_a_call_id_that_is_used_twice_does_not_mix_two_calls(log: Writer) -> None:
    log.started(item("a", "tool_call", *call("1", "read", "{}").content))
    log.started(item("b", "tool_call", *call("1", "read", "{}").content))
    assert [chunk["toolCallId"] for chunk in told(log)] == ["call_1", "call_1", "b", "b"]


def test_calls_that_are_not_answered_are_closed_with_the_turn(log: Writer) -> None:
    log.started(call("1", "shell", "{}"))
    log.started(call("2", "note", "{}"))
    log.completed(call("2", "note", "{}", status="completed"))
    log.end("interrupted", "interrupted")
    assert told(log)[4:] == [
        {
            "type": "tool-output-error",
            "toolCallId": "call_1",
            "errorText": "The turn ended before the tool answered.",
        },
        {"type": "tool-output-available", "toolCallId": "call_2", "output": ""},
        {"type": "finish-step"},
        {"type": "finish", "messageMetadata": {"stopReason": "interrupted", "outcome": "interrupted"}},
    ]


def test_a_failed_turn_ends_with_an_error_and_says_why_in_the_history_too(log: Writer) -> None:
    log.error("The model is overloaded")
    log.end("failed", "error")
    assert told(log) == [
        {
            "type": "data-notice",
            "data": {"severity": "error", "message": "The model is overloaded", "code": "agent_error"},
        },
        {"type": "finish-step"},
        {"type": "error", "errorText": "The model is overloaded"},
    ]


def test_an_error_that_the_agent_gets_over_does_not_end_the_stream(log: Writer) -> None:
    log.error("Once more")
    log.say("1", "Done.")
    log.end()
    assert "error" not in kinds(told(log))
    assert kinds(told(log))[-1] == "finish"


def test_a_turn_without_a_word_says_so(log: Writer) -> None:
    log.end()
    assert kinds(told(log)) == ["data-notice", "finish-step", "finish"]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool-calls"),
        ("refusal", "content-filter"),
        ("max_turn_requests", "other"),
        ("something new", "other"),
    ],
)
def test_only_newer_clients_hear_a_finish_reason_of_theirs(log: Writer, reason: str, finish: str) -> None:
    log.say("1", "Done.")
    log.end(reason=reason)
    assert told(log)[-1] == {"type": "finish", "messageMetadata": {"stopReason": reason}}
    assert told(log, Profile(version="6"))[-1]["finishReason"] == finish


def test_asks_are_data_for_a_client_without_approvals(log: Writer) -> None:
    log.started(call("1", "shell", "{}"))
    log.ask("per_1", item_id="1", tool="shell")
    log.ask("per_1", "reject", item_id="1", tool="shell", message="no")
    log.question("que_1")
    asked = {"permissionId": "per_1", "sessionId": "sess_123", "action": "delete the notes", "tool": "shell"}
    assert told(log)[2:] == [
        {"type": "data-permission", "id": "per_1", "data": {**asked, "status": "requested", "toolCallId": "call_1"}},
        {
            "type": "data-permission",
            "id": "per_1",
            "data": {**asked, "status": "reject", "toolCallId": "call_1", "message": "no"},
        },
        {
            "type": "data-question",
            "id": "que_1",
            "data": {
                "questionId": "que_1",
                "sessionId": "sess_123",
                "prompt": "Tea?",
                "options": ["yes", "no"],
                "status": "requested",
                "questions": [],
            },
        },
    ]


def test_a_rejected_approval_denies_the_call_and_nothing_more_is_said_of_it(log: Writer) -> None:
    log.started(call("1", "shell", "{}"))
    log.ask("per_1", item_id="1")
    log.ask("per_1", "reject", item_id="1", message="no")
    log.completed(result("1", "rejected", status="failed"))
    assert told(log, Profile(version="6"))[2:] == [
        {"type": "tool-approval-request", "approvalId": "per_1", "toolCallId": "call_1"},
        {"type": "tool-output-denied", "toolCallId": "call_1"},
    ]
    assert told(log, Profile(version="7"))[3] == {
        "type": "tool-approval-response",
        "approvalId": "per_1",
        "approved": False,
        "reason": "no",
    }


def test_an_approval_without_a_call_brings_one_along(log: Writer) -> None:
    log.ask("per_1")
    log.ask("per_1", "accept")
    tool = {"toolCallId": "per_1"}
    assert told(log, Profile(version="6")) == [
        {"type": "tool-input-start", **tool, "toolName": "permission"},
        {
            "type": "tool-input-available",
            **tool,
            "toolName": "permission",
            "input": {"action": "delete the notes"},
        },
        {"type": "tool-approval-request", "approvalId": "per_1", **tool},
        {"type": "tool-output-available", **tool, "output": "Approved."},
    ]


def test_a_client_that_cannot_hear_of_decisions_of_others_gets_data_instead(log: Writer) -> None:
    log.ask("per_1")
    log.ask("per_1", "accept")
    decided = Profile(version="6", is_open=lambda ask_id: False)
    assert kinds(told(log, decided)) == ["data-permission", "data-permission"]


@pytest.mark.parametrize("version", ["6", "7"])
def test_a_stream_that_waits_ends_and_the_next_one_goes_on_with_the_message(log: Writer, version: Version) -> None:
    projection = UiProjection(SUBJECT, Profile(version=version))
    log.started(item("1", "message"))
    log.grew("1", TextPart(text="I would "))
    log.ask("per_1")
    for event in log.events:
        projection.feed(event)
    parked = [msgspec.to_builtins(chunk) for chunk in projection.park()]
    assert kinds(parked) == ["text-end", "finish-step", "finish"]
    assert [msgspec.to_builtins(chunk) for chunk in projection.again()] == [
        {"type": "start", "messageId": "msg_1", "messageMetadata": {"sessionId": "sess_123"}}
    ]
    seen = len(log.events)
    log.ask("per_1", "accept")
    log.grew("1", TextPart(text="and did."))
    log.end()
    rest = [msgspec.to_builtins(chunk) for event in log.events[seen:] for chunk in projection.feed(event)]
    expected = ["tool-output-available", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]
    assert [kind for kind in kinds(rest) if kind != "tool-approval-response"] == expected


def test_what_has_no_word_in_the_stream_is_data(log: Writer) -> None:
    log.started(call("1", "write", "{}"))
    log.add("plan.updated", PlanUpdatedData(entries=(PlanEntry(content="Go", status="pending"),)))
    log.add("file.changed", events.FileChangedData(path="a.md", action="created", diff="+a", item_id="1"))
    log.add("artifact.created", ArtifactCreatedData(path="a.md", action="write", artifact_type="document"))
    log.add("notice", events.NoticeData(severity="warning", message="Slow"))
    log.completed(item("2", "status", StatusPart(label="Compacting"), status="completed"))
    assert told(log)[2:] == [
        {"type": "data-plan", "id": "plan", "data": {"entries": [{"content": "Go", "status": "pending"}]}},
        {"type": "data-file", "data": {"path": "a.md", "action": "created", "diff": "+a", "toolCallId": "call_1"}},
        {"type": "data-artifact", "data": {"path": "a.md", "action": "write", "artifactType": "document"}},
        {"type": "data-notice", "data": {"severity": "warning", "message": "Slow"}},
        {"type": "data-status", "id": "2", "data": {"label": "Compacting"}, "transient": True},
    ]


@given(log=logs(), version=st.sampled_from(["5", "6", "7"]))
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_stream_can_be_folded_and_leaves_nothing_unfinished(log: list[AnyEvent], version: Version) -> None:
    messages: list[Folded] = []
    for chunk in project(log, Profile(version=version)):
        if msgspec.to_builtins(chunk)["type"] == "start":
            messages.append(Folded())
        messages[-1].add(chunk)
    states = {part.get("state") for message in messages for part in message.parts}
    assert states <= {None, "done", "output-available", "output-error", "output-denied"}
