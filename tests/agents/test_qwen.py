"""Qwen Code: recordings of the real agent mean what a person expects, and its launch says all it needs."""

import json
from typing import Any

import pytest

from ostler.agents.adapter import Installation
from ostler.agents.qwen import ADAPTER
from ostler.base.errors import Unprocessable
from ostler.wire.parts import ImagePart, TextPart
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec, Prompt
from tests.agents.acp_replay import SPEC, Replay, short
from tests.support.recorded import recordings

RECORDINGS = {recording.case: recording for recording in recordings("acp-qwen")}
FOUND = Installation(path="/bin/qwen", command=("/bin/qwen",))
DRAIN = {"jsonrpc": "2.0", "id": 7, "method": "craft/drainMidTurnQueue", "params": {"sessionId": "s"}}


def _replayed(case: str) -> Replay:
    return Replay(ADAPTER, RECORDINGS[case])


def _spec(**fields: Any) -> AgentSpec:
    return AgentSpec(**{**SPEC, "agent": "qwen", **fields})


@pytest.mark.parametrize("case", RECORDINGS)
def test_every_recorded_frame_is_understood(case: str) -> None:
    assert _replayed(case).counts.unparsed == 0


def test_text() -> None:
    assert short(_replayed("text").drafts)[:3] == [
        ("item.started", "message in_progress"),
        ("item.completed", "message completed Hello from the scripted model."),
        ("turn.ended", "completed end_turn"),
    ]


def test_a_call_starts_when_its_arguments_are_known() -> None:
    call = 'run_shell_command({"command": "touch made"})'
    assert short(_replayed("perm_deny").drafts) == [
        ("item.started", f"tool_call in_progress {call}"),
        ("permission.requested", "requested run_shell_command: touch made"),
        ("item.completed", f"tool_call failed {call}"),
        ("item.started", "tool_result in_progress"),
        ("item.completed", 'tool_result failed Tool "run_shell_command" was canceled by the user.'),
        ("turn.ended", "completed end_turn"),
    ]


def test_a_question_inside_a_permission_request_is_a_question() -> None:
    replay = _replayed("question")
    asked = [event for event in short(replay.drafts) if event[0].startswith(("question", "permission"))]
    answer = {"outcome": {"outcome": "selected", "optionId": "proceed_once"}, "answers": {"0": "Blue"}}
    assert asked == [("question.requested", "requested Which color? Red/Blue")]
    assert answer in [sent.get("result") for sent in replay.sent]


def test_an_error_fails_the_turn_with_the_providers_words() -> None:
    assert short(_replayed("error_401").drafts) == [
        ("error", "auth Internal error: 401 Scripted error 401"),
        ("turn.ended", "failed error"),
    ]


def test_its_own_mode_is_left_for_ours_before_the_first_prompt() -> None:
    methods = [sent["method"] for sent in _replayed("text").sent]
    assert methods[:4] == ["initialize", "session/new", "session/set_mode", "session/prompt"]


def test_it_resumes_without_hearing_its_history_again() -> None:
    replay = _replayed("resume")
    assert replay.sent[1]["method"] == "session/resume"
    assert [event for event in short(replay.drafts) if event[0] == "item.completed"] == [
        (
            "item.completed",
            "message completed Recall: 2 scripted user turns, 0 images, first: say The magic word is xyzzy.",
        )
    ]


def test_steering_waits_until_the_agent_fetches_it() -> None:
    translator = ADAPTER.translator(_spec())
    parts = (TextPart(text="look left"),)
    assert translator.steer(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts)) == ()
    fetched = [translator.feed(json.dumps(DRAIN).encode())[0] for _ in range(2)]
    assert [json.loads(getattr(send, "frame"))["result"]["messages"] for send in fetched] == [["look left"], []]  # noqa: B009  a Send


def test_an_image_cannot_be_steered() -> None:
    parts = (ImagePart(path="/a.png"),)
    assert ADAPTER.translator(_spec()).steer(Prompt(prompt_id="prm_1", turn_id="trn_1", parts=parts)) is None


def test_a_provider_is_set_by_variables_and_a_file() -> None:
    provider = Provider(type="openai", base_url="http://model:1/", api_key="sk-1")
    launch = ADAPTER.prepare(_spec(provider=provider, model="gpt-5.5"), FOUND)
    settings = json.loads(launch.files[".qwen/settings.json"])
    assert launch.argv == ("/bin/qwen", "--acp")
    assert launch.env["OPENAI_BASE_URL"] == "http://model:1/v1"
    assert launch.env["OPENAI_MODEL"] == settings["model"]["name"] == "gpt-5.5"
    assert settings["security"]["auth"] == {"selectedType": "openai"}


def test_a_provider_it_cannot_use_is_refused_by_name() -> None:
    with pytest.raises(Unprocessable, match="has no provider type 'gemini'"):
        ADAPTER.prepare(_spec(provider=Provider(type="gemini", base_url="http://m")), FOUND)
