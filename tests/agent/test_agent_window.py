"""A conversation that fills the window of its model goes on with a summary."""

import json
from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Failed
from tests.agent.process import APIS, agent, asked, end, notices, of, text

ALL = pytest.mark.parametrize("api", APIS)
SMALL = {"OSTLER_AGENT_WINDOW": "12000"}


def _filled(folder: Path) -> None:
    (folder / "workspace").mkdir()
    (folder / "workspace" / "a.txt").write_text("a line of a long file\n" * 2000)


@ALL
def test_a_full_window_is_emptied_before_the_next_call(tmp_path: Path, api: str) -> None:
    _filled(tmp_path)
    with (
        ScriptedModel(is_strict=True, counts_cache=True) as model,
        agent(tmp_path, model, api, environ=SMALL) as running,
    ):
        first = running.turn("read a.txt", "say Read.")
        assert {"compaction", "compacted"} <= set(notices(first))
        frames = running.turn("bash echo hi", "say Went on.")
        conversation = running.ready.session
        assert (text(frames), end(frames)) == ("Went on.", ("completed", "end_turn"))
        last = json.dumps(asked(model)[-1])
        assert "Scripted summary of" in last
        assert "a line of a long file" not in last
    with (
        ScriptedModel(is_strict=True) as model,
        agent(tmp_path, model, api, environ=SMALL, resume=conversation) as running,
    ):
        assert text(running.turn("say Back.")) == "Back."
        assert "Scripted summary of" in json.dumps(asked(model)[-1])
    journal = b"".join(path.read_bytes() for path in sorted((tmp_path / "home").rglob("*.jsonl")))
    assert b"a line of a long file" in journal


@ALL
def test_a_model_that_says_that_it_is_too_much_is_asked_again_with_a_summary(
    tmp_path: Path, model: ScriptedModel, api: str
) -> None:
    with agent(tmp_path, model, api) as running:
        running.turn("say One.")
        frames = running.turn("overflow 1 ;; say Fits.")
    assert (text(frames), end(frames)) == ("Fits.", ("completed", "end_turn"))
    assert "compacted" in notices(frames)


def test_a_window_that_is_never_large_enough_fails_the_turn(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn("overflow")
    assert end(frames) == ("failed", "context_overflow")
    [failed] = of(frames, Failed)
    assert failed.message.endswith(". Begin a new session, or name a model with a larger window.")
