"""Codex: what its recorded frames become, and what it hears from us."""

import json
from typing import Any

import pytest

from ostler.wire.agents import Model
from ostler.wire.items import PlanEntry
from ostler.wire.parts import FileRefPart, ImagePart, TextPart
from ostler.wire.running import PermissionAnswer, Prompt, QuestionAnswer
from tests.agents.codex_replay import RECORDINGS, Replay, story

FINISHED = "message completed Finished. Tool result: "
DELTAS = "item.delta"
THREAD = "thr_1"


@pytest.fixture
def codex() -> Replay:
    """A running Codex with its thread, and no recording."""
    return running()


def running(**fields: Any) -> Replay:
    """A Codex with its thread."""
    replay = Replay(RECORDINGS["models"], **fields)
    replay.run()
    opening = replay.sent[-1]["id"]
    thread = {"id": THREAD, "cliVersion": "0.166.0", "surprise": {"new": True}}
    replay.feed({"id": opening, "result": {"thread": thread, "model": "gpt-5.5"}})
    return replay


def prompted(**fields: Any) -> Replay:
    """A Codex in the middle of a turn."""
    replay = running(**fields)
    replay.dialogue.prompt(prompt_of(TextPart(text="go")))
    replay.take()
    tell(replay, "turn/started", turn={"id": "turn_1", "status": "inProgress"})
    replay.drafts.clear()
    return replay


def prompt_of(*parts: Any) -> Prompt:
    """A prompt with these parts."""
    return Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts)


def tell(replay: Replay, method: str, **params: Any) -> None:
    """Codex notifies."""
    replay.feed({"method": method, "params": {"threadId": THREAD, **params}})


def ask(replay: Replay, method: str, **params: Any) -> None:
    """Codex requests, always with the id 7."""
    replay.feed({"id": 7, "method": method, "params": {"threadId": THREAD, **params}})


def ask_about_command(replay: Replay) -> None:
    """Codex wants to run `touch made`."""
    command = "/bin/bash -lc 'touch made'"
    item = {"type": "commandExecution", "id": "call_1", "command": command, "status": "inProgress"}
    tell(replay, "item/started", item=item)
    ask(replay, "item/commandExecution/requestApproval", itemId="call_1", command=command, cwd="/w")


# Recordings


@pytest.mark.parametrize("case", RECORDINGS)
def test_every_recorded_frame_is_understood(case: str) -> None:
    replay = Replay(RECORDINGS[case])
    drafts = replay.run()
    assert [draft.data for draft in drafts if draft.type == "agent.unparsed"] == []
    assert replay.counts.unparsed == 0


def test_text_arrives_in_deltas_and_each_turn_ends_once() -> None:
    assert story(Replay(RECORDINGS["text"]).run())[:7] == [
        ("session.info", ""),
        ("item.started", "message in_progress"),
        ("item.delta", "Hello "),
        ("item.delta", "from "),
        ("item.delta", "the "),
        ("item.completed", "message completed Hello from the scripted model."),
        ("turn.ended", "completed"),
    ]


def test_a_command_that_fails_is_a_failed_call_with_its_output() -> None:
    assert story(Replay(RECORDINGS["bash"]).run(), DELTAS)[3:7] == [
        ("item.started", "tool_call in_progress exec_command"),
        ("item.completed", "tool_call failed exec_command"),
        ("item.started", "tool_result in_progress"),
        ("item.completed", "tool_result failed err\nhi"),
    ]


def test_a_permitted_patch_is_told_as_a_changed_file_with_a_diff() -> None:
    drafts = Replay(RECORDINGS["perm_file"], cwd="/workspaces/codex-perm_file").run()
    path = "/workspaces/codex-perm_file/a.txt"
    assert story(drafts, DELTAS) == [
        ("session.info", ""),
        ("item.started", "tool_call in_progress apply_patch"),
        ("permission.requested", f"apply_patch: {path} requested"),
        ("item.completed", "tool_call completed apply_patch"),
        ("item.started", "tool_result in_progress"),
        ("item.completed", f"tool_result completed Changed {path}."),
        ("file.changed", f"created {path}"),
        ("artifact.created", f"write {path}"),
        ("item.started", "message in_progress"),
        (
            "item.completed",
            f"{FINISHED}Exit code: 0 Wall time: 0 seconds Output: Success. Updated the following files: A a.txt",
        ),
        ("turn.ended", "completed"),
    ]
    (asked,) = [draft.data for draft in drafts if draft.type == "permission.requested"]
    (changed,) = [draft.data for draft in drafts if draft.type == "file.changed"]
    diff = "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,1 @@\n+hi\n"
    assert (asked.metadata["diff"], changed.diff) == (diff, diff)  # type: ignore[attr-defined]  # follows from the type


