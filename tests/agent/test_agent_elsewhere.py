"""Tools whose files and commands are on a machine behind a real ssh, or in a container of a real podman."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ostler.conformance.model import ScriptedModel
from ostler.wire.own_agent import ToolPrinted
from tests.agent.process import Agent, agent, results
from tests.agent.test_agent_tools import call
from tests.support.patience import wait_until
from tests.support.real_engine import BARE, import_bare_image, install_engine, podman
from tests.support.sshd import sshd

pytestmark = [pytest.mark.root, pytest.mark.lane("work")]
LASTING = call("bash", command="echo $$ > pid; echo began; sleep 300")
LOOK = "grep -qs '^State:.[^Z]' /proc/$(cat pid)/status"
IS_THERE = call("bash", command=f"for i in $(seq 50); do {LOOK} || exec echo it ended; sleep 0.1; done")
Place = tuple[tuple[str, ...], str, Path]
"""A command that leads there, the folder there, and where a test sees it."""


@contextmanager
def _by_ssh(tmp_path: Path) -> Iterator[Place]:
    there = tmp_path / "there"
    there.mkdir()
    with sshd(tmp_path / "sshd") as (port, key):
        options = ("-F", "none", "-i", str(key), "-p", str(port), "-o", "BatchMode=yes")
        unknown = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
        yield ("ssh", *options, *unknown, "127.0.0.1"), str(there), there


@contextmanager
def _by_podman(tmp_path: Path) -> Iterator[Place]:
    there = tmp_path / "there"
    there.mkdir()
    with TemporaryDirectory(prefix="ost-", dir="/tmp") as short:  # podman takes no long names for its folders
        engine = install_engine(Path(short) / "podman")
        import_bare_image(engine)
        mounts = ("--volume", "/usr:/usr:ro", "--volume", f"{there}:/work")
        podman(engine, "run", "--detach", "--rm", "--init", "--name", "app", *mounts, BARE, "sleep", "600")
        try:
            yield (str(engine / "podman"), "exec", "-i", "app"), "/work", there
        finally:
            podman(engine, "rm", "--force", "app")
            wait_until(lambda: not _programs_of(short), "what podman started for it ends")


def _programs_of(folder: str) -> list[bytes]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(each.read_bytes())
    return [words for words in found if folder.encode() in words]


@pytest.fixture(params=[_by_ssh, _by_podman])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with request.param(tmp_path) as made:
        yield made


def test_tools_work_there(tmp_path: Path, place: Place, model: ScriptedModel) -> None:
    lead, folder, seen = place
    (seen / "old.py").write_text("value = 1\n")
    (seen / "out").symlink_to("/etc")
    with agent(tmp_path, model, through=lead, folder=folder) as running:
        frames = running.turn(
            call("read", path="old.py"),
            call("edit", path="old.py", old_string="1", new_string="'it''s\\n$HOME'"),
            call("write", path="fresh/a.txt", content="ä"),
            call("grep", pattern="HOME"),
            call("find", pattern="**/*.txt"),
            call("read", path="out/passwd"),
            call("bash", command="pwd; cat fresh/a.txt; echo; exit 3"),
            "say Done.",
        )
    answers = results(frames)
    assert [failed for _, failed in answers] == [False, False, False, False, False, True, True]
    assert (answers[0][0], answers[4][0]) == ("value = 1", "fresh/a.txt")
    assert answers[3][0].startswith("old.py:1:value = 'it''s")
    assert "outside of the workspace" in answers[5][0]
    assert answers[6][0].split() == [folder, "ä", "[exit", "code", "3]"]
    assert (seen / "fresh" / "a.txt").read_text() == "ä"
    assert list((tmp_path / "workspace").iterdir()) == []


def test_what_is_cut_off_ends_there(tmp_path: Path, place: Place, model: ScriptedModel) -> None:
    lead, folder, _ = place
    with agent(tmp_path, model, through=lead, folder=folder) as running:
        running.prompt(LASTING, "say Never.")
        running.until(ToolPrinted)
        running.interrupt()
        running.rest()
        [(answer, _)] = results(running.turn(IS_THERE, "say Done."))
    assert answer == "it ended"


def test_a_way_that_breaks_is_told_and_what_ran_there_ends(tmp_path: Path, place: Place, model: ScriptedModel) -> None:
    lead, folder, _ = place
    with agent(tmp_path, model, through=lead, folder=folder) as running:
        running.prompt(LASTING, IS_THERE, "say Done.")
        running.until(ToolPrinted)
        for pid in _below(running, Path(lead[0]).name):
            os.kill(pid, signal.SIGKILL)
        after, broken = results(running.rest())  # the first call began before that
    assert ("began" in broken[0], broken[1], after[0]) == (True, True, "it ended")


def _below(running: Agent, program: str) -> list[int]:
    """The processes that lead there."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            words = (each.parent / "cmdline").read_bytes().split(b"\0")
            if Path(words[0].decode()).name == program and _is_below(int(each.parent.name), running.process.pid):
                found.append(int(each.parent.name))
    return found


def _is_below(pid: int, above: int) -> bool:
    while pid > 1:
        if pid == above:
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False
