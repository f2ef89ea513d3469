"""What tools do, and what they may not."""

import json
import os
import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ostler.agent.operations import Operations, ToolFailed
from ostler.agent.through import Through
from ostler.agent.tools.table import ALL
from ostler.agent.workspace import Workspace
from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import TOOLS, FileChange, ToolPrinted
from tests.agent.process import agent, of, results, text
from tests.support.patience import wait_until


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def call(name: str, **given: object) -> str:
    """A line of a script."""
    return f"tool {name} {json.dumps(given)}".replace("\\n", "\\u000a")  # the script has its own line ends


def test_the_tools_are_those_that_a_session_may_name() -> None:
    assert set(ALL) == set(TOOLS)


def test_the_schema_of_a_tool_is_an_object_that_says_what_each_field_is() -> None:
    schema = ALL["edit"].spec().schema
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == (
        "object",
        ["path", "old_string", "new_string"],
        False,
    )
    assert all(field["description"] for tool in ALL.values() for field in tool.spec().schema["properties"].values())


@pytest.mark.parametrize(
    "path", ["../outside.txt", "{outside}", "inside/../../outside.txt", "link.txt", "folder/outside.txt"]
)
def test_nothing_outside_of_the_workspace_is_read_or_changed(
    tmp_path: Path, workspace: Path, model: ScriptedModel, path: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\n")
    (workspace / "link.txt").symlink_to(outside)
    (workspace / "folder").symlink_to(tmp_path)
    given = path.replace("{outside}", str(outside))
    with agent(tmp_path, model) as running:
        frames = running.turn(
            call("read", path=given)
            + f" ;; {call('write', path=given, content='changed')}"
            + f" ;; {call('edit', path=given, old_string='secret', new_string='changed')}"
            + f" ;; {call('grep', pattern='secret', path=given)}",
            "say Done.",
        )
    answers = results(frames)
    assert [failed for _, failed in answers] == [True] * 4
    assert all("outside of the workspace" in output for output, _ in answers)
    assert outside.read_text() == "secret\n"


def test_a_file_is_written_into_folders_that_are_not_there_yet(
    tmp_path: Path, workspace: Path, model: ScriptedModel
) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn(call("write", path="fresh/deep/a.txt", content="x"), "say Done.")
    assert results(frames) == [("Created fresh/deep/a.txt (1 lines).", False)]
    assert (workspace / "fresh" / "deep" / "a.txt").read_text() == "x"


def test_links_inside_of_the_workspace_are_followed(tmp_path: Path, workspace: Path, model: ScriptedModel) -> None:
    (workspace / "real").mkdir()
    (workspace / "real" / "a.txt").write_text("one\n")
    (workspace / "real" / "a.txt").chmod(0o750)
    (workspace / "link").symlink_to("real")
    (workspace / "b.txt").symlink_to("real/a.txt")
    with agent(tmp_path, model) as running:
        edit = call("edit", path="b.txt", old_string="one", new_string="two")
        frames = running.turn(f"{edit} ;; {call('write', path='link/new', content='x')}", "say Done.")
    assert [failed for _, failed in results(frames)] == [False, False]
    assert ((workspace / "real" / "a.txt").read_text(), (workspace / "real" / "new").read_text()) == ("two\n", "x")
    assert (workspace / "b.txt").is_symlink()
    assert (workspace / "real" / "a.txt").stat().st_mode & 0o777 == 0o750


def test_a_long_file_is_read_in_pieces(tmp_path: Path, workspace: Path, model: ScriptedModel) -> None:
    (workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 3001)))
    with agent(tmp_path, model) as running:
        frames = running.turn(
            call("read", path="long.txt"), call("read", path="long.txt", offset=2999, limit=5), "say Done."
        )
    (first, _), (second, _) = results(frames)
    assert first.endswith("line 2000\n[lines 1 to 2000 of 3000; go on with offset 2001]")
    assert second == "line 2999\nline 3000\n[lines 2999 to 3000 of 3000]"


