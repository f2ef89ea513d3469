"""Copilot's frames become what a person expects, and its launch says what the session wants."""

import json
from typing import Any

import pytest

from ostler.wire.events import FileChangedData, PermissionData, QuestionData, UsageUpdatedData
from ostler.wire.running import PermissionAnswer, Prompt, QuestionAnswer
from tests.agents.copilot_replay import RECORDINGS, Player, play, short, told
from tests.support.recorded import Line, Recording

EXPECTED = {
    "thinking": [
        "session u3 interactive",
        "message itm_1_u6 starts",
        "message itm_1_u6 completed: (Let me think about this.), 'Thought done.'",
        "turn completed",
    ],
    "perm_deny": [
        "session u3 interactive",
        "tool_call itm_1_call_13 starts",
        "permission.requested bash: touch made for itm_1_call_13",
        "tool_call itm_1_call_13 failed: bash",
        "tool_result itm_1_call_13_result starts below itm_1_call_13",
        "tool_result itm_1_call_13_result failed: 'The user rejected this tool call. User feedback: Not today'",
        "message itm_1_u10 starts",
        "message itm_1_u10 completed: "
        "'Finished. Tool result: The user rejected this tool call. User feedback: Not today'",
        "turn completed",
    ],
    "edit": [
        "session u3 interactive",
        "tool_call itm_1_call_15 starts",
        "permission.requested view: /workspaces/copilot-edit/a.txt for itm_1_call_15",
        "tool_call itm_1_call_15 completed: view",
        "tool_result itm_1_call_15_result starts below itm_1_call_15",
        "tool_result itm_1_call_15_result completed: 'one\\ntwo\\n'",
        "tool_call itm_1_call_16 starts",
        "permission.requested edit: /workspaces/copilot-edit/a.txt for itm_1_call_16",
        "modified /workspaces/copilot-edit/a.txt",
        "tool_call itm_1_call_16 completed: edit",
        "tool_result itm_1_call_16_result starts below itm_1_call_16",
        "tool_result itm_1_call_16_result completed: 'File /workspaces/copilot-edit/a.txt updated with changes.'",
        "message itm_1_u12 starts",
        "message itm_1_u12 completed: 'Edited.'",
        "turn completed",
    ],
    "question": [
        "session u3 interactive",
        "tool_call itm_1_call_11 starts",
        "question.requested 'Which color?' ['Red', 'Blue'] for itm_1_call_11",
        "tool_call itm_1_call_11 completed: ask_user",
        "tool_result itm_1_call_11_result starts below itm_1_call_11",
        "tool_result itm_1_call_11_result completed: 'User selected: Blue'",
        "message itm_1_u8 starts",
        "message itm_1_u8 completed: 'Finished. Tool result: User selected: Blue'",
        "turn completed",
    ],
    "todos": [
        "session u1 interactive",
        "tool_call itm_1_call_5 starts",
        "plan Look in_progress, Change completed",
        "tool_call itm_1_call_5 completed: sql",
        "tool_result itm_1_call_5_result starts below itm_1_call_5",
        "tool_result itm_1_call_5_result completed: '2 row(s) inserted. Last inserted row ID: 2.'",
        "message itm_1_u4 starts",
        "message itm_1_u4 completed: 'Done.'",
        "turn completed",
    ],
    "subagent": [
        "session u1 interactive",
        "tool_call itm_1_call_13 starts",
        "message itm_1_u7 starts below itm_1_call_13",
        "message itm_1_u7 completed: (Hm.), 'Inside.'",
        "tool_call itm_1_call_14 starts below itm_1_call_13",
        "permission.requested bash: touch made for itm_1_call_14",
        "tool_call itm_1_call_14 completed: bash",
        "tool_result itm_1_call_14_result starts below itm_1_call_14",
        "tool_result itm_1_call_14_result completed: '\\n<shellId: 0 completed with exit code 0>'",
        "message itm_1_u11 starts below itm_1_call_13",
        "message itm_1_u11 completed: 'Inner done.'",
        "tool_call itm_1_call_13 completed: task",
        "tool_result itm_1_call_13_result starts below itm_1_call_13",
        "tool_result itm_1_call_13_result completed: 'Inner done.'",
        "message itm_1_u12 starts",
        "message itm_1_u12 completed: 'Outer done.'",
        "turn completed",
    ],
    "error_401": [
        "session u3 interactive",
        "notice retry",
        "notice retry",
        "error auth: Authentication failed with provider at http://127.0.0.1:PORT/v1 (HTTP 401).\n"
        "  Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN.\n"
        "Scripted error 401",
        "turn failed",
    ],
    "error_retry_recovers": [
        "session u3 interactive",
        "notice retry",
        "message itm_1_u6 starts",
        "message itm_1_u6 completed: 'recovered'",
        "turn completed",
    ],
    "interrupt": [
        "session u3 interactive",
        "message itm_1_u6 starts",
        "message itm_1_u6 failed: 'tick1 tick2 tick3 '",
        "turn interrupted",
        "message itm_1_u10 starts",
        "message itm_1_u10 completed: 'Recall: 2 scripted user turns, 0 images, first: slow 100 0.2'",
        "turn completed",
    ],
    "interrupt_ask": [
        "session u1 interactive",
        "tool_call itm_1_call_6 starts",
        "permission.requested bash: touch never for itm_1_call_6",
        "permission.resolved bash: touch never for itm_1_call_6",
        "tool_call itm_1_call_6 failed: bash",
        "turn interrupted",
    ],
    "resume_unknown": ["notice resume_failed"],
}


