"""Gemini CLI: recordings of the real agent mean what a person expects, and its launch says all it needs."""

import json
from typing import Any

import pytest

from ostler.agents.adapter import Installation
from ostler.agents.gemini import ADAPTER
from ostler.base.errors import Unprocessable
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec
from tests.agents.acp_replay import SPEC, Replay, short
from tests.support.recorded import recordings

RECORDINGS = {recording.case: recording for recording in recordings("acp-gemini")}
FOUND = Installation(path="/bin/gemini", command=("/bin/gemini",))
RUN = "run_shell_command"


def _replayed(case: str, **fields: Any) -> Replay:
    return Replay(ADAPTER, RECORDINGS[case], **fields)


def _spec(**fields: Any) -> AgentSpec:
    return AgentSpec(**{**SPEC, "agent": "gemini", **fields})


@pytest.mark.parametrize("case", RECORDINGS)
def test_every_recorded_frame_is_understood(case: str) -> None:
    assert _replayed(case).counts.unparsed == 0


def test_text() -> None:
    assert short(_replayed("text").drafts)[:3] == [
        ("item.started", "message in_progress"),
        ("item.completed", "message completed Hello from the scripted model."),
        ("turn.ended", "completed end_turn"),
    ]


def test_a_call_that_is_only_mentioned_when_it_needs_permission_starts_there() -> None:
    command = '{"command":"touch made"}'
    assert short(_replayed("perm_approve").drafts)[:5] == [
        ("item.started", f"tool_call in_progress {RUN}({command})"),
        ("permission.requested", f"requested {RUN}: touch made"),
        ("item.completed", f"tool_call completed {RUN}({command})"),
        ("item.started", "tool_result in_progress"),
        ("item.completed", "tool_result completed"),
    ]


def test_a_rejected_call_that_the_agent_never_mentions_again_is_closed() -> None:
    assert short(_replayed("perm_deny").drafts)[-2:] == [
        ("item.completed", f'tool_call failed {RUN}({{"command":"touch made"}})'),
        ("turn.ended", "completed end_turn"),
    ]


def test_an_edit_shows_its_diff_before_and_after_it_is_allowed() -> None:
    drafts: list[Any] = _replayed("edit").drafts
    asked = next(draft.data for draft in drafts if draft.type == "permission.requested")
    changed = next(draft.data for draft in drafts if draft.type == "file.changed")
    assert asked.metadata["diff"] == changed.diff
    assert changed.diff.splitlines()[2:] == ["@@ -1,2 +1,2 @@", " one", "-two", "+three"]


def test_the_providers_own_words_reach_people() -> None:
    assert short(_replayed("error_401").drafts) == [
        ("error", "auth 401: Scripted error 401"),
        ("turn.ended", "failed error"),
    ]


def test_an_interrupted_command_ends_the_turn() -> None:
    assert short(_replayed("interrupt_tool").drafts)[-2:] == [
        ("item.completed", "tool_result completed Command cancelled by user."),
        ("turn.ended", "interrupted cancelled"),
    ]


def test_thoughts_are_not_text() -> None:
    items: list[Any] = [draft.data for draft in _replayed("thinking").drafts if draft.type == "item.completed"]
    assert [part.type for part in items[0].item.content] == ["reasoning", "text"]


def test_a_change_of_mode_that_comes_as_text_is_none() -> None:
    replay = _replayed("modes", permission_mode="plan")
    assert [draft.type for draft in replay.drafts if draft.type.startswith("item")] == []


def test_tokens_come_from_its_own_extension() -> None:
    used: Any = next(draft.data for draft in _replayed("text").drafts if draft.type == "usage.updated")
    assert (used.input_tokens, used.output_tokens) == (6629, 7)


def test_a_session_that_cannot_be_loaded_is_replaced_and_people_are_told() -> None:
    replay = _replayed("resume")
    assert [sent["method"] for sent in replay.sent[:3]] == ["initialize", "session/load", "session/new"]
    assert short(replay.drafts)[0][0] == "notice"


def test_a_provider_is_set_by_variables_and_a_file() -> None:
    provider = Provider(type="gemini", base_url="http://model:1", api_key="sk-1")
    launch = ADAPTER.prepare(_spec(provider=provider, model="gemini-2.5-pro"), FOUND)
    settings = json.loads(launch.files[".gemini/settings.json"])
    assert launch.argv == ("/bin/gemini", "--acp", "--skip-trust")
    assert launch.env["GOOGLE_GEMINI_BASE_URL"] == "http://model:1"
    assert launch.env["GEMINI_API_KEY"] == "sk-1"
    assert settings["model"] == {"name": "gemini-2.5-pro"}


def test_without_a_provider_no_credential_is_touched() -> None:
    launch = ADAPTER.prepare(_spec(), FOUND)
    assert set(launch.env) == {"GEMINI_CLI_NO_RELAUNCH"}


def test_an_old_chat_is_moved_out_of_the_way_before_it_is_loaded() -> None:
    launch = ADAPTER.prepare(_spec(resume="0123456789abcdef"), FOUND)
    assert launch.argv[:2] == ("/bin/sh", "-c")
    assert launch.argv[4:] == ("01234567", "/bin/gemini", "--acp", "--skip-trust")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"provider": Provider(type="openai", base_url="http://m")}, "provider type 'openai'. Possible: gemini."),
        ({"mode": "dance"}, "mode 'dance'. Possible: default, autoEdit, yolo, plan."),
        ({"variant": "high"}, "variant 'high'. It has none."),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unprocessable, match=reason):
        ADAPTER.prepare(_spec(**fields), FOUND)
