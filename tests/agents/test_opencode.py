"""OpenCode by its recordings: every frame is understood, and what comes out is what a person would tell."""

import json
import sys
from typing import Any

import msgspec
import pytest

from ostler.agents.adapter import Installation
from ostler.agents.opencode import BRIDGE, SHARED, OpenCodeAdapter
from ostler.base.errors import Unprocessable
from ostler.wire.events import FileChangedData, ItemStartedData, PermissionData, QuestionData
from ostler.wire.parts import FileRefPart, ImagePart, TextPart
from ostler.wire.providers import HttpMcpServer, Provider, StdioMcpServer
from ostler.wire.running import PermissionAnswer, Prompt, QuestionAnswer
from tests.agents.opencode_replay import Replay, replay, short, spec_with
from tests.support.recorded import recordings

RECORDED = {recording.case: recording for recording in recordings("opencode")}
RESUMED = {"resume": {"resume": "ses_e23146998ffekxbnDtvjDl29H1"}}
INSTALLED = Installation(path="/bin/opencode", command=("/bin/opencode",))
PROVIDER = Provider(type="openai", base_url="http://127.0.0.1:1/", api_key="sk-test")
SESSION = "ses_a"

STORIES = {
    "thinking": [
        "session.info",
        "item.started message in_progress",
        "item.delta reasoning",
        "item.completed message completed Let me think about this carefully.",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed Thought done.",
        "turn.ended completed",
    ],
    "bash": [
        "session.info",
        "item.started message in_progress",
        "item.delta text",
        'item.started tool_call in_progress bash{"command":"echo hi; echo err >&2; sleep 1; exit 3"}',
        "item.completed message completed Tools: bash, edit, glob, grep, question, read, skill, task, todowrite,"
        " webfetch, write",
        "terminal.output 'hi\\n'",
        "terminal.output 'err\\n'",
        'item.completed tool_call failed bash{"command":"echo hi; echo err >&2; sleep 1; exit 3"}',
        "item.started tool_result in_progress",
        "item.completed tool_result failed hi\nerr",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed Finished. Tool result: hi err",
        "turn.ended completed",
    ],
    "write": [
        "session.info",
        'item.started tool_call in_progress write{"content":"one\\ntwo\\n","filePath":"/workspaces/oc-write/a.txt"}',
        'item.completed tool_call completed write{"content":"one\\ntwo\\n","filePath":"/workspaces/oc-write/a.txt"}',
        "item.started tool_result in_progress",
        "item.completed tool_result completed Wrote file successfully.",
        "file.changed created /workspaces/oc-write/a.txt",
        "artifact.created",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed Finished. Tool result: Wrote file successfully.",
        "turn.ended completed",
    ],
    "perm_approve": [
        "session.info",
        'item.started tool_call in_progress bash{"command":"touch made"}',
        "permission.requested bash: touch made requested",
        'item.completed tool_call completed bash{"command":"touch made"}',
        "item.started tool_result in_progress",
        "item.completed tool_result completed (no output)",
        "file.changed modified /workspaces/oc-perm_approve/made",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed Finished. Tool result: (no output)",
        "turn.ended completed",
    ],
    "perm_deny": [
        "session.info",
        'item.started tool_call in_progress bash{"command":"touch made"}',
        "permission.requested bash: touch made requested",
        'item.completed tool_call failed bash{"command":"touch made"}',
        "item.started tool_result in_progress",
        "item.completed tool_result failed The user rejected permission to use this specific tool call.",
        "turn.ended completed",
    ],
    "plan_exit": [
        "session.info",
        "item.started tool_call in_progress plan_exit{}",
        "question.requested Go on with this plan? ('Approve', 'Reject')",
        "item.completed tool_call failed plan_exit{}",
        "item.started tool_result in_progress",
        "item.completed tool_result failed The user dismissed this question",
        "turn.ended completed",
    ],
    "error_401": ["session.info", "error auth Scripted error 401", "turn.ended failed"],
    "error_retry_recovers": [
        "session.info",
        "notice retry The provider failed: Scripted error 500. Trying again (1).",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed recovered",
        "turn.ended completed",
    ],
    "interrupt": [
        "session.info",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed tick1 tick2 tick3",
        "turn.ended interrupted",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed Recall: 2 scripted user turns, 0 images, first: slow 100 0.2",
        "turn.ended completed",
    ],
    "steer": [
        "session.info",
        "item.started message in_progress",
        "item.delta text",
        'item.started tool_call in_progress bash{"command":"ls"}',
        "item.completed message completed tick1 tick2 tick3 tick4 tick5 tick6 tick7 tick8 tick9 tick10 tick11 tick12"
        " tick13 tick14 tick15",
        'item.completed tool_call completed bash{"command":"ls"}',
        "item.started tool_result in_progress",
        "item.completed tool_result completed (no output)",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed second message seen",
        "turn.ended completed",
    ],
    "compact": [
        "session.info",
        "item.started message in_progress",
        "item.delta text",
        "item.completed message completed hi",
        "turn.ended completed",
        "notice compaction The conversation is made shorter to fit the model.",
    ],
}


