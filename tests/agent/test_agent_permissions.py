"""What the agent asks people, and what it does without asking."""

from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import (
    Answered,
    ModeChanged,
    PermissionAsk,
    PlanAsk,
    QuestionAsk,
    Reply,
)
from tests.agent.process import agent, asked, end, of, results, text


def test_what_changes_something_is_asked_for_with_its_diff(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, permission_mode="default") as running:
        running.prompt("write a.txt hello\\n ;; bash touch b", "say Done.")
        first = running.until(PermissionAsk)
        assert (first.name, first.action, "+hello" in str(first.diff)) == ("write", "write a.txt", True)
        running.send(Reply(id=first.id, allow=True))
        second = running.until(PermissionAsk)
        assert (second.name, second.action) == ("bash", "touch b")
        running.send(Reply(id=second.id, allow=False, message="not on a Sunday"))
        frames = running.rest()
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["a.txt"]
    assert results(frames)[-1] == ("This was not allowed. The reason: not on a Sunday", True)
    assert "not on a Sunday" in str(asked(model)[-1])


def test_a_mode_lets_it_edit_without_asking_and_still_asks_for_commands(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, permission_mode="default", mode="accept-edits") as running:
        running.prompt("write a.txt hello ;; bash touch b", "say Done.")
        ask = running.until(PermissionAsk)
        assert ask.name == "bash"
        running.send(Reply(id=ask.id, allow=True))
        running.rest()
    assert sorted(path.name for path in (tmp_path / "workspace").iterdir()) == ["a.txt", "b"]


@pytest.mark.parametrize("fields", [{"permission_mode": "plan"}, {"permission_mode": "default", "mode": "plan"}])
def test_in_plan_mode_nothing_is_changed_until_the_plan_is_approved(
    tmp_path: Path, model: ScriptedModel, fields: dict[str, str]
) -> None:
    with agent(tmp_path, model, **fields) as running:
        running.prompt(
            "write a.txt x ;; bash touch b", "plan 1. Write.", "plan 2. Write.", "write a.txt y", "say Done."
        )
        first = running.until(PlanAsk)
        assert (first.plan, list(running.workspace.iterdir())) == ("1. Write.", [])
        running.send(Reply(id=first.id, allow=False, message="Think again."))
        second = running.until(PlanAsk)
        running.send(Reply(id=second.id, allow=True))
        ask = running.until(PermissionAsk)
        running.send(Reply(id=ask.id, allow=True))
        running.rest()
        frames = running.frames
    assert [output for output, failed in results(frames) if failed][-1] == "The plan is not approved. Think again."
    assert [frame.mode for frame in of(frames, ModeChanged)] == ["default"]
    assert (tmp_path / "workspace" / "a.txt").read_text() == "y"


def test_a_question_waits_for_its_answer(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        running.prompt("ask Which colour? | Blue | Red", "ask And which size? | S | L", "say Done.")
        first = running.until(QuestionAsk)
        assert (first.question, first.options) == ("Which colour?", ("Blue", "Red"))
        running.send(Answered(id=first.id, answers=("Blue",)))
        second = running.until(QuestionAsk)
        running.send(Answered(id=second.id, answers=None, message="whatever fits"))
        frames = running.rest()
    assert results(running.frames) == [
        ("The answer is: Blue", False),
        ("Nobody wanted to answer this: whatever fits", True),
    ]
    assert end(frames) == ("completed", "end_turn")


def test_an_interrupt_ends_what_waits_for_an_answer(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, permission_mode="default") as running:
        running.prompt("bash touch never", "say Done.")
        ask = running.until(PermissionAsk)
        running.interrupt()
        running.send(Reply(id=ask.id, allow=True))
        frames = running.rest()
        after = running.turn("say Still here.")
    assert end(frames) == ("interrupted", "interrupted")
    assert list((tmp_path / "workspace").iterdir()) == []
    assert text(after) == "Still here."
