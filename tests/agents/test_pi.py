"""Pi from recordings of the real program: what its frames become, and how it is started."""

import json
from typing import Any

import pytest

from ostler.agents.adapter import Installation, Send, StartFailed
from ostler.agents.pi import PiAdapter
from ostler.agents.pi.errors import provider_error
from ostler.base.errors import Unprocessable
from ostler.runner.execution.dialogue import Counts, Dialogue
from ostler.wire.parts import TextPart
from ostler.wire.providers import Provider, StdioMcpServer
from ostler.wire.running import AgentSpec, Draft, PermissionAnswer, Prompt, QuestionAnswer
from tests.support.recorded import Line, Recording, recordings

RECORDINGS = {recording.case: recording for recording in recordings("pi")}
PLACE = Installation(path="/bin/pi", command=("/bin/pi",))
PROVIDER = Provider(type="openai", base_url="http://127.0.0.1:9/", api_key="!touch owned")


def spec(**fields: Any) -> AgentSpec:
    given: dict[str, Any] = {"permission_mode": "default", **fields}
    return AgentSpec(session_id="ses_1", agent="pi", start=1, cwd="/workspace", home="/home/agent", env={}, **given)


class Replay:
    """Plays a recording to a fresh translator, with its own ids in place of the recorded ones."""

    def __init__(self, recording: Recording) -> None:
        translator = PiAdapter().translator(spec())
        self.dialogue = Dialogue(translator, start=1, max_frame_bytes=2**20, counts=Counts())
        self.drafts: list[Draft] = []
        self._ids: dict[str, str] = {}
        self._turns = 0
        for line in recording.lines:
            (self._heard if line.dir == "out" else self._said)(line)
            self.drafts += self.dialogue.take_drafts()

    def _heard(self, line: Line) -> None:
        known = {"id": self._ids[line.data["id"]]} if line.data.get("id") in self._ids else {}
        self.dialogue.feed(json.dumps({**line.data, **known}).encode() + b"\n")

    def _said(self, line: Line) -> None:
        self._turns += line.data["type"] == "prompt"
        prompt = Prompt(prompt_id="prm", turn_id=f"trn_{self._turns}", parts=(TextPart(text="recorded"),))
        match line.data["type"]:
            case "prompt":
                self.dialogue.prompt(prompt)
            case "steer":
                self.dialogue.steer(prompt)
            case "abort":
                self.dialogue.interrupt("interrupted")
            case _:
                return
        self._ids[line.data["id"]] = json.loads(self.dialogue.take_sends()[-1])["id"]


def told(case: str) -> list[tuple[str, str]]:
    """Every event of a recording as its type and a short form; deltas of one item in a row are one."""
    short: list[tuple[str, str]] = []
    for draft in Replay(RECORDINGS[case]).drafts:
        if _is_own(draft):
            continue
        kind, text = draft.type, _short(draft)
        if kind == "item.delta" and short and short[-1][0] == kind:
            short[-1] = (kind, short[-1][1] + text)
        elif kind != "usage.updated":
            short.append((kind, text))
    return short


def _is_own(draft: Draft) -> bool:
    data: Any = draft.data
    return draft.type in {"item.started", "item.completed"} and data.item.kind == "status"


def _short(draft: Draft) -> str:
    data: Any = draft.data
    match draft.type:
        case "item.started":
            return str(data.item.kind)
        case "item.completed":
            return f"{data.item.kind} {data.item.status}: {''.join(map(_words, data.item.content))}"
        case "item.delta":
            return _words(data.delta)
        case "permission.requested" | "permission.resolved":
            return f"{data.status} {data.tool}: {data.action}"
        case "question.requested" | "question.resolved":
            return f"{data.status} {data.prompt} {'|'.join(data.options)}"
        case "turn.ended":
            return str(data.outcome)
        case "terminal.output":
            return str(data.data)
        case "file.changed" | "artifact.created":
            return f"{data.action} {data.path}"
        case "notice" | "error":
            return f"{data.code}: {data.message}"
        case _:
            return ""


def _words(part: Any) -> str:
    return str(getattr(part, "text", None) or getattr(part, "output", None) or getattr(part, "arguments", ""))


@pytest.mark.parametrize("case", RECORDINGS)
def test_every_recorded_frame_is_understood(case: str) -> None:
    assert [draft for draft in Replay(RECORDINGS[case]).drafts if draft.type == "agent.unparsed"] == []


def test_thoughts_and_text_are_one_message() -> None:
    assert told("old_text") == [
        ("session.info", ""),
        ("item.started", "message"),
        ("item.delta", "Hm.Hello."),
        ("item.completed", "message completed: Hm.Hello."),
        ("turn.ended", "completed"),
    ]


