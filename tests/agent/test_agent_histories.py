"""What goes back to a model that looks closely: signed thoughts, calls with their results, and prefixes it knows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Failed, Used
from tests.agent.process import APIS, PATHS, SIGNED, agent, asked, end, notices, of, results, signed, text

_ELSEWHERE = pytest.mark.lane("agents")
ALL = pytest.mark.parametrize(
    "api", [api if api == "messages" else pytest.param(api, marks=_ELSEWHERE) for api in APIS]
)
"""The wire form of one provider in every run; those of the others in a lane."""
LONG = "".join(f"line {number} of a file that is read\n" for number in range(40))


@pytest.fixture
def strict() -> Iterator[ScriptedModel]:
    """A model that signs, refuses what real ones refuse, and counts what it knew."""
    with ScriptedModel(is_strict=True, counts_cache=True) as running:
        yield running


def objections(model: ScriptedModel) -> list[str]:
    """What it refused."""
    return [event["why"] for event in model.events if event["event"] == "objection"]


@ALL
def test_a_strict_model_takes_the_history_back_turn_after_turn(tmp_path: Path, strict: ScriptedModel, api: str) -> None:
    with agent(tmp_path, strict, api) as running:
        running.turn(
            "think Hm. ;; say First. ;; bash echo one ;; bash echo two", "think So. ;; bash false", "say Done."
        )
        running.turn("bash echo hi ;; tool nonsense {}", "say Again.")
        running.prompt("say I begin. ;; bash sleep 300", "say Never.")
        running.until(Used)
        running.interrupt()
        running.rest()
        after = running.turn("think Once more. ;; bash echo on", "say Still here.")
    assert (objections(strict), text(after)[-11:]) == ([], "Still here.")


@pytest.mark.parametrize("mark", [None, "b3RoZXI="])
@pytest.mark.parametrize(
    "api", ["messages", pytest.param("responses", marks=_ELSEWHERE), pytest.param("gemini", marks=_ELSEWHERE)]
)
def test_a_strict_model_takes_no_mark_that_is_missing_or_changed(
    tmp_path: Path, strict: ScriptedModel, api: str, mark: str | None
) -> None:
    """So what the agent sends back is what the model gave it, byte for byte."""
    with agent(tmp_path, strict, api) as running:
        running.turn("think Hm. ;; bash echo one", "say Done.")
    last = strict.requests[-1]
    for block in signed(api, last["body"]):
        block[SIGNED[api]] = mark
    keys = {"authorization": "Bearer sk-test", "x-api-key": "sk-test", "x-goog-api-key": "sk-test"}
    assert httpx.post(f"{strict.url}{last['path']}", json=last["body"], headers=keys).status_code == 400
    assert len(objections(strict)) == 1


@ALL
def test_an_answer_that_comes_late_and_slowly_is_waited_for(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn("wait 0.5 ;; slow 3 0.1 ;; bash echo one", "say Whole.")
    assert (results(frames), text(frames)[-6:], notices(frames)) == ([("one", False)], "Whole.", {})


@ALL
def test_another_model_goes_on_with_what_the_first_one_has_signed(
    tmp_path: Path, strict: ScriptedModel, api: str
) -> None:
    with agent(tmp_path, strict, api, model="first") as running:
        running.turn("think Hm. ;; bash echo one", "say Done.")
        conversation = running.ready.session
    with agent(tmp_path, strict, api, model="second", resume=conversation) as running:
        assert text(running.turn("bash echo two", "say Went on.")) == "Went on."
    for other in set(APIS) - {api}:
        with agent(tmp_path, strict, other, model="second", resume=conversation) as running:
            assert text(running.turn("bash echo two", "say Went on.")) == "Went on."
    assert objections(strict) == []


@ALL
def test_from_the_third_call_on_nine_tenths_of_what_is_sent_was_sent_before(
    tmp_path: Path, strict: ScriptedModel, api: str
) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text(LONG)
    with agent(tmp_path, strict, api) as running:
        frames = running.turn(*[f'tool read {{"path": "a.txt", "limit": {n}}}' for n in range(10, 16)], "say Done.")
        frames += running.turn("bash echo hi", "say Again.")
    counted = _calls(of(frames, Used))
    sent, cached = (sum(each) for each in zip(*counted[2:], strict=True))
    assert cached / sent >= 0.9, counted


def _calls(used: list[Used]) -> list[tuple[int, int]]:
    """Input and cached tokens of each call; the counters begin anew with each turn."""
    found, before = [], (0, 0)
    for each in used:
        now = (each.input, each.cached)
        before = before if now[0] >= before[0] else (0, 0)
        found.append((now[0] - before[0], now[1] - before[1]))
        before = now
    return found


@ALL
@pytest.mark.parametrize("fault", ["quiet 1", "fail-in-stream 1", "error 503 1 after=0"])
def test_a_stream_that_ends_or_fails_in_its_middle_is_asked_for_again(
    tmp_path: Path, model: ScriptedModel, api: str, fault: str
) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn(f"{fault} ;; say Whole.")
    assert (text(frames)[-6:], end(frames)) == ("Whole.", ("completed", "end_turn"))
    assert set(notices(frames)) == {"retry"}


@ALL
def test_the_wait_that_a_provider_asks_for_is_kept(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn("error 429 1 after=1 ;; say Whole.")
    assert "the next in 1 s" in notices(frames)["retry"]
    first, second = (request["t"] for request in model.requests)
    assert second - first >= 1


@pytest.mark.parametrize(
    "api", [pytest.param("chat", marks=_ELSEWHERE), "messages", pytest.param("responses", marks=_ELSEWHERE)]
)
def test_a_call_whose_json_was_cut_is_answered_and_not_guessed(tmp_path: Path, strict: ScriptedModel, api: str) -> None:
    with agent(tmp_path, strict, api) as running:
        frames = running.turn("bash echo hi ;; badjson ;; length", "say I see.")
    [(answer, failed)] = results(frames)
    assert failed
    assert "do it in smaller pieces" in answer
    assert (text(frames), objections(strict)) == ("I see.", [])


def test_a_model_address_is_found_by_the_variables_of_each_provider(tmp_path: Path, strict: ScriptedModel) -> None:
    for key, address, name in (
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "anthropic/m"),
        ("OPENAI_API_KEY", "OPENAI_BASE_URL", "openai/m"),
        ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "gemini/m"),
        ("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "openrouter/m/n"),
        ("OPENAI_COMPATIBLE_API_KEY", "OPENAI_COMPATIBLE_BASE_URL", "compatible/m"),
    ):
        path = PATHS["messages" if "ANTHROPIC" in key else "gemini" if "GEMINI" in key else "chat"]
        environ: dict[str, Any] = {key: "sk-test-test", address: f"{strict.url}{path}"}
        with agent(tmp_path, strict, api=None, base_url=None, model=name, environ=environ) as running:
            assert text(running.turn("say Found.")) == "Found."
    assert {request["path"] for request in strict.requests} == {
        "/v1/messages",
        "/v1/responses",
        "/v1/chat/completions",
        "/v1beta/models/m:streamGenerateContent",
    }


@ALL
def test_no_key_is_in_what_people_read(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    with agent(tmp_path, model, api) as running:
        frames = running.turn("error 400")
    [failed] = of(frames, Failed)
    assert (failed.status, "sk-test" in failed.message) == (400, False)
    assert len(asked(model)) == 1
