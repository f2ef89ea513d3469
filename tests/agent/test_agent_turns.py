"""A turn: the model speaks, tools run, people steer and interrupt, and limits hold."""

import json
import signal
from itertools import pairwise
from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Failed, Grown, Image, MessageEnded, Planned, ToolBegun, ToolEnded, Used
from tests.agent.process import APIS, agent, asked, end, notices, of, results, text
from tests.support.patience import stretched, wait_until

_ELSEWHERE = pytest.mark.lane("agents")
ALL = pytest.mark.parametrize(
    "api", [api if api == "messages" else pytest.param(api, marks=_ELSEWHERE) for api in APIS]
)
"""The wire form of one provider in every run; those of the others in a lane."""


@pytest.mark.parametrize("api", APIS)
def test_the_model_thinks_speaks_and_hears_what_its_tool_answered(
    tmp_path: Path, model: ScriptedModel, api: str
) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn("think Hm. ;; say Running it. ;; bash echo hi", "say Done.")
    assert (text(frames, "thinking").removeprefix("**Thinking**\n\n"), text(frames), end(frames)) == (
        "Hm.",
        "Running it.Done.",
        ("completed", "end_turn"),
    )
    assert results(frames) == [("hi", False)]
    assert [json.loads(call.input)["command"] for call in of(frames, ToolBegun)] == ["echo hi"]
    assert len(asked(model)) == 2
    assert of(frames, Used)[-1].output > 0


def test_what_was_thought_goes_back_to_anthropic_unchanged(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, "messages") as running:
        running.turn("think Hm. ;; bash echo hi", "say Done.")
    [_, said, _] = asked(model)[1]["messages"]
    assert said["content"][0] == {"type": "thinking", "thinking": "Hm.", "signature": "c2NyaXB0ZWQ="}


