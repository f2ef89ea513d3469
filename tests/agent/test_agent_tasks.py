"""Sub-agents: what they do lies below their call, only their last message comes back, and they outlive a kill."""

import json
from pathlib import Path

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import Done, Grown, MessageEnded, PermissionAsk, Reply, ToolBegun, ToolEnded, Used
from tests.agent.process import agent, asked, end, of, results, text
from tests.support.patience import wait_until


def task(*lines: str, may_change: bool = False) -> str:
    """An action of the script that hands some lines to a sub-agent."""
    prompt = "\n".join(f"SCRIPT: {line}" for line in lines)
    given = {"description": "a part", "prompt": prompt, "may_change": may_change}
    words = (
        json.dumps(given).replace("\\n", "\\u000a").replace(";", "\\u003b")
    )  # the script has its own meaning of both
    return f"tool task {words}"


def test_what_a_sub_agent_does_lies_below_its_call_and_only_its_last_words_come_back(
    tmp_path: Path, model: ScriptedModel
) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "a.txt").write_text("found me\n")
    with agent(tmp_path, model, instructions="Be kind.") as running:
        frames = running.turn(task("say I look. ;; read a.txt", "say It says: found me."), "say Done.")
    call = next(frame for frame in of(frames, ToolBegun) if frame.name == "task")
    below = [frame for frame in frames if getattr(frame, "parent", None) == call.id]
    assert [frame.name for frame in below if isinstance(frame, ToolBegun)] == ["read"]
    assert text([frame for frame in below if isinstance(frame, Grown)]) == "I look.It says: found me."
    assert [frame for frame in below if isinstance(frame, MessageEnded)]
    assert next(frame for frame in of(frames, ToolEnded) if frame.id == call.id).output == "It says: found me."
    assert (len(of(frames, Done)), end(frames)) == (1, ("completed", "end_turn"))
    _, second, *_, last = asked(model)
    offered = {tool["function"]["name"] for tool in second["tools"]}
    assert offered == {"read", "grep", "find", "run-sandbox"}
    assert "Be kind." in str(second)
    assert [message["role"] for message in last["messages"]] == ["system", "user", "assistant", "tool"]
    assert of(frames, Used)[-1].input > 2 * of(frames, Used)[0].input


def test_a_sub_agent_that_may_change_something_asks_as_the_agent_does(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, permission_mode="default") as running:
        running.prompt(task("write a.txt x", "write b.txt y", "say Did it.", may_change=True), "say Done.")
        for allow in (True, False):
            ask = running.until(PermissionAsk)
            running.send(Reply(id=ask.id, allow=allow))
        running.rest()
        found = results(running.frames)
    assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["a.txt"]
    assert ("Did it.", False) in found


def test_a_sub_agent_goes_on_after_its_process_was_killed(tmp_path: Path, model: ScriptedModel) -> None:
    script = (
        task("bash echo one >>marks", "bash echo two >>marks; sleep 300", "say Did it.", may_change=True),
        "say Done.",
    )
    with agent(tmp_path, model) as running:
        running.prompt(*script, id="prm_1")
        marks = running.workspace / "marks"
        wait_until(lambda: marks.exists() and "two" in marks.read_text(), "the second command runs")
        conversation = running.ready.session
    with agent(tmp_path, model, resume=conversation) as running:
        frames = running.turn(*script, id="prm_1")
    assert (marks.read_text(), text(frames)) == ("one\ntwo\n", "Did it.Done.")
    outputs = [frame.output for frame in of(frames, ToolEnded)]
    assert ["cut off" in output for output in outputs] == [False, True, False]
    assert outputs[-1] == "Did it."