@pytest.mark.parametrize("case", RECORDED)
def test_every_recorded_frame_is_understood(case: str) -> None:
    played = replay(RECORDED[case], **RESUMED.get(case, {}))
    assert [draft.data for draft in played.drafts if draft.type == "agent.unparsed"] == []
    assert played.dialogue.ready is not None


@pytest.mark.parametrize("case", STORIES)
def test_a_recording_becomes_the_story_a_person_would_tell(case: str) -> None:
    assert short(replay(RECORDED[case]).drafts) == STORIES[case]


def test_an_edit_comes_with_its_diff() -> None:
    (change,) = _all(replay(RECORDED["edit"]), FileChangedData)
    path = "/workspaces/oc-edit/a.txt"
    assert change.diff == f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"


def test_a_permission_shows_the_arguments_and_what_always_would_cover() -> None:
    (ask,) = _all(replay(RECORDED["perm_deny"]), PermissionData)
    assert ask.metadata == {"input": {"command": "touch made"}, "always": "bash(touch *)"}
    assert ask.tool == "bash"


def test_a_question_has_its_options_and_takes_an_answer_in_own_words() -> None:
    (ask,) = _all(replay(RECORDED["question"]), QuestionData)
    (asked,) = ask.questions
    assert ([option.label for option in asked.options], asked.multi_select, asked.free_text) == (
        ["Red", "Blue"],
        False,
        True,
    )


def test_what_a_sub_agent_does_hangs_below_the_call_that_started_it() -> None:
    items = [data.item for data in _all(replay(RECORDED["subagent"]), ItemStartedData)]
    task, words, *_ = items
    assert (task.kind, words.kind, words.parent_id) == ("tool_call", "message", task.item_id)


def test_models_modes_and_the_version_come_from_the_handshake() -> None:
    offered = {"id": "big", "name": "Big", "limit": {"context": 9}, "variants": {"low": {}, "high": {}}}
    agents = [{"name": "build", "hidden": None}, {"name": "title", "hidden": True}, {"name": "go", "mode": "subagent"}]
    played = Replay()
    played.respond("/config/providers", 200, {"providers": [{"id": "acme", "models": {"big": offered}}]})
    played.respond("/agent", 200, agents)
    played.respond("/session", 200, {"id": SESSION, "version": "1.2.3"})
    ready = played.dialogue.ready
    assert ready is not None
    assert [(model.id, model.variants) for model in ready.models] == [("acme/big", ("low", "high"))]
    assert [mode.id for mode in ready.modes] == ["build"]
    assert (ready.native_session_id, ready.agent_version, ready.mode) == (SESSION, "1.2.3", "build")


# Ends of turns