@pytest.mark.parametrize("case", RECORDINGS)
def test_every_recorded_frame_is_understood(case: str) -> None:
    player = play(case)
    assert (player.counts.frames > 0, player.counts.unparsed) == (True, 0)


@pytest.mark.parametrize("case", EXPECTED)
def test_a_recording_tells_its_story(case: str) -> None:
    assert told(play(case)) == EXPECTED[case]


def test_text_arrives_in_pieces() -> None:
    pieces = [short(draft) for draft in play("text").drafts if draft.type == "item.delta"][:5]
    assert pieces == ["+ 'Hello '", "+ 'from '", "+ 'the '", "+ 'scripted '", "+ 'model.'"]


def test_a_command_prints_while_it_runs_and_a_bad_exit_code_is_a_failure() -> None:
    story = told(play("bash"))
    begin = story.index("tool_call itm_1_call_13 starts")
    assert story[begin : begin + 7] == [
        "tool_call itm_1_call_13 starts",
        "permission.requested bash: echo hi; echo err >&2; sleep 1; exit 3 for itm_1_call_13",
        "stdout 'hi\\n' of itm_1_call_13",
        "stderr 'err\\n' of itm_1_call_13",
        "tool_call itm_1_call_13 failed: bash",
        "tool_result itm_1_call_13_result starts below itm_1_call_13",
        "tool_result itm_1_call_13_result failed: 'hi\\nerr\\n<shellId: 0 completed with exit code 3>'",
    ]


def test_an_edit_comes_with_its_diff_before_and_after_it_is_allowed() -> None:
    player = play("edit")
    asked = [draft.data for draft in player.drafts if draft.type == "permission.requested"][-1]
    (changed,) = (draft.data for draft in player.drafts if draft.type == "file.changed")
    assert isinstance(asked, PermissionData)
    assert isinstance(changed, FileChangedData)
    path = "/workspaces/copilot-edit/a.txt"
    diff = (
        f"diff --git a{path} b{path}\nindex 0000000..0000000 100644\n--- a{path}\n+++ b{path}\n"
        "@@ -1,3 +1,3 @@\n one\n-two\n+three\n \n"
    )
    assert changed.diff == diff
    assert asked.metadata == {
        "input": {"path": path, "old_str": "two", "new_str": "three"},
        "always": f"write({path})",
        "diff": diff,
        "explanation": "Edit file",
    }


