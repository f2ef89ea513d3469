"""Claude Code by its recordings: every frame is understood, and what comes out is what a person would tell."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ostler.agents.adapter import Installation
from ostler.agents.claude_code import INFO, ClaudeCodeAdapter
from ostler.base.errors import Unprocessable
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.wire.agents import Command
from ostler.wire.events import ItemCompletedData, PermissionData, QuestionData, UsageUpdatedData
from ostler.wire.items import Item
from ostler.wire.parts import FileRefPart, ImagePart, TextPart
from ostler.wire.providers import HttpMcpServer, Provider, StdioMcpServer
from ostler.wire.running import Draft, Prompt, QuestionAnswer
from ostler.wire.sessions import TurnLimits
from tests.agents.claude_code_replay import PLAIN, Replay, begun, story
from tests.support.recorded import recordings

RECORDED = {recording.case: recording for recording in recordings("claude-code")}
INSTALLED = Installation(path="/bin/claude", command=("/bin/claude",))
BASH = 'Bash {"command":"touch /workspaces/claude-perm_deny/made","description":"Run a scripted command"}'
WRITTEN = '{"command": "touch /workspaces/claude-perm_deny/made", "description": "Run a scripted command"}'

STORIES = {
    "thinking": [
        "message begins",
        "+ reasoning 'Let me think about this carefully.'",
        "+ text 'Thought done.'",
        "message completed: reasoning 'Let me think about this carefully.' | text 'Thought done.'",
        "turn completed: end_turn",
    ],
    "bash": [
        "message begins",
        "+ text 'Running.'",
        "message completed: text 'Running.'",
        "tool_call begins",
        """+ tool_call '{"command": "echo hi; echo err >&2; exit 3", "description": "Run a scripted command"}'""",
        'tool_call failed: Bash {"command":"echo hi; echo err >&2; exit 3","description":"Run a scripted command"}',
        "tool_result begins",
        "tool_result failed: Exit code 3\nhi\nerr",
        "message begins",
        "+ text 'Finished. Tool result: Exit code 3 hi err'",
        "message completed: text 'Finished. Tool result: Exit code 3 hi err'",
        "turn completed: end_turn",
    ],
    "perm_deny": [
        "tool_call begins",
        f"+ tool_call {WRITTEN!r}",
        "permission requested: Bash: touch /workspaces/claude-perm_deny/made",
        f"tool_call failed: {BASH}",
        "tool_result begins",
        "tool_result failed: Not today",
        "message begins",
        "+ text 'Finished. Tool result: Not today'",
        "message completed: text 'Finished. Tool result: Not today'",
        "turn completed: end_turn",
    ],
    "error_401": [
        "notice retry: The model call failed (401 authentication_failed); trying again in 0.6 s (1 of 1).",
        "error auth: Failed to authenticate. API Error: 401 Scripted error 401",
        "turn failed: api_error",
    ],
    "interrupt": [
        "message begins",
        "+ text 'tick1 tick2 tick3 '",
        "message failed: text 'tick1 tick2 tick3 '",
        "turn interrupted: aborted_streaming",
        "message begins",
        "+ text 'Recall: 2 scripted user turns, 0 images, first: slow 100 0.2'",
        "message completed: text 'Recall: 2 scripted user turns, 0 images, first: slow 100 0.2'",
        "turn completed: end_turn",
    ],
    "steer_late": [
        "message begins",
        "+ text 'tick1 tick2 tick3 tick4 tick5'",
        "message completed: text 'tick1 tick2 tick3 tick4 tick5'",
        "message begins",
        "+ text 'second seen'",
        "message completed: text 'second seen'",
        "turn completed: end_turn",
    ],
    "resume_unknown": [
        "error agent_error: No conversation found with session ID: 039232db-8735-4d81-a070-2a9a25decd78",
        "turn failed: error_during_execution",
    ],
}


def _of_type(drafts: Sequence[Draft], kind: str) -> list[Any]:
    return [draft.data for draft in drafts if draft.type == kind]


def _items(drafts: Sequence[Draft]) -> list[Item]:
    return [data.item for data in _of_type(drafts, "item.completed")]


def _heard(dialogue: Dialogue, *frames: dict[str, Any]) -> list[Draft]:
    for frame in frames:
        dialogue.feed(msgspec.json.encode(frame) + b"\n")
    return dialogue.take_drafts()


def _asked(dialogue: Dialogue, tool: str, arguments: dict[str, Any], **fields: Any) -> list[Draft]:
    request = {"subtype": "can_use_tool", "tool_name": tool, "tool_use_id": "toolu_1", "input": arguments, **fields}
    return _heard(dialogue, {"type": "control_request", "request_id": "r1", "request": request})


def _prompt(*parts: TextPart | ImagePart | FileRefPart) -> Prompt:
    return Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts)


def _sent(dialogue: Dialogue) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(dialogue.take_sends()[-1])
    return decoded


@pytest.mark.parametrize("case", RECORDED)
def test_every_recorded_frame_is_understood(case: str) -> None:
    replay = Replay(RECORDED[case])
    assert _of_type(replay.drafts, "agent.unparsed") == []
    assert replay.dialogue.guard.turn_id is None


@pytest.mark.parametrize("case", RECORDED)
def test_answers_are_sent_as_they_were_when_recorded(case: str) -> None:
    answers = Replay(RECORDED[case]).answers
    assert [ours for ours, _ in answers] == [theirs for _, theirs in answers]


@pytest.mark.parametrize("case", STORIES)
def test_a_recording_tells_its_story(case: str) -> None:
    assert story(Replay(RECORDED[case]).drafts) == STORIES[case]


def test_an_edit_is_announced_with_its_diff() -> None:
    (change,) = _of_type(Replay(RECORDED["edit"]).drafts, "file.changed")
    path = "/workspaces/claude-edit/a.txt"
    assert (change.path, change.action) == (path, "modified")
    assert change.diff == f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"


def test_a_new_file_is_announced_with_all_its_lines() -> None:
    created = _of_type(Replay(RECORDED["write"]).drafts, "file.changed")[0]
    assert created.action == "created"
    assert created.diff == f"--- /dev/null\n+++ {created.path}\n@@ -0,0 +1,2 @@\n+one\n+two\n"


def test_a_question_has_its_options_and_belongs_to_its_call() -> None:
    drafts = Replay(RECORDED["question"]).drafts
    (asked,) = _of_type(drafts, "question.requested")
    call = _items(drafts)[0]
    assert (asked.prompt, asked.options, asked.item_id) == ("Which color?", ("Red", "Blue"), call.item_id)
    assert asked.questions[0].free_text


def test_a_plan_is_a_question_with_the_plan_in_it() -> None:
    (asked,) = _of_type(Replay(RECORDED["plan_file"]).drafts, "question.requested")
    assert asked.options == ("Approve", "Reject")
    assert asked.metadata == {"kind": "plan", "plan": "# Plan\n1. Do it"}


def test_what_a_sub_agent_does_hangs_below_its_call() -> None:
    (inner, result, message, outer, *_) = _items(Replay(RECORDED["subagent_tools"]).drafts)
    assert inner.parent_id == outer.item_id
    assert result.parent_id == inner.item_id
    assert message.parent_id == outer.item_id
    assert outer.parent_id is None


def test_usage_of_a_turn_is_told_with_its_cost() -> None:
    *_, last = _of_type(Replay(RECORDED["text"]).drafts, "usage.updated")
    assert isinstance(last, UsageUpdatedData)
    assert (last.input_tokens, last.output_tokens, last.context_window) == (3952, 20, 1_000_000)
    assert last.cost is not None
    assert last.cost.amount == pytest.approx(0.016208)


def test_the_native_session_id_is_known_from_the_first_turn_on() -> None:
    dialogue = Replay(RECORDED["text"]).dialogue
    assert dialogue.ready is not None
    assert dialogue.ready.native_session_id
    assert dialogue.ready.agent_version == "2.1.325"


def test_the_handshake_tells_models_and_efforts() -> None:
    dialogue = begun()
    models = [{"value": "opus", "displayName": "Opus", "supportedEffortLevels": ["low", "max"]}]
    response = {"subtype": "success", "request_id": "req_1", "response": {"models": models}}
    _heard(dialogue, {"type": "control_response", "response": response})
    assert dialogue.ready is not None
    assert [(model.id, model.name, model.variants) for model in dialogue.ready.models] == [
        ("opus", "Opus", ("low", "max"))
    ]


def test_the_handshake_tells_commands_whatever_their_authors_wrote() -> None:
    offered: list[tuple[Command, ...]] = []
    translator = ClaudeCodeAdapter().translator(PLAIN)
    dialogue = Dialogue(translator, start=1, max_frame_bytes=2**20, counts=Counts(), on_offer=offered.append)
    dialogue.open()
    commands = [
        {"name": "review", "description": "Review the diff", "argumentHint": "[what]", "builtin": True},
        {"name": "own", "description": None, "argumentHint": ["a", "b"]},
    ]
    response = {"subtype": "success", "request_id": "req_1", "response": {"commands": commands}}
    dialogue.feed(msgspec.json.encode({"type": "control_response", "response": response}) + b"\n")
    assert offered == [
        (Command(name="review", description="Review the diff", hint="[what]"), Command(name="own")),
    ]
    assert dialogue.ready is not None


def test_compaction_is_a_notice() -> None:
    frame = {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto", "pre_tokens": 9}}
    (notice,) = _of_type(_heard(begun(), frame), "notice")
    assert (notice.code, "9 tokens" in notice.message) == ("compaction", True)


def test_a_todo_list_is_a_plan() -> None:
    todos = [{"content": "Look", "status": "completed", "activeForm": "Looking"}, {"content": "Change", "status": "?"}]
    block = {"type": "tool_use", "id": "toolu_1", "name": "TodoWrite", "input": {"todos": todos}}
    drafts = _heard(begun(), {"type": "assistant", "uuid": "u1", "message": {"id": "m1", "content": [block]}})
    (plan,) = _of_type(drafts, "plan.updated")
    assert [(entry.content, entry.status) for entry in plan.entries] == [("Look", "completed"), ("Change", "pending")]


def test_a_permission_for_an_edit_shows_the_change_and_what_always_would_mean() -> None:
    arguments = {"file_path": "/w/a.txt", "old_string": "two", "new_string": "TWO"}
    (asked,) = _of_type(_asked(begun(), "Edit", arguments), "permission.requested")
    assert isinstance(asked, PermissionData)
    assert asked.metadata == {
        "input": arguments,
        "always": "Edit",
        "diff": "--- /w/a.txt\n+++ /w/a.txt\n@@ -1 +1 @@\n-two\n+TWO\n",
    }


def test_always_covers_a_command_no_wider_than_claude_code_proposes() -> None:
    rules = [{"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "npm test *"}]}]
    proposed = _of_type(
        _asked(begun(), "Bash", {"command": "npm test a"}, permission_suggestions=rules), "permission.requested"
    )
    alone = _of_type(_asked(begun(), "Bash", {"command": "rm -r x"}), "permission.requested")
    assert [ask.metadata["always"] for ask in (*proposed, *alone)] == ["Bash(npm test *)", "Bash(rm -r x)"]


def test_a_withdrawn_ask_is_resolved() -> None:
    dialogue = begun()
    _asked(dialogue, "Bash", {"command": "touch a"})
    drafts = _heard(dialogue, {"type": "control_cancel_request", "request_id": "r1"})
    (resolved,) = _of_type(drafts, "permission.resolved")
    assert (resolved.status, resolved.metadata["reason"]) == ("reject", "withdrawn")


@pytest.mark.parametrize(
    ("answers", "behavior", "told"),
    [
        ((("Approve",),), "allow", ""),
        ((("Reject",),), "deny", "revise"),
        ((("Use fewer files.",),), "deny", "Use fewer files."),
        (None, "deny", "revise"),
    ],
)
def test_only_an_approval_leaves_plan_mode(answers: Any, behavior: str, told: str) -> None:
    dialogue = begun()
    (asked,) = _of_type(_asked(dialogue, "ExitPlanMode", {"plan": "1. Look"}), "question.requested")
    assert isinstance(asked, QuestionData)
    dialogue.answer(QuestionAnswer(ask_id=asked.question_id, answers=answers))
    response = _sent(dialogue)["response"]["response"]
    assert response["behavior"] == behavior
    assert told in response.get("message", "")


def test_the_question_about_a_plan_is_ours_and_not_the_agents() -> None:
    dialogue = begun()
    dialogue.prompt(_prompt(TextPart(text="plan")))
    (asked,) = [draft for draft in _asked(dialogue, "ExitPlanMode", {"plan": "1. Look"}) if "question" in draft.type]
    assert (asked.source, asked.synthetic) == ("daemon", True)
    (asked,) = [draft for draft in _asked(dialogue, "Bash", {"command": "make"}) if "permission" in draft.type]
    assert (asked.source, asked.synthetic) == ("agent", False)


def test_several_choices_and_own_words_are_answers() -> None:
    questions = [
        {"question": "Which?", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": True},
        {"question": "Why?"},
    ]
    dialogue = begun()
    (asked,) = _of_type(_asked(dialogue, "AskUserQuestion", {"questions": questions}), "question.requested")
    dialogue.answer(QuestionAnswer(ask_id=asked.question_id, answers=(("A", "B"), ("Because.",))))
    response = _sent(dialogue)["response"]["response"]
    assert response["updatedInput"]["answers"] == {"Which?": "A, B", "Why?": "Because."}


def test_an_answer_for_an_earlier_process_is_not_sent() -> None:
    dialogue = begun()
    dialogue.take_sends()
    dialogue.answer(QuestionAnswer(ask_id="que_0_r1", answers=(("A",),)))
    assert dialogue.take_sends() == []


def test_a_request_that_nobody_can_do_is_refused_so_that_nothing_hangs() -> None:
    dialogue = begun()
    _heard(dialogue, {"type": "control_request", "request_id": "r9", "request": {"subtype": "new_thing"}})
    assert _sent(dialogue)["response"] == {
        "subtype": "error",
        "request_id": "r9",
        "error": "Not supported: new_thing",
    }


def test_an_interrupt_before_the_turn_has_begun_is_repeated_when_it_begins() -> None:
    dialogue = begun()
    dialogue.prompt(_prompt(TextPart(text="hi")))
    dialogue.interrupt("interrupted")
    dialogue.take_sends()
    _heard(dialogue, {"type": "system", "subtype": "init", "session_id": "s1"})
    assert _sent(dialogue)["request"] == {"subtype": "interrupt"}


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "brand_new"},
        {"type": "system", "subtype": "brand_new"},
        {"type": "result"},
        {"type": "stream_event", "event": {"type": "brand_new"}},
    ],
)
def test_a_frame_nobody_expected_is_recorded_as_such(frame: dict[str, Any]) -> None:
    assert len(_of_type(_heard(begun(), frame), "agent.unparsed")) == 1


def test_a_prompt_carries_text_files_and_images() -> None:
    dialogue = begun()
    parts = (TextPart(text="Look"), ImagePart(path="/w/pixel.png"), FileRefPart(path="/w/a.py", action="read"))
    dialogue.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts, images={"/w/pixel.png": b"png"}))
    assert _sent(dialogue)["message"]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}},
        {"type": "text", "text": "Attached file: /w/a.py"},
    ]


# The start


def test_a_plain_start_names_its_permission_mode_and_sets_no_provider() -> None:
    launch = ClaudeCodeAdapter().prepare(PLAIN, INSTALLED)
    assert "--permission-mode=default" in launch.argv
    assert [name for name in launch.env if name.startswith("ANTHROPIC_")] == []
    assert launch.files == {}


def test_a_start_says_what_was_chosen() -> None:
    chosen = {"model": "opus", "variant": "high", "mode": "plan", "resume": "abc", "permission_mode": "bypass"}
    launch = ClaudeCodeAdapter().prepare(msgspec.structs.replace(PLAIN, **chosen), INSTALLED)
    assert launch.argv[-4:] == ("--permission-mode=plan", "--model=opus", "--effort=high", "--resume=abc")


def test_a_provider_is_handed_over_by_variables() -> None:
    provider = Provider(type="anthropic", base_url="http://gateway", api_key="sk-1")
    env = ClaudeCodeAdapter().prepare(msgspec.structs.replace(PLAIN, provider=provider), INSTALLED).env
    assert (env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_API_KEY"]) == ("http://gateway", "sk-1")


def test_the_length_of_an_answer_is_limited_by_a_variable() -> None:
    limited = msgspec.structs.replace(PLAIN, limits=TurnLimits(max_tokens=8000))
    environments = [ClaudeCodeAdapter().prepare(spec, INSTALLED).env for spec in (PLAIN, limited)]
    assert [env.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS") for env in environments] == [None, "8000"]


def test_mcp_servers_go_into_a_file_so_that_their_secrets_show_on_no_command_line() -> None:
    servers = {
        "echo": StdioMcpServer(command="echo", args=("a",), env={"TOKEN": "secret"}),
        "web": HttpMcpServer(url="http://mcp", headers={"Authorization": "secret"}),
    }
    launch = ClaudeCodeAdapter().prepare(msgspec.structs.replace(PLAIN, mcp_servers=servers), INSTALLED)
    ((name, content),) = launch.files.items()
    assert f"--mcp-config={PLAIN.home}/{name}" in launch.argv
    assert "secret" not in " ".join(launch.argv)
    assert msgspec.json.decode(content)["mcpServers"] == {
        "echo": {"type": "stdio", "command": "echo", "args": ["a"], "env": {"TOKEN": "secret"}},
        "web": {"type": "http", "url": "http://mcp", "headers": {"Authorization": "secret"}},
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"mode": "dance"}, "'dance'. Possible: build, plan."),
        ({"variant": "huge"}, "'huge'. Possible: low, medium, high, xhigh, max."),
        ({"provider": Provider(type="openai", base_url="http://x")}, "'openai'. Possible: anthropic."),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Unprocessable, match="claude-code") as refused:
        ClaudeCodeAdapter().prepare(msgspec.structs.replace(PLAIN, **fields), INSTALLED)
    assert named in str(refused.value)


def test_its_modes_are_those_it_can_be_started_in() -> None:
    starts = [msgspec.structs.replace(PLAIN, mode=mode.id) for mode in INFO.modes]
    assert [ClaudeCodeAdapter().prepare(start, INSTALLED).argv[-1] for start in starts] == [
        "--permission-mode=default",
        "--permission-mode=plan",
    ]


def test_a_handshake_that_claude_code_refuses_fails_the_start_with_its_words() -> None:
    dialogue = begun()
    outcome = {"subtype": "error", "request_id": "req_1", "error": "Not today."}
    dialogue.feed(msgspec.json.encode({"type": "control_response", "response": outcome}) + b"\n")
    assert (dialogue.start_failure, dialogue.ready) == ("Not today.", None)


def test_a_message_that_is_told_again_after_an_interrupt_is_completed_once() -> None:
    """Claude Code 2.1.197 tells the message that was interrupted once more, in the next turn."""
    dialogue = begun()
    begin = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    grown = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}}
    whole = {"id": "msg_1", "role": "assistant", "content": [{"type": "text", "text": "half"}]}
    ended = {"type": "result", "subtype": "error_during_execution", "is_error": True}
    started: list[dict[str, Any]] = [{"type": "stream_event", "event": event} for event in (begin, block, grown)]
    for number, frames in enumerate([started, [{"type": "assistant", "message": whole}]]):
        dialogue.prompt(Prompt(prompt_id=f"prm_{number}", turn_id=f"trn_{number}", parts=(TextPart(text="hi"),)))
        for frame in (*frames, ended):
            dialogue.feed(msgspec.json.encode({**frame, "session_id": "s"}) + b"\n")
    completed = [draft.data.item.item_id for draft in dialogue.drafts if isinstance(draft.data, ItemCompletedData)]
    assert len(completed) == len(set(completed)) == 1
    assert [draft.type for draft in dialogue.drafts].count("turn.ended") == 2