def test_an_edit_is_told_as_a_unified_diff() -> None:
    drafts = Replay(RECORDINGS["edit"], cwd="/workspaces/codex-edit").run()
    (changed,) = [draft.data for draft in drafts if draft.type == "file.changed"]
    assert changed.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"  # type: ignore[attr-defined]  # follows from the type


def test_a_rejected_command_is_a_failed_call_and_the_turn_goes_on() -> None:
    assert story(Replay(RECORDINGS["perm_deny"]).run(), DELTAS)[1:6] == [
        ("item.started", "tool_call in_progress exec_command"),
        ("permission.requested", "exec_command: touch made requested"),
        ("item.completed", "tool_call failed exec_command"),
        ("item.started", "tool_result in_progress"),
        ("item.completed", "tool_result failed The command was rejected and did not run."),
    ]


def test_a_question_arrives_with_its_options_and_its_answer_goes_back() -> None:
    replay = Replay(RECORDINGS["question"])
    drafts = replay.run()
    (asked,) = [draft.data for draft in drafts if draft.type == "question.requested"]
    assert (asked.prompt, asked.options) == ("Which color?", ("Red", "Blue"))  # type: ignore[attr-defined]  # follows from the type
    assert replay.sent[-1] == {"id": 0, "result": {"answers": {"choice": {"answers": ["Blue"]}}}}


def test_wrong_credentials_are_not_tried_again() -> None:
    message = "unexpected status 401 Unauthorized: Scripted error 401, url: http://127.0.0.1:PORT/v1/responses"
    assert story(Replay(RECORDINGS["error_401"]).run()) == [
        ("session.info", ""),
        ("error", f"auth {message}"),
        ("turn.ended", "failed"),
    ]


@pytest.mark.parametrize(("case", "code"), [("error_429", "rate_limit"), ("error_500", "provider_error")])
def test_errors_of_the_provider_have_our_codes(case: str, code: str) -> None:
    codes = [draft.data.code for draft in Replay(RECORDINGS[case]).run() if draft.type == "error"]  # type: ignore[attr-defined]  # follows from the type
    assert codes == [code]


def test_an_interrupted_message_keeps_what_was_said() -> None:
    assert story(Replay(RECORDINGS["interrupt"]).run())[5:7] == [
        ("item.completed", "message failed tick1 tick2 tick3"),
        ("turn.ended", "interrupted"),
    ]


def test_an_interrupt_stops_the_command_before_the_turn_ends() -> None:
    replay = Replay(RECORDINGS["interrupt_clean"])
    assert story(replay.run())[3:] == [
        ("item.completed", "tool_call failed exec_command"),
        ("item.started", "tool_result in_progress"),
        ("item.completed", "tool_result failed The command failed with exit code -1."),
        ("turn.ended", "interrupted"),
    ]
    methods = [frame.get("method") for frame in replay.sent]
    assert methods[-2:] == ["turn/interrupt", "thread/backgroundTerminals/clean"]


def test_items_of_a_sub_agent_belong_to_the_call_that_spawned_it() -> None:
    drafts = Replay(RECORDINGS["subagent"]).run()
    done: list[Any] = [draft.data for draft in drafts if draft.type == "item.completed"]
    spawning = done[0].item.item_id
    children = [data.item.kind for data in done if data.item.parent_id == spawning]
    assert children == ["tool_result", "tool_call", "message"]


def test_a_tool_of_an_mcp_server_asks_for_permission() -> None:
    assert story(Replay(RECORDINGS["mcp_code"]).run(), DELTAS)[1:6] == [
        ("item.started", "tool_call in_progress mcp__echo__shout"),
        ("permission.requested", "mcp__echo__shout requested"),
        ("item.completed", "tool_call completed mcp__echo__shout"),
        ("item.started", "tool_result in_progress"),
        ("item.completed", "tool_result completed SHOUT:ABC"),
    ]


def test_tokens_are_counted_per_turn() -> None:
    drafts = Replay(RECORDINGS["text"]).run()
    counts: list[Any] = [draft.data for draft in drafts if draft.type == "usage.updated"]
    assert [(data.output_tokens, data.context_window) for data in counts] == [(7, 258400), (20, 258400)]


# What Codex hears


def test_codex_is_only_ever_told_once() -> None:
    replay = Replay(RECORDINGS["perm_session"])
    replay.run()
    assert [frame["result"] for frame in replay.sent if "result" in frame] == [{"decision": "accept"}]


