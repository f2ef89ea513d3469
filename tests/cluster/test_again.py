"""Tests of one server once more, with two and a remote runner: one makes the sessions, the other gets the rest.

`OSTLER_TEST_SERVERS=cluster pytest tests/server` runs as many as you like that way; with `2` without the runner.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOT_SHARED = "not garbage and not has_the_headers"
"""What each server counts by itself, and a header that is about one connection."""
CHOSEN = {
    "2": ("tests/server/dialects/test_ai_sdk.py",),
    "cluster": ("tests/server/sessions/test_asks.py", "tests/server/sessions/test_turns.py"),
}


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("servers", list(CHOSEN))
def test_what_holds_for_one_server_holds_for_more(servers: str) -> None:
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", NOT_SHARED]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *quiet, *CHOSEN[servers]],
        env={**os.environ, "OSTLER_TEST_SERVERS": servers},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=1400,
    )
    assert done.returncode == 0, done.stdout[-8000:]
