"""A test that hangs ends at its bound and says what its servers were doing."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HANGING = """
import signal, time
from tests.support.serving import running_server

def hang():
    signal.setitimer(signal.ITIMER_REAL, 0.5)  # the bound, sooner
    time.sleep(600)

def test_with_a_server_of_its_own(tmp_path):
    with running_server(tmp_path / "state"):
        hang()

def test_with_a_shared_server(server):
    hang()
"""


def test_the_stacks_of_own_and_shared_servers_are_in_the_output(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.conftest import *\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --disable-plugin-autoload -p asyncio -p timeout\n")
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-q", "--timeout=110", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=-3, check=False)
    assert "2 failed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("The server at http://127.0.0.1:") == 2
    assert done.stdout.count("End of stacks.") == 2
    assert "in serve" in done.stdout


def test_what_may_take_long_begins_first() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--lanes=fast", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "tests/server/test_survival.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first, second, *_ = done.stdout.splitlines()
    assert "::test_kills_lose_no_acknowledged_event" in first
    assert "::test_ctrl_c_with_live_sessions" in second