def test_the_second_idle_of_an_aborted_turn_does_not_end_the_next_one() -> None:
    played = _working()
    played.interrupt()
    played.respond(f"/session/{SESSION}/abort", 200, True)
    played.event("session.error", sessionID=SESSION, error={"name": "MessageAbortedError"})
    played.event("session.idle", sessionID=SESSION)
    played.event("message.updated", info=_message("msg_2", "assistant", completed=2))
    assert short(played.drafts)[-1] == "turn.ended interrupted"
    played.prompt("again")
    played.event("session.idle", sessionID=SESSION)
    played.event("message.updated", info=_message("msg_3", "user"))
    assert played.dialogue.guard.turn_id == "trn_2"


def test_a_message_added_at_the_last_moment_still_belongs_to_the_turn() -> None:
    played = _working()
    played.prompt("and this")
    played.event("message.updated", info=_message("msg_2", "assistant", completed=2))
    played.event("session.idle", sessionID=SESSION)
    assert played.dialogue.guard.turn_id == "trn_1"
    played.event("message.updated", info=_message("msg_3", "user"))
    played.event("session.status", sessionID=SESSION, status={"type": "busy"})
    assert played.dialogue.guard.turn_id == "trn_1"
    played.event("session.idle", sessionID=SESSION)
    assert short(played.drafts)[-1] == "turn.ended completed"


def test_an_interrupt_before_the_work_began_is_sent_when_it_does() -> None:
    played = _ready()
    played.prompt("go")
    played.interrupt()
    assert not played.sent[-1]["path"].startswith(f"/session/{SESSION}/abort")
    played.event("message.updated", info=_message("msg_1", "user"))
    played.event("session.status", sessionID=SESSION, status={"type": "busy"})
    assert played.sent[-1]["path"].startswith(f"/session/{SESSION}/abort")


def test_a_provider_that_fails_for_ever_is_given_up() -> None:
    played = _working()
    for attempt in range(1, 5):
        status = {"type": "retry", "attempt": attempt, "message": "Too many requests"}
        played.event("session.status", sessionID=SESSION, status=status)
    assert short(played.drafts)[-4:] == [
        *[f"notice retry The provider failed: Too many requests. Trying again ({n})." for n in (1, 2, 3)],
        "error rate_limit Too many requests",
    ]
    played.respond(f"/session/{SESSION}/abort", 200, True)
    played.event("session.idle", sessionID=SESSION)
    played.event("session.idle", sessionID=SESSION)
    assert short(played.drafts)[-1] == "turn.ended failed"


def test_a_prompt_that_is_refused_fails_the_turn_once() -> None:
    played = _ready()
    played.prompt("go")
    played.respond(f"/session/{SESSION}/prompt_async", 400, {"name": "BadRequest", "data": {"message": "no"}})
    assert short(played.drafts)[-2:] == ["error agent_error no (status 400)", "turn.ended failed"]


def test_what_other_sessions_of_the_server_do_is_not_told() -> None:
    played = _working()
    before = len(played.drafts)
    played.event("session.idle", sessionID="ses_other")
    played.event("session.error", sessionID="ses_other", error={"name": "UnknownError"})
    played.event("permission.asked", id="per_9", sessionID="ses_other", permission="bash")
    played.event("message.updated", info={**_message("msg_9", "user"), "sessionID": "ses_other"})
    assert played.drafts[before:] == []


def test_an_event_nobody_expected_is_recorded_and_one_with_new_fields_is_not() -> None:
    played = _working()
    played.event("session.sang", sessionID=SESSION)
    played.event("session.idle", sessionID="ses_other", mood="good")
    assert short(played.drafts).count("agent.unparsed") == 1


# The handshake's failures


def test_a_lost_conversation_is_replaced_with_a_notice() -> None:
    played = Replay(resume="ses_gone")
    played.respond("/session/ses_gone", 404, {"name": "NotFoundError", "data": {"message": "Session not found"}})
    played.respond("/session", 200, {"id": SESSION})
    assert short(played.drafts) == [
        "notice resume_failed OpenCode no longer has the conversation ses_gone; a new one begins.",
        "session.info",
    ]