def test_the_reason_of_a_no_goes_ahead_of_it() -> None:
    replay = prompted()
    ask_about_command(replay)
    replay.answer(PermissionAnswer(ask_id="per_1_7", allow=False, message="not on a Sunday"))
    reason, decision = replay.sent[-2:]
    assert reason["method"] == "turn/steer"
    assert reason["params"] == {
        "threadId": THREAD,
        "expectedTurnId": "turn_1",
        "input": [{"type": "text", "text": "The user rejected this (exec_command: touch made): not on a Sunday"}],
    }
    assert decision == {"id": 7, "result": {"decision": "decline"}}


def test_an_interrupt_gives_no_reason_and_takes_the_ask_back() -> None:
    replay = prompted()
    ask_about_command(replay)
    replay.dialogue.interrupt("interrupted")
    replay.take()
    assert [frame.get("method") for frame in replay.sent[-2:]] == [None, "turn/interrupt"]
    tell(replay, "turn/completed", turn={"id": "turn_1", "status": "interrupted"})
    assert story(replay.drafts)[-1] == ("turn.ended", "interrupted")


def test_an_interrupt_before_the_turn_has_started_waits_for_it(codex: Replay) -> None:
    codex.dialogue.prompt(prompt_of(TextPart(text="go")))
    codex.dialogue.interrupt("interrupted")
    codex.take()
    assert codex.sent[-1]["method"] == "turn/start"
    tell(codex, "turn/started", turn={"id": "turn_1", "status": "inProgress"})
    assert codex.sent[-1]["method"] == "turn/interrupt"
    assert codex.sent[-1]["params"] == {"threadId": THREAD, "turnId": "turn_1"}


def test_a_turn_that_has_not_started_cannot_be_steered(codex: Replay) -> None:
    codex.dialogue.prompt(prompt_of(TextPart(text="go")))
    assert not codex.dialogue.steer(prompt_of(TextPart(text="left")))


def test_images_and_files_are_named_by_their_paths(codex: Replay) -> None:
    parts = (TextPart(text="look"), ImagePart(path="/w/a.png"), FileRefPart(path="/w/b.txt", action="read"))
    codex.dialogue.prompt(prompt_of(*parts))
    codex.take()
    assert codex.sent[-1]["params"]["input"] == [
        {"type": "text", "text": "look"},
        {"type": "localImage", "path": "/w/a.png"},
        {"type": "text", "text": "Attached file: /w/b.txt"},
    ]


@pytest.mark.parametrize(("mode", "policy"), [("default", "untrusted"), ("plan", "untrusted"), ("bypass", "never")])
def test_the_permission_mode_decides_who_is_asked(mode: str, policy: str) -> None:
    opening = next(frame for frame in running(permission_mode=mode).sent if frame.get("method") == "thread/start")
    assert opening["params"]["approvalPolicy"] == policy


def test_with_bypass_an_mcp_tool_runs_without_a_question() -> None:
    replay = prompted(permission_mode="bypass")
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {}}
    ask(replay, "mcpServer/elicitation/request", serverName="echo", message="Allow?", _meta=meta)
    assert replay.sent[-1] == {"id": 7, "result": {"action": "accept", "content": {}}}
    assert replay.drafts == []


def test_rights_are_granted_for_the_turn_only() -> None:
    replay = prompted()
    wanted = {"network": {"enabled": True}}
    ask(replay, "item/permissions/requestApproval", itemId="call_1", permissions=wanted)
    replay.answer(PermissionAnswer(ask_id="per_1_7", allow=True))
    assert replay.sent[-1] == {"id": 7, "result": {"permissions": wanted, "scope": "turn"}}


# Plans


def planned() -> Replay:
    """Codex has proposed a plan and ended its own turn."""
    replay = prompted(permission_mode="plan")
    tell(replay, "item/completed", item={"type": "plan", "id": "turn_1-plan", "text": "1. Look."})
    tell(replay, "turn/completed", turn={"id": "turn_1", "status": "completed"})
    return replay


def test_a_plan_is_a_question_and_its_approval_goes_on_outside_of_plan_mode() -> None:
    replay = planned()
    assert story(replay.drafts)[-1] == ("question.requested", "Go on with this plan?\n\n1. Look. requested")
    replay.answer(QuestionAnswer(ask_id="que_1_plan_turn_1", answers=(("Approve",),)))
    assert replay.sent[-1]["method"] == "turn/start"
    assert replay.sent[-1]["params"]["collaborationMode"]["mode"] == "default"
    assert replay.dialogue.guard.turn_id == "trn_1"


def test_a_plan_rejected_with_words_is_revised() -> None:
    replay = planned()
    replay.answer(QuestionAnswer(ask_id="que_1_plan_turn_1", answers=None, message="shorter"))
    assert replay.sent[-1]["params"]["collaborationMode"]["mode"] == "plan"
    assert replay.sent[-1]["params"]["input"][0]["text"].endswith("\nshorter")


