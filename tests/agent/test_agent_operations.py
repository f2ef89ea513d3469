"""Tools whose files and commands are elsewhere: behind a command."""

import shutil
from pathlib import Path

import pytest

from ostler.agent.tools.table import ALL
from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import FileChange, ToolPrinted
from tests.agent.process import agent, asked, of, results
from tests.agent.test_agent_tools import call
from tests.support.patience import wait_until

WALLS = ("--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib")
MORE = ("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
needs_walls = pytest.mark.skipif(shutil.which("bwrap") is None, reason="this machine has no bubblewrap")


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder that is `/app` on the other side, and nowhere here."""
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


def _leads(there: Path) -> tuple[str, ...]:
    walls = ("bwrap", *WALLS, *MORE, "--bind", str(there), "/app", "--die-with-parent")
    return (*walls, "--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--unshare-user")


@needs_walls
def test_every_tool_works_on_the_other_side(tmp_path: Path, there: Path, model: ScriptedModel) -> None:
    (there / "src").mkdir()
    (there / "src" / "old.py").write_text("value = 1\n")
    (there / "run.sh").write_text("true\n")
    (there / "run.sh").chmod(0o750)
    (there / "AGENTS.md").write_text("Write British English.\n")
    with agent(tmp_path, model, through=_leads(there), folder="/app") as running:
        frames = running.turn(
            call("read", path="src/old.py"),
            call("edit", path="/app/src/old.py", old_string="1", new_string="'it''s\\n$HOME'"),
            call("write", path="fresh/deep/a.txt", content="ä"),
            call("write", path="run.sh", content="false\n"),
            call("grep", pattern="HOME", path="."),
            call("find", pattern="*.py"),
            call("bash", command="pwd; cat fresh/deep/a.txt; echo oops >&2; exit 3"),
            "say Done.",
        )
    answers = results(frames)
    assert [failed for _, failed in answers] == [False] * 6 + [True]
    assert (answers[0][0], answers[5][0]) == ("value = 1", "src/old.py")
    assert answers[4][0].startswith("src/old.py:1:value = 'it''s")
    assert sorted(answers[6][0].split("\n")) == ["/app", "[exit code 3]", "oops", "ä"] or "/app\nä" in answers[6][0]
    assert [change.action for change in of(frames, FileChange)] == ["modified", "created", "modified"]
    assert ((there / "fresh/deep/a.txt").read_text(), (there / "run.sh").read_text()) == ("ä", "false\n")
    assert (there / "run.sh").stat().st_mode & 0o777 == 0o750
    assert list((tmp_path / "workspace").iterdir()) == []
    told = asked(model)[0]["messages"][0]["content"]
    assert "The workspace is /app, on a machine that is reached through" in told
    assert "Write British English." in told


@needs_walls
def test_nothing_outside_of_the_folder_there_is_touched(tmp_path: Path, there: Path, model: ScriptedModel) -> None:
    (there / "link.txt").symlink_to("/usr/bin/env")
    (there / "folder").symlink_to("/usr")
    (there / "loop").symlink_to("loop")
    paths = ["../etc/passwd", "/etc/passwd", "link.txt", "folder/passwd", "loop", "a/../../x"]
    calls = [
        (call("read", path=path), call("write", path=path, content="x"), call("find", pattern="*", path=path))
        for path in paths
    ]
    with agent(tmp_path, model, through=_leads(there), folder="/app") as running:
        frames = running.turn(" ;; ".join(each for group in calls for each in group), "say Done.")
    answers = results(frames)
    assert [failed for _, failed in answers] == [True] * 3 * len(paths), answers
    assert all("outside of the workspace" in output for output, _ in answers)


@needs_walls
def test_what_a_command_started_there_ends_with_it(tmp_path: Path, there: Path, model: ScriptedModel) -> None:
    """Not by the end of the walls, which ends all as well: the command leads to a place that goes on."""
    prefix = ("env", f"HOME={there}")
    with agent(tmp_path, model, through=prefix, folder=str(there)) as running:
        command = "setsid sleep 300 & echo $! > pid; echo began; sleep 300"
        running.prompt(call("bash", command=command), "say Never.")
        running.until(ToolPrinted)
        running.interrupt()
        running.rest()
        pid = (there / "pid").read_text().strip()
        wait_until(lambda: not Path("/proc", pid).exists(), "it ends")


def test_a_call_that_did_not_get_there_is_made_again(tmp_path: Path, there: Path, model: ScriptedModel) -> None:
    """The first two connections break; a command is not tried again, since it may have begun."""
    (there / "a.txt").write_text("one\n")
    lead = tmp_path / "lead"
    few = f'[ -e {tmp_path}/broken ] && [ "$(wc -l < {tmp_path}/count)" -le 2 ]'
    down = 'echo "line is down" >&2; exit 255'
    lead.write_text(f'#!/bin/sh\necho x >> {tmp_path}/count\n{few} && {{ {down}; }}\nexec "$@"\n')
    lead.chmod(0o755)
    with agent(tmp_path, model, through=(str(lead),), folder=str(there)) as running:
        (tmp_path / "count").write_text("")
        (tmp_path / "broken").touch()
        [read] = results(running.turn(call("read", path="a.txt"), "say Done."))
        lead.write_text(f"#!/bin/sh\n{down}\n")
        lost, command = results(running.turn(call("read", path="a.txt"), "bash touch begun", "say Done."))
    assert read == ("one", False)
    assert lost[1] is True
    assert "does not answer: line is down. (tried 3 times)" in lost[0]
    assert command[1] is True
    assert "[exit code 255]" in command[0]


def test_only_what_can_be_repeated_is_tried_again() -> None:
    kinds = {name: (tool.changes, tool.seconds, tool.retries) for name, tool in ALL.items()}
    assert kinds["read"] == ("nothing", 120, 2)
    assert kinds["bash"] == ("anything", None, 0)
    assert not [name for name, (changes, _, retries) in kinds.items() if changes == "anything" and retries]
