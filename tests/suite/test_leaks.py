"""A test that leaves a socket open is named itself, not the one that runs when garbage is collected."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAKING = """
import socket

def test_that_forgets():
    ends = [*socket.socketpair()]
    ends.append(ends)

def test_after_it():
    import gc
    gc.collect()
"""


def test_a_socket_that_is_left_open_is_told_of_the_test_that_opened_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.conftest import *\n"
    )
    options = "addopts = --disable-plugin-autoload -p timeout\nfilterwarnings = error\n"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\n{options}")
    (tmp_path / "test_leaking.py").write_text(LEAKING)
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=-3, check=False)
    assert "ERROR test_leaking.py::test_that_forgets" in done.stdout, done.stdout + done.stderr
    assert "PASSED test_leaking.py::test_after_it" in done.stdout