def test_a_server_that_makes_no_session_fails_the_start_with_the_reason() -> None:
    played = Replay()
    played.respond("/session", 500, {"name": "ConfigInvalidError"})
    assert played.dialogue.start_failure == "No session could be made: ConfigInvalidError (status 500)"


# Answers and prompts


@pytest.mark.parametrize(
    ("answer", "path", "body"),
    [
        (PermissionAnswer(ask_id="per_1_p", allow=True), "/permission/p/reply", {"reply": "once"}),
        (
            PermissionAnswer(ask_id="per_1_p", allow=False, message="no"),
            "/permission/p/reply",
            {"reply": "reject", "message": "no"},
        ),
        (QuestionAnswer(ask_id="que_1_q", answers=(("A", "B"),)), "/question/q/reply", {"answers": [["A", "B"]]}),
        (QuestionAnswer(ask_id="que_1_q", answers=None), "/question/q/reject", None),
    ],
)
def test_a_decision_is_told_for_this_once(answer: Any, path: str, body: Any) -> None:
    played = _working()
    played.event("permission.asked", id="p", sessionID=SESSION, permission="doom_loop")
    played.event("question.asked", id="q", sessionID=SESSION, questions=[{"question": "Which?", "multiple": True}])
    played.dialogue.answer(answer)
    (frame,) = played.dialogue.take_sends()
    sent = json.loads(frame)
    assert (sent["path"].partition("?")[0], sent["body"]) == (path, body)


def test_an_approved_plan_goes_on_in_build_mode_and_shows_the_file_it_was_written_to() -> None:
    played = _working(permission_mode="plan")
    written = {"filePath": "/home/agent/plans/1-a.md", "content": "1. Look."}
    played.event("message.part.updated", part=_tool("prt_1", "write", "call_1", "completed", written))
    asked = [{"question": "Plan at plans/1-a.md is complete. Switch?", "custom": False}]
    played.event("question.asked", id="q", sessionID=SESSION, questions=asked, tool={"callID": "call_2"})
    played.event("message.part.updated", part=_tool("prt_2", "plan_exit", "call_2", "running", {}))
    (ask,) = _all(played, QuestionData)
    assert ask.metadata == {"kind": "plan", "plan": "1. Look."}
    played.dialogue.answer(QuestionAnswer(ask_id=ask.question_id, answers=(("Approve",),)))
    assert [json.loads(frame)["body"] for frame in played.dialogue.take_sends()] == [{"answers": [["Yes"]]}]
    (info,) = played.dialogue.take_drafts()
    assert msgspec.to_builtins(info.data)["mode"] == "build"


def test_a_prompt_names_model_mode_and_variant_and_refers_to_files() -> None:
    played = _ready(model="acme/big/one", mode="build", variant="high")
    parts = (TextPart(text="look"), ImagePart(path="/tmp/a b.png"), FileRefPart(path="/tmp/x.md", action="read"))
    played.dialogue.prompt(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts))
    assert json.loads(played.dialogue.take_sends()[0])["body"] == {
        "agent": "build",
        "variant": "high",
        "model": {"providerID": "acme", "modelID": "big/one"},
        "parts": [
            {"type": "text", "text": "look"},
            {"type": "file", "mime": "image/png", "filename": "a b.png", "url": "file:///tmp/a%20b.png"},
            {"type": "file", "mime": "text/plain", "filename": "x.md", "url": "file:///tmp/x.md"},
        ],
    }


# The launch


def test_a_bridge_starts_its_server_and_listens_to_the_events_of_the_workspace() -> None:
    launch = OpenCodeAdapter().prepare(spec_with(cwd="/work space"), INSTALLED)
    assert launch.argv[:4] == (sys.executable, "-I", "-S", str(BRIDGE))
    assert launch.argv[4:7] == ("/event?directory=%2Fwork%20space", "opencode", "OPENCODE_SERVER_PASSWORD")
    assert launch.argv[8:] == ("/bin/opencode", "serve", "--hostname", "127.0.0.1", "--port", "0")