def test_a_plan_rejected_without_words_ends_the_turn() -> None:
    replay = planned()
    replay.answer(QuestionAnswer(ask_id="que_1_plan_turn_1", answers=(("Reject",),)))
    assert story(replay.drafts)[-1] == ("turn.ended", "completed")


def test_an_interrupt_of_an_open_plan_starts_nothing() -> None:
    replay = planned()
    sent = len(replay.sent)
    replay.dialogue.interrupt("interrupted")
    replay.take()
    assert len(replay.sent) == sent
    assert story(replay.drafts)[-1] == ("turn.ended", "interrupted")


def test_a_patch_in_plan_mode_is_asked_for_so_that_the_session_can_refuse_it() -> None:
    replay = prompted(permission_mode="plan")
    ask(replay, "item/fileChange/requestApproval", itemId="call_1")
    assert [draft.type for draft in replay.drafts][-1] == "permission.requested"


# Everything else Codex may say


def test_the_models_of_the_running_codex_are_told(codex: Replay) -> None:
    assert codex.dialogue.ready is not None
    assert codex.dialogue.ready.models[0] == Model(
        id="gpt-6.1-sol", name="GPT-6.1-Sol", variants=("low", "medium", "high", "xhigh", "max", "ultra")
    )


def test_a_list_of_steps_is_a_plan() -> None:
    replay = prompted()
    tell(replay, "turn/plan/updated", plan=[{"step": "Look", "status": "inProgress"}])
    (draft,) = replay.drafts
    assert draft.data.entries == (PlanEntry(content="Look", status="in_progress"),)  # type: ignore[attr-defined]  # follows from the type


def test_output_of_a_running_command_belongs_to_its_call() -> None:
    replay = prompted()
    tell(replay, "item/commandExecution/outputDelta", itemId="call_1", delta="tick\n")
    (draft,) = replay.drafts
    assert (draft.data.item_id, draft.data.data) == ("itm_1_call_1", "tick\n")  # type: ignore[attr-defined]  # follows from the type


def test_a_withdrawn_request_resolves_its_ask() -> None:
    replay = prompted()
    ask_about_command(replay)
    tell(replay, "serverRequest/resolved", requestId=7)
    assert story(replay.drafts)[-1] == ("permission.resolved", "exec_command: touch made reject")


def test_an_unknown_notification_is_recorded() -> None:
    replay = prompted()
    tell(replay, "thread/dreamt")
    (draft,) = replay.drafts
    assert (draft.type, draft.data.location) == ("agent.unparsed", "$.method")  # type: ignore[attr-defined]  # follows from the type


def test_an_unknown_request_is_refused_and_recorded() -> None:
    replay = prompted()
    ask(replay, "thread/mayDream")
    assert replay.sent[-1]["error"]["code"] == -32601
    assert [draft.type for draft in replay.drafts] == ["agent.unparsed"]


def test_a_form_of_an_mcp_server_is_declined_and_told() -> None:
    replay = prompted()
    ask(replay, "mcpServer/elicitation/request", serverName="echo", message="Your name?", mode="form")
    assert replay.sent[-1] == {"id": 7, "result": {"action": "decline"}}
    assert [draft.type for draft in replay.drafts] == ["notice"]


def test_a_turn_that_codex_refuses_fails(codex: Replay) -> None:
    codex.dialogue.prompt(prompt_of(TextPart(text="go")))
    codex.take()
    codex.feed({"id": codex.sent[-1]["id"], "error": {"code": -32600, "message": "no such thread"}})
    assert story(codex.drafts)[-2:] == [("error", "agent_error no such thread"), ("turn.ended", "failed")]


def test_a_thread_that_cannot_be_resumed_is_told_and_replaced() -> None:
    replay = Replay(RECORDINGS["models"], resume="thr_0")
    replay.run()
    resuming = replay.sent[-1]
    assert (resuming["method"], resuming["params"]["threadId"]) == ("thread/resume", "thr_0")
    replay.feed({"id": resuming["id"], "error": {"code": -32600, "message": "no rollout found"}})
    assert replay.sent[-1]["method"] == "thread/start"
    expected = "resume_failed Codex could not go on with its thread and began a new one: no rollout found"
    assert story(replay.drafts) == [("notice", expected)]


def test_frames_carry_no_jsonrpc_member(codex: Replay) -> None:
    assert all("jsonrpc" not in json.dumps(frame) for frame in codex.sent)


def test_a_thread_that_codex_refuses_fails_the_start_with_its_words() -> None:
    replay = Replay(RECORDINGS["models"])
    replay.run()
    replay.feed({"id": replay.sent[-1]["id"], "error": {"code": -32600, "message": "no such model"}})
    assert (replay.dialogue.start_failure, replay.dialogue.ready) == ("no such model", None)