def test_what_cannot_be_read_says_why(tmp_path: Path, workspace: Path, model: ScriptedModel) -> None:
    (workspace / "binary").write_bytes(b"\x00\x01")
    os.mkfifo(workspace / "pipe")
    names = ["missing", ".", "binary", "pipe"]
    with agent(tmp_path, model) as running:
        frames = running.turn(" ;; ".join(call("read", path=name) for name in names), "say Done.")
    words = ["is not there", "is a folder", "is a binary file", "is no ordinary file"]
    assert [part in output for part, (output, _) in zip(words, results(frames), strict=True)] == [True] * 4


def test_an_edit_changes_one_place_and_says_what_changed(tmp_path: Path, workspace: Path, model: ScriptedModel) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    with agent(tmp_path, model) as running:
        frames = running.turn(call("edit", path="a.txt", old_string="one\ntwo", new_string="1\n2"), "say Done.")
    assert (workspace / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"
    [change] = of(frames, FileChange)
    assert (change.path, change.action, change.operation) == ("a.txt", "modified", "edit")
    assert "-one\n" in str(change.diff)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"old_string": "two", "new_string": "2"}, "is 2 times in 'a.txt' (lines 2, 4)"),
        ({"old_string": "twelve tw", "new_string": "2"}, "is not in 'a.txt'"),
        ({"old_string": "three tw0", "new_string": "2"}, "4: three two"),
        ({"old_string": "one", "new_string": "one"}, "nothing would change"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(
    tmp_path: Path, workspace: Path, model: ScriptedModel, given: dict[str, str], words: str
) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nx\nthree two\n")
    with agent(tmp_path, model) as running:
        frames = running.turn(call("edit", path="a.txt", **given), "say Done.")
    [(output, failed)] = results(frames)
    assert (words in output, failed) == (True, True), output
    assert (workspace / "a.txt").read_text() == "one\ntwo\nx\nthree two\n"


def test_output_of_a_command_comes_while_it_runs_and_its_end_is_told(
    tmp_path: Path, workspace: Path, model: ScriptedModel
) -> None:
    with agent(tmp_path, model) as running:
        running.prompt(
            "bash echo out; echo err >&2; touch told; while [ ! -e go ]; do sleep 0.05; done; exit 3", "say Done."
        )
        running.until(ToolPrinted, lambda frame: frame.text == "out\n")
        wait_until((workspace / "told").exists, "the command runs")
        (workspace / "go").touch()
        frames = running.rest()
    assert [(frame.stream, frame.text) for frame in of(running.frames, ToolPrinted)] == [
        ("stdout", "out\n"),
        ("stderr", "err\n"),
    ]
    [(output, failed)] = results(frames)
    assert (sorted(output.splitlines()), failed) == (["[exit code 3]", "err", "out"], True)


def test_a_command_that_takes_too_long_is_ended_with_its_tree(
    tmp_path: Path, workspace: Path, model: ScriptedModel
) -> None:
    with agent(tmp_path, model) as running:
        command = "echo began; setsid sleep 300 & echo $! > pid; sleep 300"
        frames = running.turn(call("bash", command=command, timeout=1), "say Done.")
        pid = (workspace / "pid").read_text().strip()
        assert not Path("/proc", pid).exists()
    assert results(frames) == [("began\n\n[ended after 1 seconds, with all that it had started]", True)]


def test_what_a_command_leaves_running_keeps_nobody_waiting(
    tmp_path: Path, workspace: Path, model: ScriptedModel
) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn("bash sleep 300 & echo $! > pid; echo started", "say Done.")
        assert Path("/proc", (workspace / "pid").read_text().strip()).exists()
    assert results(frames) == [("started", False)]


def test_of_a_long_output_the_model_gets_both_ends(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model) as running:
        frames = running.turn("bash seq 1 100000", "say Done.")
    [(output, _)] = results(frames)
    assert output.startswith("1\n2\n")
    assert output.endswith("99999\n100000")
    assert "characters left out" in output
    assert len(output) < 51_000
    assert "".join(frame.text for frame in of(frames, ToolPrinted)).count("\n") == 100_000


def test_commands_do_not_see_the_keys_of_the_agent(tmp_path: Path, model: ScriptedModel) -> None:
    with agent(tmp_path, model, environ={"OPENAI_API_KEY": "sk-other", "MINE": "mine"}) as running:
        frames = running.turn("bash env", "say Done.")
    [(output, _)] = results(frames)
    assert "MINE=mine" in output
    assert "sk-" not in output


def test_files_are_found_by_their_names_and_by_what_is_in_them(
    tmp_path: Path, workspace: Path, model: ScriptedModel
) -> None:
    for name in ("src/deep/a.py", "src/b.py", "src/c.txt", ".git/d.py", "e.py"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(f"x\nneedle in {name}\n")
    lines = [
        call("grep", pattern="need.e", glob="*.py"),
        call("grep", pattern="needle", path="src", type="py"),
        call("grep", pattern="nowhere"),
        call("grep", pattern="(unclosed"),
        call("grep", pattern="x", type="cobol"),
        call("find", pattern="*.py"),
        call("find", pattern="src/**/*.{py,txt}"),
        call("find", pattern="*.py", path="src/deep"),
    ]
    with agent(tmp_path, model) as running:
        frames = running.turn(" ;; ".join(lines), "say Done.")
    found = [output.splitlines() for output, _ in results(frames)]
    assert found[0] == [f"{name}:2:needle in {name}" for name in ("e.py", "src/b.py", "src/deep/a.py")]
    assert found[1] == [f"{name}:2:needle in {name}" for name in ("src/b.py", "src/deep/a.py")]
    assert found[2] == ["Nothing was found."]
    assert found[3][0].startswith("The search failed")
    assert found[4][0].startswith("There is no type 'cobol'. Possible: ")
    assert sorted(found[5]) == ["e.py", "src/b.py", "src/deep/a.py"]
    assert sorted(found[6]) == ["src/b.py", "src/c.txt", "src/deep/a.py"]
    assert found[7] == ["src/deep/a.py"]


def test_no_pattern_for_names_takes_long(tmp_path: Path, workspace: Path, model: ScriptedModel) -> None:
    deep = "a/" * 40
    (workspace / deep).mkdir(parents=True)
    (workspace / deep / "a.py").touch()
    (workspace / "literal{.py").touch()
    patterns = [
        "**/a/" * 15 + "b",
        "**/" * 100 + "a.py",
        "a/**/*a*a*a*a*a*a*b",
        "**/{a,b}.{py,txt}",
        "*{.p[xy]",
        "{a,b}" * 7,
    ]
    with agent(tmp_path, model) as running:
        frames = running.turn(" ;; ".join(call("find", pattern=pattern) for pattern in patterns), "say Done.")
    nothing, path = "No file has such a name.", f"{deep}a.py"
    answers = [answer for answer, _ in results(frames)]
    assert answers[:5] == [nothing, path, nothing, path, "literal{.py"]
    assert answers[5].endswith("means more than 100 names. Look for fewer at a time.")


@pytest.mark.parametrize("kind", [Workspace, partial(Through, ("env",))])
def test_what_has_no_room_leaves_nothing_behind(workspace: Path, kind: Callable[[str], Operations]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    operations = kind(str(workspace))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        with pytest.raises(ToolFailed):
            operations.write("new.txt", b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(workspace.iterdir()) == []


def test_a_file_that_people_attach_may_be_read_wherever_it_is(tmp_path: Path, model: ScriptedModel) -> None:
    attached = tmp_path / "attached.txt"
    attached.write_text("from outside\n")
    with agent(tmp_path, model) as running:
        frames = running.turn(call("read", path=str(attached)), "say Done.", files=(str(attached),))
    assert results(frames) == [("from outside", False)]
    assert text(frames) == "Done."