@ALL
def test_every_call_has_its_result_right_behind_it(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("first\n")
    with agent(tmp_path, model, api) as running:
        frames = running.turn("read a.txt ;; tool nonsense {} ;; read nowhere.txt", "say Done.")
    assert [failed for _, failed in results(frames)] == [False, True, True]
    body = json.dumps(asked(model)[1])
    assert body.index("first") < body.index("There is no tool `nonsense`") < body.index("'nowhere.txt' is not there")


@ALL
def test_images_of_people_and_of_tools_reach_the_model(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    pixel = b"\x89PNG\r\n\x1a\n" + bytes(20)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.png").write_bytes(pixel)
    with agent(tmp_path, model, api) as running:
        frames = running.turn("read a.png", "recall", images=(Image(mime="image/png", data=pixel),))
    assert "2 images" in text(frames)


def test_a_message_while_tools_run_skips_the_others_and_goes_into_the_next_call(
    tmp_path: Path, model: ScriptedModel
) -> None:
    with agent(tmp_path, model) as running:
        running.prompt("bash touch began; sleep 1 ;; write skipped.txt x ;; bash touch skipped", "say Never.")
        wait_until((running.workspace / "began").exists, "the command runs")
        running.steer("say Heard.")
        frames = running.rest()
    first, second, third = results(frames)
    assert (first[1], second[1], third[1]) == (False, True, True)
    assert "a message from the user came first" in second[0]
    assert text(frames) == "Heard."
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["began"]
    assert [message["role"] for message in asked(model)[1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "user",
    ]


def test_a_turn_ends_after_as_many_model_calls_as_it_may_make_and_says_so(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, max_turns=1) as running:
        frames = running.turn("bash touch never", "say Done.")
        again = running.turn("say Once more.")
    assert end(frames) == ("completed", "max_turn_requests")
    assert "Stopped after 1 model calls" in notices(frames)["max_turn_requests"]
    assert len(asked(model)) == 2
    assert not (tmp_path / "workspace" / "never").exists()
    assert text(again) == "Once more."


@ALL
def test_limits_and_temperature_reach_the_model(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    with agent(tmp_path, model, api, max_tokens=1234, temperature=0.25, tools=("read", "run-sandbox")) as running:
        frames = running.turn("tools")
    body = asked(model)[0]
    body |= body.get("generationConfig", {})
    names = {"responses": "max_output_tokens", "gemini": "maxOutputTokens"}
    assert (body[names.get(api, "max_tokens")], body["temperature"]) == (1234, 0.25)
    assert text(frames) == "Tools: read, run-sandbox"


@pytest.mark.parametrize(
    ("api", "name", "effort", "sent"),
    [
        ("chat", "scripted-large", "medium", {"reasoning_effort": "medium"}),
        ("chat", "gpt-5.5", "max", {"reasoning_effort": "xhigh"}),
        ("messages", "claude-sonnet-4-6", "medium", {"output_config": {"effort": "medium"}}),
        ("messages", "claude-sonnet-4-5", "low", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("responses", "gpt-5.5", "max", {"reasoning": {"effort": "xhigh", "summary": "auto"}}),
        (
            "gemini",
            "gemini-3-pro",
            "low",
            {"generationConfig": {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"}}},
        ),
        (
            "gemini",
            "gemini-2.5-flash",
            "off",
            {"generationConfig": {"thinkingConfig": {"includeThoughts": False, "thinkingBudget": 0}}},
        ),
    ],
)
def test_an_effort_is_told_in_the_words_of_the_model(
    tmp_path: Path, model: ScriptedModel, api: str, name: str, effort: str, sent: dict[str, object]
) -> None:
    with agent(tmp_path, model, api, model=name, effort=effort) as running:
        running.turn("say Done.")
    assert sent.items() <= asked(model)[0].items()


def test_what_a_model_cannot_take_is_left_out_with_a_notice(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, model="deepseek/deepseek-chat-v3-0324", effort="medium") as running:
        frames = running.turn("say Done.")
        later = running.turn("say Again.")
    assert "'medium' has no effect" in notices(frames)["setting_dropped"]
    assert "reasoning_effort" not in asked(model)[0]
    assert notices(later) == {}


def test_an_interrupt_keeps_what_was_said_and_forgets_what_was_not_read(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.prompt("slow 200 0.05")
        running.until(Grown)
        running.steer("say Forgotten.")
        running.interrupt()
        frames = running.rest()
        after = running.turn("say Still here.")
    assert end(frames) == ("interrupted", "interrupted")
    assert [ended.broken for ended in of(frames, MessageEnded)] == [True]
    assert "Forgotten" in notices(frames)["unheard"]
    assert text(after) == "Still here."
    said = json.dumps(asked(model)[-1])
    assert "tick1" in said
    assert "Forgotten" not in said


def test_an_interrupt_ends_a_command_with_all_that_it_started(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.prompt("bash (setsid sleep 300 & echo $! > pid); echo $$ > pids; sleep 300", "say Done.")
        wait_until((running.workspace / "pids").exists, "the command runs")
        running.interrupt()
        frames = running.rest()
        pids = [(running.workspace / name).read_text().strip() for name in ("pid", "pids")]
        after = running.turn("say Still here.")
    assert end(frames) == ("interrupted", "interrupted")
    assert [ended.output for ended in of(frames, ToolEnded)] == ["Interrupted by the user before it was done."]
    assert [Path("/proc", pid).exists() for pid in pids] == [False, False]
    assert text(after) == "Still here."


@ALL
def test_a_broken_answer_is_withdrawn_and_asked_for_again(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn("say One two three four five six seven. ;; cut 1 ;; say Whole.")
    assert [ended.broken for ended in of(frames, MessageEnded)] == [True, False]
    assert "broke off" in notices(frames)["retry"]
    assert end(frames) == ("completed", "end_turn")


@ALL
@pytest.mark.parametrize("fault", ["malformed 1", "error 529 1", "error 429 1"])
def test_what_passes_is_tried_again(tmp_path: Path, model: ScriptedModel, api: str, fault: str) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn(f"{fault} ;; say Whole.")
    assert (text(frames)[-6:], end(frames)) == ("Whole.", ("completed", "end_turn"))
    assert set(notices(frames)) == {"retry"}


@ALL
def test_a_wrong_key_fails_the_turn_at_once_with_the_words_of_the_provider(
    tmp_path: Path, model: ScriptedModel, api: str
) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn("error 401")
    [failed] = of(frames, Failed)
    assert (failed.code, failed.status, failed.message) == ("auth", 401, "401 Scripted error 401")
    assert end(frames) == ("failed", "auth")
    assert len(asked(model)) == 1


@ALL
def test_what_people_can_do_about_a_failure_is_said(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    with agent(tmp_path, model, api) as running:
        [unknown] = of(running.turn("error 404"), Failed)
    assert unknown.code == "no_model"
    assert "Is 'scripted-large' a model of http://127.0.0.1:" in unknown.message
    with agent(tmp_path, model, api, base_url="http://127.0.0.1:1") as running:
        [away] = of(running.turn("say hi"), Failed)
    assert away.message.startswith("The model at http://127.0.0.1:1 cannot be reached: ")
    assert away.message.endswith(". Check the network and this address.")


def test_a_limit_that_ends_much_later_is_told_instead_of_waited_for(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, "messages") as running:
        frames = running.turn("limit 5000")
    [failed] = of(frames, Failed)
    assert failed.code == "rate_limit"
    assert failed.resets_at is not None


@ALL
@pytest.mark.parametrize(("action", "reason"), [("refuse", "refusal"), ("length", "max_tokens")])
def test_an_answer_that_is_none_is_told_to_people(
    tmp_path: Path, model: ScriptedModel, api: str, action: str, reason: str
) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn(f"say I began. ;; {action}")
    assert end(frames) == ("completed", reason)
    assert notices(frames)[reason]


def test_without_any_key_the_turn_says_which_ones_there_are(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, api=None, base_url=None, model=None) as running:
        frames = running.turn("say Done.")
    [failed] = of(frames, Failed)
    assert failed.code == "auth"
    assert "OPENROUTER_API_KEY" in failed.message


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("openrouter/deepseek/deepseek-v3.2", "deepseek/deepseek-v3.2"),
        ("deepseek/deepseek-v3.2", "deepseek/deepseek-v3.2"),
        ("anthropic/claude-sonnet-4-6", "anthropic/claude-sonnet-4-6"),
    ],
)
def test_a_key_of_openrouter_is_enough_for_models_of_all_makers(
    tmp_path: Path, model: ScriptedModel, name: str, sent: str
) -> None:
    environ = {"OPENROUTER_API_KEY": "sk-or-test", "OPENROUTER_BASE_URL": f"{model.url}/v1"}
    with agent(tmp_path, model, api=None, base_url=None, model=name, effort="high", environ=environ) as running:
        assert text(running.turn("say Done.")) == "Done."
    body = asked(model)[0]
    assert (body["model"], body["reasoning"]) == (sent, {"effort": "high"})


def test_of_several_keys_the_one_of_the_models_maker_is_used(tmp_path: Path, model: ScriptedModel) -> None:
    keys = {f"{name}_API_KEY": "sk-test" for name in ("ANTHROPIC", "OPENAI", "OPENROUTER")}
    urls = {
        "ANTHROPIC_BASE_URL": model.url,
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENROUTER_BASE_URL": f"{model.url}/r",
    }
    for name in ("gpt-5.5", "claude-sonnet-4-6", "z-ai/glm-4.7", "openai/gpt-5.5"):
        with agent(tmp_path, model, api=None, base_url=None, model=name, environ={**keys, **urls}) as running:
            running.turn("say Done.")
    assert [request["path"] for request in model.requests] == [
        "/v1/responses",
        "/v1/messages",
        "/r/chat/completions",
        "/v1/responses",
    ]


def test_a_model_that_calls_nonsense_again_and_again_is_stopped(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn(*['tool read {"path": 3}'] * 6)
        repeated = running.turn(*["bash true"] * 6)
    assert end(frames) == ("completed", "bad_calls")
    assert "Expected `str`, got `int` - at `$.path`" in results(frames)[0][0]
    assert end(repeated) == ("completed", "loop")


def test_the_rules_of_the_workspace_and_of_the_session_reach_the_model(tmp_path: Path, model: ScriptedModel) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "AGENTS.md").write_text("Always knit.\n")
    with agent(tmp_path, model, instructions="Speak of herons.") as running:
        running.turn("say Done.")
    system = asked(model)[0]["messages"][0]["content"]
    assert "Always knit." in system
    assert "Speak of herons." in system


def test_skills_are_named_to_the_model_and_read_when_it_wants(tmp_path: Path, model: ScriptedModel) -> None:
    for place, name, words in (
        ("workspace/.agents", "knit", "How to knit."),
        ("home/.agents", "knit", "Of another place."),
        ("home/.agents", "weave", "How to weave."),
    ):
        folder = tmp_path / place / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: >\n  {words}\n---\nBody of {name}.\n")
    woven = tmp_path / "home/.agents/skills/weave/SKILL.md"
    with agent(tmp_path, model) as running:
        frames = running.turn(f"read .agents/skills/knit/SKILL.md ;; read {woven}", "say Done.")
    system = asked(model)[0]["messages"][0]["content"]
    assert "- knit: How to knit. (.agents/skills/knit/SKILL.md)\n- weave: How to weave." in system
    assert ["Body of knit." in results(frames)[0][0], "Body of weave." in results(frames)[1][0]] == [True, True]


def test_a_skill_that_becomes_a_link_leads_nowhere_outside(tmp_path: Path, model: ScriptedModel) -> None:
    skill = tmp_path / "workspace/.agents/skills/knit/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: knit\ndescription: How to knit.\n---\nBody of knit.\n")
    (tmp_path / "theirs").write_text("not for the model")
    with agent(tmp_path, model) as running:
        running.turn("say Ready.")
        skill.unlink()
        skill.symlink_to(tmp_path / "theirs")
        [(answer, failed)] = results(running.turn("read .agents/skills/knit/SKILL.md", "say Done."))
    assert (failed, "not for the model" in answer) == (True, False)


def test_a_list_of_what_is_to_be_done_is_shown(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn("todo Look | Mend | Check", "say Done.")
    [planned] = of(frames, Planned)
    assert [(entry.content, entry.status) for entry in planned.entries] == [
        ("Look", "pending"),
        ("Mend", "pending"),
        ("Check", "pending"),
    ]


def test_the_requests_of_a_session_begin_with_the_same_bytes(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.turn("bash echo one", "say Done.")
        running.turn("say Again.")
    bodies = [json.dumps([body["tools"], body["messages"]]).removesuffix("]]") for body in asked(model)]
    assert all(later.startswith(earlier) for earlier, later in pairwise(bodies))


def test_the_agent_ends_with_its_input(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.turn("say Done.")
        running.prompt("bash sleep 300", "say Never.")
        running.until(ToolBegun)
        assert running.close_input() == 0


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_process_that_is_to_end_leaves_its_turn_to_the_next_one(
    tmp_path: Path, model: ScriptedModel, *, is_asked: bool
) -> None:
    with agent(tmp_path, model) as running:
        running.prompt("bash touch began; sleep 300", "say Went on.", id="prm_1")
        wait_until((running.workspace / "began").exists, "the command runs")
        conversation = running.ready.session
        if is_asked:
            running.process.send_signal(signal.SIGTERM)
        else:
            running.close_input()
        assert running.process.wait(stretched(60)) == 0
    with agent(tmp_path, model, resume=conversation) as running:
        frames = running.turn("bash touch began; sleep 300", "say Went on.", id="prm_1")
    [(output, failed)] = results(frames)
    assert ("cut off" in output, failed) == (True, True)
    assert (text(frames), end(frames)) == ("Went on.", ("completed", "end_turn"))