def test_copilot_only_ever_hears_once_or_a_rejection_with_its_reason() -> None:
    method = "session.permissions.handlePendingPermissionRequest"
    assert [params["result"] for params in play("perm_approve").frames_sent(method)] == [{"kind": "approve-once"}]
    (denied,) = play("perm_deny").frames_sent(method)
    assert denied["result"] == {"kind": "reject", "feedback": "Not today"}


def test_a_question_is_answered_as_it_was_in_the_recording() -> None:
    assert play("question").responses_sent() == [{"answer": "Blue", "wasFreeform": False}]


def test_a_plan_is_a_question_and_its_approval_leaves_plan_mode() -> None:
    player = play("plan")
    (asked,) = (draft.data for draft in player.drafts if draft.type == "question.requested")
    assert isinstance(asked, QuestionData)
    assert (asked.options, asked.metadata) == (("Approve", "Reject"), {"kind": "plan", "plan": "1. Do it"})
    assert player.responses_sent() == [{"approved": True, "selectedAction": "interactive"}]
    assert "session interactive" in told(player)


def test_tokens_of_a_turn_add_up_and_begin_again_with_the_next() -> None:
    counted = [draft.data for draft in play("text").drafts if draft.type == "usage.updated"]
    assert [(data.input_tokens, data.output_tokens) for data in counted if isinstance(data, UsageUpdatedData)] == [
        (5808, 7),
        (5836, 20),
    ]


def test_a_message_that_steers_goes_out_at_once_and_the_turn_ends_after_the_background_is_done() -> None:
    player = play("steer")
    assert [params.get("mode") for params in player.frames_sent("session.send")] == [None, "immediate"]
    assert [text for text in told(player) if text.startswith(("turn", "stdout"))] == [
        "stdout 'late\\n' of itm_1_call_11",
        "turn completed",
    ]


def test_an_image_travels_inside_the_prompt() -> None:
    (sent,) = play("image").frames_sent("session.send")
    assert sent["attachments"] == [
        {"type": "blob", "data": "cG5n", "mimeType": "image/png", "displayName": "dot.png"},
    ]


def test_a_conversation_that_is_gone_gives_way_to_a_new_one() -> None:
    assert play("resume_unknown").sent[-1]["method"] == "session.create"


def test_a_session_that_cannot_be_made_fails_the_start_with_the_reason() -> None:
    player = play("resume_unknown")
    player.hear({"jsonrpc": "2.0", "id": player.sent[-1]["id"], "error": {"code": -32603, "message": "No."}})
    assert player.dialogue.start_failure == "No."


# Frames of our own making


def conversation(*frames: dict[str, Any], **changes: Any) -> Player:
    """A session with one prompt, in which these frames come."""
    opened = [line for line in RECORDINGS["thinking"].lines if line.t < 1.7]
    made = [Line(dir="out", data={"jsonrpc": "2.0", **frame}) for frame in frames]
    player = Player(Recording("copilot", "made", {}, (*opened, *made)), **changes)
    player.play()
    return player


def event(kind: str, agent: str | None = None, **data: Any) -> dict[str, Any]:
    return {"method": "session.event", "params": {"event": {"type": kind, "data": data, "agentId": agent}}}


ASKED = event(
    "permission.requested",
    requestId="r1",
    permissionRequest={"kind": "url", "url": "http://x/", "intention": "Fetch"},
)
IDLE = event("session.idle")


def test_with_bypass_copilot_is_allowed_at_once_and_nobody_is_asked() -> None:
    player = conversation(ASKED, IDLE, permission_mode="bypass")
    (sent,) = player.frames_sent("session.permissions.handlePendingPermissionRequest")
    assert (sent["requestId"], sent["result"]) == ("r1", {"kind": "approve-once"})
    assert told(player) == ["session u3 interactive", "turn completed"]


def test_a_permission_that_copilot_withdraws_is_resolved() -> None:
    player = conversation(ASKED, event("permission.completed", requestId="r1", result={"kind": "cancelled"}))
    statuses = [draft.data.status for draft in player.drafts if isinstance(draft.data, PermissionData)]
    assert statuses == ["requested", "reject"]