def test_a_session_takes_a_seat_at_a_shared_server_whose_home_is_nobody_s_own() -> None:
    spec = spec_with(cwd="/work space", shared="/shared/a", instructions="Be kind.")
    launch = OpenCodeAdapter().prepare(spec, INSTALLED)
    assert (launch.argv[4], launch.argv[-1], launch.env) == ("/event?directory=%2Fwork%20space", "@/shared/a", {})
    assert launch.shared is not None
    assert launch.shared.argv[3:5] == (str(SHARED), "/shared/a")
    assert launch.shared.argv[8:10] == ("/bin/opencode", "serve")
    config = json.loads(launch.shared.env["OPENCODE_CONFIG_CONTENT"])
    assert config["instructions"] == ["/shared/a/home/.ostler/instructions.md"]


def test_a_shared_server_is_told_to_end_the_turn_of_a_session_that_is_gone() -> None:
    played = _ready(shared="/shared/a")
    path = f"/session/{SESSION}/abort?directory=%2Fworkspaces%2Fone"
    assert [(sent["method"], sent["path"]) for sent in played.sent[-1:]] == [("LAST", path)]
    assert [sent["method"] for sent in _ready().sent].count("LAST") == 0


def test_a_session_s_provider_is_the_only_one() -> None:
    config = _config(provider=PROVIDER, model="big")
    assert (config["model"], config["small_model"], config["enabled_providers"]) == (
        "ostler/big",
        "ostler/big",
        ["ostler"],
    )
    assert config["provider"]["ostler"]["options"] == {"baseURL": "http://127.0.0.1:1/v1", "apiKey": "sk-test"}


def test_without_a_provider_nothing_is_said_about_one() -> None:
    assert {"provider", "model", "enabled_providers"}.isdisjoint(_config())


def test_mcp_servers_are_configured() -> None:
    servers = {
        "here": StdioMcpServer(command="run", args=("it",), env={"A": "1"}),
        "there": HttpMcpServer(url="http://127.0.0.1:1/mcp", headers={"x": "y"}),
    }
    assert _config(mcp_servers=servers)["mcp"] == {
        "here": {"type": "local", "command": ["run", "it"], "environment": {"A": "1"}},
        "there": {"type": "remote", "url": "http://127.0.0.1:1/mcp", "headers": {"x": "y"}},
    }


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"model": "big"}, "big"),
        ({"provider": PROVIDER}, "needs a model"),
        ({"permission_mode": "plan", "mode": "build"}, "build"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Unprocessable, match=named):
        OpenCodeAdapter().prepare(spec_with(**fields), INSTALLED)


def _config(**fields: Any) -> dict[str, Any]:
    launch = OpenCodeAdapter().prepare(spec_with(**fields), INSTALLED)
    return dict(json.loads(launch.env["OPENCODE_CONFIG_CONTENT"]))


def _all(played: Replay, kind: type[Any]) -> list[Any]:
    return [draft.data for draft in played.drafts if isinstance(draft.data, kind)]


def _ready(**fields: Any) -> Replay:
    played = Replay(**fields)
    played.respond("/session", 200, {"id": SESSION})
    return played


def _working(**fields: Any) -> Replay:
    """A turn in which the model has begun to answer."""
    played = _ready(**fields)
    played.prompt("go")
    played.event("message.updated", info=_message("msg_1", "user"))
    played.event("session.status", sessionID=SESSION, status={"type": "busy"})
    played.event("message.updated", info=_message("msg_2", "assistant"))
    return played


def _message(native: str, role: str, completed: int | None = None) -> dict[str, Any]:
    return {"id": native, "sessionID": SESSION, "role": role, "time": {"created": 1, "completed": completed}}


def _tool(native: str, tool: str, call: str, status: str, given: dict[str, Any]) -> dict[str, Any]:
    base = {"id": native, "sessionID": SESSION, "messageID": "msg_2", "type": "tool"}
    return {**base, "tool": tool, "callID": call, "state": {"status": status, "input": given}}