def test_events_that_only_pi_has_are_moments_with_its_own_names_and_no_words() -> None:
    drafts: list[Any] = [
        draft.data
        for draft in Replay(RECORDINGS["error_429"]).drafts
        if _is_own(draft) and draft.type == "item.completed"
    ]
    names = [data.item.native_item_id for data in drafts]
    assert [name for name in names if "retry" in name] == ["pi.auto_retry_start"] * 3 + ["pi.auto_retry_end"]
    assert (names[0], names[1], names.count("pi.agent_end")) == ("pi.agent_start", "pi.turn_start", 4)
    assert {data.item.content for data in drafts} == {()}


def test_a_command_prints_while_it_runs_and_its_failure_is_seen() -> None:
    command = '{"command": "echo hi; echo err >&2; sleep 1; exit 3"}'
    assert told("bash")[3:10] == [
        ("item.started", "tool_call"),
        ("terminal.output", "hi\n"),
        ("terminal.output", "err\n"),
        ("item.completed", f"tool_call failed: {command}"),
        ("item.started", "tool_result"),
        ("item.completed", "tool_result failed: hi\nerr\n\n\nCommand exited with code 3"),
        ("item.started", "message"),
    ]


def test_a_rejected_permission_is_asked_once_and_fails_the_call() -> None:
    assert told("our_permission_reject")[1:7] == [
        ("item.started", "tool_call"),
        ("permission.requested", "requested bash: touch made"),
        ("item.completed", 'tool_call failed: {"command": "touch made"}'),
        ("item.started", "tool_result"),
        ("item.completed", "tool_result failed: The user rejected this tool call: not on a Sunday"),
        ("item.started", "message"),
    ]


def test_a_question_has_its_options() -> None:
    assert told("our_question")[2:6] == [
        ("question.requested", "requested Which colour? Blue|Red"),
        ("item.completed", 'tool_call completed: {"question": "Which colour?", "options": ["Blue", "Red"]}'),
        ("item.started", "tool_result"),
        ("item.completed", "tool_result completed: The user answered: Blue"),
    ]


def test_a_plan_is_a_question() -> None:
    (asked,) = [draft.data for draft in Replay(RECORDINGS["our_plan"]).drafts if draft.type == "question.requested"]
    assert getattr(asked, "options", ()) == ("Approve", "Reject")
    assert getattr(asked, "metadata", {}) == {"kind": "plan", "plan": "1. Look. 2. Change it."}


def test_a_file_written_over_comes_with_its_diff() -> None:
    (change,) = [draft.data for draft in Replay(RECORDINGS["our_write_over"]).drafts if draft.type == "file.changed"]
    path = "/workspace/a.txt"
    assert getattr(change, "action", "") == "modified"
    assert getattr(change, "diff", "") == f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"


@pytest.mark.parametrize("case", ["edit", "old_edit"])
def test_an_edit_comes_with_its_diff(case: str) -> None:
    (change,) = [draft.data for draft in Replay(RECORDINGS[case]).drafts if draft.type == "file.changed"]
    assert "\n-two\n+" in getattr(change, "diff", "")


def test_wrong_credentials_fail_the_turn() -> None:
    assert told("error_401") == [("error", "auth: 401 Scripted error 401"), ("turn.ended", "failed")]


@pytest.mark.parametrize(
    ("case", "end"),
    [("error_429", "rate_limit: 429 Scripted error 429"), ("old_error_500", "provider_error: 500 Scripted error 500")],
)
def test_retries_are_told_and_the_last_failure_ends_the_turn_once(case: str, end: str) -> None:
    what = end.partition(": ")[2]
    tries = [("notice", f"retry: {what} (try {n} of 3 in {2**n} s)") for n in (1, 2, 3)]
    assert [event for event in told(case) if event[0] != "session.info"] == [
        *tries,
        ("error", end),
        ("turn.ended", "failed"),
    ]


@pytest.mark.parametrize("case", ["new_interrupt_retry", "old_interrupt_retry"])
def test_an_interrupt_ends_a_turn_that_waits_for_its_next_try(case: str) -> None:
    assert told(case)[-1] == ("turn.ended", "interrupted")
    assert "error" not in dict(told(case))


def test_an_interrupt_ends_one_turn_and_not_the_next() -> None:
    assert told("interrupt") == [
        ("item.started", "message"),
        ("item.delta", "tick1 tick2 tick3 "),
        ("item.completed", "message failed: tick1 tick2 tick3 "),
        ("turn.ended", "interrupted"),
        ("item.started", "message"),
        ("item.delta", "Recall: 2 scripted user turns, 0 images, first: slow 100 0.2"),
        ("item.completed", "message completed: Recall: 2 scripted user turns, 0 images, first: slow 100 0.2"),
        ("turn.ended", "completed"),
    ]