@pytest.mark.parametrize(
    ("answers", "message", "sent"),
    [
        ((("Red",),), None, {"answer": "Red", "wasFreeform": False}),
        ((("Green",),), None, {"answer": "Green", "wasFreeform": True}),
        (None, None, {"answer": "The user declined to answer.", "wasFreeform": True}),
        (None, "Later.", {"answer": "The user declined to answer. Later.", "wasFreeform": True}),
    ],
)
def test_a_question_may_be_answered_freely_or_declined(answers: Any, message: str | None, sent: Any) -> None:
    asked = {"id": 7, "method": "userInput.request", "params": {"question": "Which?", "choices": ["Red", "Blue"]}}
    player = conversation(asked)
    player.dialogue.answer(QuestionAnswer(ask_id="que_1_7", answers=answers, message=message))
    player.collect()
    assert player.responses_sent() == [sent]


@pytest.mark.parametrize(
    ("answers", "message", "feedback"),
    [
        ((("Reject",),), "Add tests.", "Add tests."),
        ((("Use another file.",),), None, "Use another file."),
        (None, None, "The user rejected this."),
    ],
)
def test_a_plan_that_is_not_approved_goes_back_with_what_to_change(
    answers: Any, message: str | None, feedback: str
) -> None:
    player = conversation({"id": 7, "method": "exitPlanMode.request", "params": {"planContent": "1. Look."}})
    player.dialogue.answer(QuestionAnswer(ask_id="que_1_7", answers=answers, message=message))
    player.collect()
    assert player.responses_sent() == [{"approved": False, "feedback": feedback}]


def test_an_answer_to_an_ask_of_an_earlier_process_is_not_sent() -> None:
    player = conversation()
    before = len(player.sent)
    player.dialogue.answer(PermissionAnswer(ask_id="per_0_r1", allow=True))
    player.collect()
    assert len(player.sent) == before


def test_calls_that_share_a_native_id_stay_apart() -> None:
    call = (
        event("tool.execution_start", toolCallId="0", toolName="bash", arguments={}),
        event("tool.execution_complete", toolCallId="0", success=True, result={"content": "x"}),
    )
    story = told(conversation(*call, *call))
    assert [text for text in story if text.startswith("tool_call")] == [
        "tool_call itm_1_0 starts",
        "tool_call itm_1_0 completed: bash",
        "tool_call itm_1_0_2 starts",
        "tool_call itm_1_0_2 completed: bash",
    ]


def test_an_error_of_a_sub_agent_does_not_fail_the_turn() -> None:
    story = told(conversation(event("session.error", "a1", errorType="query", message="No."), IDLE))
    assert story == ["session u3 interactive", "notice query", "turn completed"]


def test_a_prompt_that_is_not_accepted_fails_its_turn() -> None:
    player = conversation()
    player.dialogue.prompt(Prompt(prompt_id="p", turn_id="t", parts=()))
    player.collect()
    refused = {"jsonrpc": "2.0", "id": player.sent[-1]["id"], "error": {"code": -32603, "message": "No."}}
    player.hear(refused)
    assert told(player)[-2:] == ["error agent_error: No.", "turn failed"]


@pytest.mark.parametrize(
    "frame",
    [
        event("session.brand_new"),
        event("session.error"),
        {"method": "brand.new", "params": {}},
        {"id": 99, "result": {}},
        {"id": 5, "method": "brand.new", "params": {}},
    ],
    ids=json.dumps,
)
def test_what_nobody_expected_is_recorded_and_the_turn_goes_on(frame: dict[str, Any]) -> None:
    player = conversation(frame, event("assistant.message", messageId="m", content="Still here."), IDLE)
    kinds = [draft.type for draft in player.drafts]
    assert kinds.count("agent.unparsed") == 1
    assert told(player)[-1] == "turn completed"


def test_a_request_that_we_do_not_know_is_refused_so_that_copilot_does_not_wait() -> None:
    player = conversation({"id": 5, "method": "brand.new", "params": {}})
    assert player.sent[-1]["error"]["code"] == -32601
