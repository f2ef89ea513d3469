"""A server or a command that is forked is like one that Python started, and ends with who asked for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forking import OSTLER, Forked, ran
from tests.support.patience import wait_until
from tests.support.serving import clean_env, running_server

ROOT = Path(__file__).resolve().parents[2]
ASKING = """
import sys
from pathlib import Path
from tests.support.serving import running_server
with running_server(Path(sys.argv[1]) / "state") as server:
    print(server.process.pid, flush=True)
    sys.stdin.read()
"""


def _is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def _template_of(pid: int) -> int:
    """The sibling of a fork that made it."""
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(next(each for each in children if int(each) != pid))


def test_a_server_that_was_forked_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ASKING, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=-1, stdout=-1, text=True) as asking:
        assert asking.stdout is not None
        server = int(asking.stdout.readline())
        template = _template_of(server)
        assert b"tests.support.template" in Path(f"/proc/{server}/cmdline").read_bytes()
        asking.kill()
    wait_until(lambda: not _is_alive(server) and not _is_alive(template), what="the server and its template ended")


def test_each_fork_has_its_own_environment_and_folder(tmp_path: Path) -> None:
    with running_server(tmp_path / "state") as server:
        (tmp_path / "here").mkdir()
        told = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": server.url})
        done = ran(["run", "mock", "mock: say hello"], env=told, cwd=tmp_path / "here", seconds=60)
        lost = ran(
            ["run", "mock", "hello"], env={**told, "OSTLER_ENDPOINT": "http://127.0.0.1:9"}, cwd=tmp_path, seconds=60
        )
    assert (done.returncode, "hello" in done.stdout, done.stderr) == (0, True, ""), done
    assert (lost.returncode, "127.0.0.1:9" in lost.stderr) == (3, True), lost


@pytest.mark.parametrize("words", [["--version"], ["nothing"], ["sessions", "--help"], ["serve", "--port", "nothing"]])
def test_a_fork_says_and_ends_as_a_start_does(words: list[str], tmp_path: Path) -> None:
    env = clean_env(tmp_path / "home")
    started = subprocess.run([*OSTLER, *words], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    forked = ran(words, env=env, cwd=tmp_path, seconds=60)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_a_command_with_a_word_for_python_is_started(tmp_path: Path) -> None:
    env = clean_env(tmp_path / "home", {"PYTHONPROFILEIMPORTTIME": "1"})
    with Forked([*OSTLER, "--version"], env=env, cwd=tmp_path, stdout=-1, stderr=-1) as process:
        _, written = process.communicate(timeout=60)
    assert b"import time:" in written