def test_an_interrupt_withdraws_an_open_ask() -> None:
    assert told("our_interrupt_ask")[1:] == [
        ("item.started", "tool_call"),
        ("permission.requested", "requested bash: touch made"),
        ("permission.resolved", "reject bash: touch made"),
        ("item.completed", 'tool_call failed: {"command": "touch made"}'),
        ("item.started", "tool_result"),
        ("item.completed", "tool_result failed: Operation aborted"),
        ("turn.ended", "interrupted"),
    ]


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (b'{"type": "surprise"}', "Invalid value 'surprise'"),
        (b'{"type": "tool_execution_end", "toolCallId": "x", "result": {}}', "No tool call x is open"),
        (b"not json", "JSON is malformed: invalid character (byte 4)"),
    ],
)
def test_a_frame_nobody_expects_is_recorded(frame: bytes, error: str) -> None:
    dialogue = Dialogue(PiAdapter().translator(spec()), start=1, max_frame_bytes=2**20, counts=Counts())
    dialogue.feed(frame + b"\n")
    assert [getattr(draft.data, "error", "") for draft in dialogue.take_drafts()] == [error]


@pytest.mark.parametrize(
    ("text", "message", "code"),
    [
        ('401 {"type":"error","error":{"message":"No"}}', "401 No", "auth"),
        ('{"error":{"code":429,"message":"Slowly","status":"RESOURCE_EXHAUSTED"}}', "429 Slowly", "rate_limit"),
        ("500 Broken", "500 Broken", "provider_error"),
        ("Connection error.", "Connection error.", "provider_error"),
        (None, "The model failed without a reason.", "provider_error"),
    ],
)
def test_the_providers_own_words_are_told(text: str | None, message: str, code: str) -> None:
    error = provider_error(text)
    assert (error.message, error.code) == (message, code)


# Dialogs of extensions that are not ours


@pytest.mark.parametrize(
    ("request_", "answers", "reply"),
    [
        ({"method": "confirm", "title": "Sure?", "message": "All goes."}, (("Yes",),), {"confirmed": True}),
        ({"method": "confirm", "title": "Sure?"}, None, {"confirmed": False}),
        ({"method": "input", "title": "Name?"}, (("Ada",),), {"value": "Ada"}),
        ({"method": "select", "title": "Which?", "options": ["a", "b"]}, (("b",),), {"value": "b"}),
        ({"method": "select", "title": "Which?", "options": ["a", "b"]}, None, {"cancelled": True}),
    ],
)
def test_any_extension_may_ask(request_: dict[str, Any], answers: Any, reply: dict[str, Any]) -> None:
    translator = PiAdapter().translator(spec())
    translator.feed(json.dumps({"type": "extension_ui_request", "id": "u1", **request_}).encode())
    (sent,) = translator.answer(QuestionAnswer(ask_id="que_1_u1", answers=answers))
    assert isinstance(sent, Send)
    assert json.loads(sent.frame) == {"type": "extension_ui_response", "id": "u1", **reply}


def test_an_answer_to_an_ask_of_an_earlier_process_is_dropped() -> None:
    assert PiAdapter().translator(spec()).answer(PermissionAnswer(ask_id="per_0_u1", allow=True)) == ()


# How it is started


def test_a_key_never_stands_in_a_file_where_pi_would_run_it() -> None:
    launch = PiAdapter().prepare(spec(provider=PROVIDER, model="m"), PLACE)
    provider = json.loads(launch.files[".pi/agent/models.json"])["providers"]["ostler"]
    assert (provider["baseUrl"], provider["apiKey"]) == ("http://127.0.0.1:9/v1", "$OSTLER_PROVIDER_KEY")
    assert launch.env["OSTLER_PROVIDER_KEY"] == "!touch owned"


def test_without_a_provider_pi_uses_its_own() -> None:
    launch = PiAdapter().prepare(spec(), PLACE)
    assert list(launch.files) == [".pi/ostler/hitl.ts"]
    assert "--provider" not in launch.argv


def test_mcp_servers_come_with_an_extension_and_a_file() -> None:
    launch = PiAdapter().prepare(spec(mcp_servers={"x": StdioMcpServer(command="run", args=("it",))}), PLACE)
    assert json.loads(launch.files[".pi/ostler/mcp.json"]) == {
        "x": {"type": "stdio", "command": "run", "args": ["it"], "env": {}}
    }
    assert launch.argv[-2:] == ("--extension", "/home/agent/.pi/ostler/mcp.ts")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"mode": "yolo"}, "Agent 'pi' has no mode 'yolo'. Possible: default, plan."),
        (
            {"variant": "huge"},
            "Agent 'pi' has no variant 'huge'. Possible: off, minimal, low, medium, high, xhigh, max.",
        ),
        ({"provider": PROVIDER}, "Agent 'pi' needs a model when the session brings its own provider."),
    ],
)
def test_what_pi_cannot_do_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        PiAdapter().prepare(spec(**fields), PLACE)
    assert str(refused.value) == reason


def test_a_state_that_pi_does_not_tell_fails_the_start() -> None:
    translator = PiAdapter().translator(spec())
    translator.open()
    frame = {"type": "response", "command": "get_state", "success": False, "error": "no state"}
    assert translator.feed(json.dumps(frame).encode()) == (StartFailed("Pi does not tell its state: no state"),)
