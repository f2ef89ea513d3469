"""A test that fails is tried once more alone: what passes then is named, what fails again is red, nothing is lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import wait_until

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from tests.support.run import run_until_interrupted
sys.exit(run_until_interrupted(sys.argv[2:], Path(sys.argv[1])))
"""
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
pytest_plugins = ["tests.support.outcomes"]
"""
ONCE = """
import os, time
from pathlib import Path
import pytest
def once(name):
    mark = Path(__file__).with_name(name)
    seen = mark.exists()
    mark.touch()
    return not seen
"""


class Suite:
    """A folder with tests of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload -p timeout -p xdist\n")

    def run(self, tests: str, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run these tests as `make test` does."""
        (self._folder / "test_some.py").write_text(ONCE + tests)
        return self._main("-q", "-n", "2", *options)

    def count(self) -> list[str]:
        """What `make flaky` prints."""
        return self._main("--flaky").stdout.splitlines()

    def begin(self, tests: str) -> "subprocess.Popen[str]":
        """Begin to run these tests."""
        (self._folder / "test_some.py").write_text(ONCE + tests)
        command = [sys.executable, "-c", RUN, str(self._folder), "-q", "-n", "2"]
        return subprocess.Popen(command, cwd=ROOT, stdin=-3, stdout=-1, text=True)

    def _main(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", RUN, str(self._folder), *argv]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=-3, check=False)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


FAILS_ONCE = """
def test_passes(): pass
def test_fails(): assert not once("fails"), "the first\ttime"
def test_crashes():
    if once("crashes"): os._exit(3)
@pytest.fixture
def broken_at_first():
    assert not once("before"), "not there yet"
    yield
@pytest.fixture
def cleaned_badly():
    yield
    assert not once("after"), "not clean"
def test_needs(broken_at_first): pass
def test_leaves(cleaned_badly): pass
"""


def test_what_fails_once_is_named_and_written_down_and_the_run_is_green(suite: Suite) -> None:
    done = suite.run(FAILS_ONCE)
    assert done.returncode == 0, done.stdout
    named = sorted(line.split(" (")[0] for line in done.stdout.splitlines() if line.startswith("FLAKY"))
    tests = ("crashes", "fails", "leaves", "needs")
    assert named == [f"FLAKY test_some.py::test_{name}: failed beside others" for name in tests]
    assert "(AssertionError: the first" in done.stdout
    assert [line.split() for line in suite.count()[::2]] == [["1", f"test_some.py::test_{name}"] for name in tests]


FAILS_ALWAYS = """
@pytest.mark.parametrize("x", ["a b"])
def test_fails(x): assert x == "c"
def test_fails_once(): assert not once("fails")
def test_crashes(): os._exit(3)
"""


def test_what_fails_again_is_red_and_stands_in_the_end_with_the_command_that_runs_it(suite: Suite) -> None:
    done = suite.run(FAILS_ALWAYS)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-5:]
    assert last[0] == "RED: 2 failed"
    assert sorted(last[2::2]) == [
        "    .venv/bin/python -m pytest 'test_some.py::test_fails[a b]'",
        "    .venv/bin/python -m pytest test_some.py::test_crashes",
    ]
    assert any(line.startswith("  test_some.py::test_crashes: worker 'gw") for line in last)
    assert suite.count()[0] == "   1  test_some.py::test_fails_once"


@pytest.mark.lane("cli")
def test_more_failures_than_an_accident_makes_are_not_tried_again(suite: Suite) -> None:
    done = suite.run("@pytest.mark.parametrize('n', range(21))\ndef test_a(n): assert not once(str(n))\n")
    assert done.returncode == 1
    assert "21 tests failed, more than the 20 that are tried again." in done.stdout
    assert suite.count() == ["No test was flaky here."]


def test_a_file_that_cannot_be_read_is_red(suite: Suite) -> None:
    done = suite.run("import nothing_of_that_name\n")
    assert done.returncode not in {0, 5}
    assert done.stdout.splitlines()[-2].startswith("  test_some.py: ")


def test_a_run_without_tests_is_red(suite: Suite) -> None:
    done = suite.run("")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (5, "RED: no tests collected")


STARTS_A_PROGRAM = """
import subprocess
@pytest.fixture
def program():
    with subprocess.Popen(["sleep", "600"]) as process:
        Path(__file__).with_name("program").write_text(str(process.pid))
        yield
        Path(__file__).with_name("cleaned").touch()
        process.kill()
def test_waits(program): time.sleep(600)
"""


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(each, marks=pytest.mark.lane("cli")) for each in (signal.SIGTERM, signal.SIGHUP))],
)
def test_a_run_that_is_stopped_cleans_up_and_leaves_nothing(number: int, suite: Suite, tmp_path: Path) -> None:
    running = suite.begin(STARTS_A_PROGRAM)
    noted = tmp_path / "program"
    wait_until(lambda: noted.exists() and noted.read_text() != "", what="the test to begin")
    running.send_signal(number)
    output, _ = running.communicate()
    assert (running.returncode, output.splitlines()[-1]) == (130, "RED: interrupted")
    assert (tmp_path / "cleaned").exists()
    assert not Path("/proc", noted.read_text()).exists()


@pytest.mark.lane("cli")
def test_a_run_that_is_killed_cleans_up_and_leaves_nothing(suite: Suite, tmp_path: Path) -> None:
    running = suite.begin(STARTS_A_PROGRAM)
    noted = tmp_path / "program"
    wait_until(lambda: noted.exists() and noted.read_text() != "", what="the test to begin")
    running.kill()
    running.communicate()  # whatever could write to its output has ended
    assert (tmp_path / "cleaned").exists()
    assert not Path("/proc", noted.read_text()).exists()


@pytest.mark.lane("cli")
def test_a_run_whose_watcher_was_ended_ends_as_any_other(suite: Suite, tmp_path: Path) -> None:
    running = suite.begin(STARTS_A_PROGRAM)
    noted = tmp_path / "program"
    wait_until(lambda: noted.exists() and noted.read_text() != "", what="the test to begin")
    (watcher,) = (child for child in children(running.pid) if command_of(child) == command_of(running.pid))
    os.kill(watcher, signal.SIGKILL)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate()
    assert (running.returncode, output.splitlines()[-1]) == (130, "RED: interrupted")


def children(process: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def command_of(process: int) -> bytes:
    return Path(f"/proc/{process}/cmdline").read_bytes()


def test_a_file_that_is_not_there_is_told_by_its_name() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "2", "tests/suite", "tests/nowhere.py::test_a"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, "There is no file or folder tests/nowhere.py." in done.stderr) == (4, True), done


@pytest.mark.lane("cli")
def test_a_run_that_is_over_its_bound_is_red_though_nothing_failed(suite: Suite) -> None:
    slow = "@pytest.mark.parametrize('n', range(400))\ndef test_a(n): time.sleep(0.05)\n"
    done = suite.run(slow, "--session-timeout=1")
    assert done.returncode == 2
    assert "session-timeout: 1.0 sec exceeded" in done.stdout
