"""The journal: what was said is there for the next process, however the last one ended."""

import json
from pathlib import Path

import pytest

from ostler.agent.entries import Assistant, Block, Call, Exchange, Stop, Text, User, conversation
from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Grown, ToolBegun
from tests.agent.process import agent, asked, end, notices, text
from tests.support.patience import wait_until

BOTH = pytest.mark.parametrize("api", ["chat", "messages"])


def _journal(folder: Path) -> list[Path]:
    return sorted((folder / "home" / ".ostler-agent").glob("*/turns/*.jsonl"))


@BOTH
def test_a_new_process_goes_on_with_everything_that_was_said(tmp_path: Path, model: ScriptedModel, api: str) -> None:
    with agent(tmp_path, model, api) as running:
        running.turn("think Hm. ;; bash echo hi", "say one")
        running.turn("say two")
        session = running.ready.session
    with agent(tmp_path, model, api, resume=session) as running:
        assert (running.ready.session, running.ready.resumed) == (session, True)
        frames = running.turn("recall")
    assert "3 scripted user turns" in text(frames)
    before, after = asked(model)[-2:]
    assert json.dumps(after["messages"])[: len(json.dumps(before["messages"][:-1])) - 1] in json.dumps(
        after["messages"]
    )
    assert [path.name for path in _journal(tmp_path)] == ["0001.jsonl", "0002.jsonl", "0003.jsonl", "0004.jsonl"]


@BOTH
def test_a_process_that_is_killed_within_a_turn_leaves_a_conversation_that_goes_on(
    tmp_path: Path, model: ScriptedModel, api: str
) -> None:
    with agent(tmp_path, model, api) as running:
        running.turn("say one")
        running.prompt("say Working. ;; bash touch began; sleep 300", "say Never.")
        wait_until((running.workspace / "began").exists, "the command runs")
        running.until(ToolBegun)
        running.process.kill()
        session = running.ready.session
    with _journal(tmp_path)[-1].open("ab") as torn:
        torn.write(b'{"t":"result","id":"half')
    with agent(tmp_path, model, api, resume=session) as running:
        frames = running.turn("recall")
    assert "3 scripted user turns" in text(frames)
    assert "interrupted before it was done" in json.dumps(asked(model)[-1])
    assert end(frames) == ("completed", "end_turn")


def test_a_process_that_is_killed_while_the_model_speaks_keeps_the_prompt(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.prompt("slow 200 0.1")
        running.until(Grown)
        running.process.kill()
        session = running.ready.session
    with agent(tmp_path, model, resume=session) as running:
        assert "2 scripted user turns" in text(running.turn("recall"))


@pytest.mark.parametrize("session", ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "../../elsewhere"])
def test_a_conversation_that_is_not_there_is_begun_anew(tmp_path: Path, model: ScriptedModel, session: str) -> None:
    with agent(tmp_path, model, resume=session) as running:
        assert running.ready.resumed is False
        assert running.ready.session != session


def test_a_damaged_journal_is_told_and_not_guessed_at(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.turn("say one")
        session = running.ready.session
    _journal(tmp_path)[0].write_bytes(b'{"t":"nonsense"}\n')
    with agent(tmp_path, model, resume=session) as running:
        frames = running.turn("say two")
        assert running.ready.resumed is False
    assert "line 1 of 0001.jsonl" in notices([*running.frames, *frames])["memory"]


def test_of_a_message_that_was_cut_only_its_words_go_on() -> None:
    call = Call(id="c", name="bash", input='{"comm', native_id="n")
    user = User(id="1", parent=None, at=0, text="Go.")
    cut = _said("2", Text(text="I will"), call, stop="interrupted")
    refused = _said("3", Text(text="No."), stop="refusal")
    only_words = _said("2", Text(text="I will"), stop="interrupted")
    assert conversation([user, cut, refused]) == [user, Exchange(only_words, ())]


def _said(entry_id: str, *blocks: Block, stop: Stop) -> Assistant:
    return Assistant(id=entry_id, parent=None, at=0, api="chat", model="m", blocks=blocks, stop=stop)
