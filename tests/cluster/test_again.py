"""Tests of one server once more, with two: one makes the sessions, the other gets all other requests.

`OSTLER_TEST_SERVERS=2 pytest tests/server` runs as many as you like that way.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOT_SHARED = "not garbage and not has_the_headers"
"""What each server counts by itself, and a header that is about one connection."""
CHOSEN = ("tests/server/test_asks.py", "tests/server/test_turns.py", "tests/server/test_ai_sdk.py")


@pytest.mark.timeout(1500)
def test_what_holds_for_one_server_holds_for_two() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-k",
            NOT_SHARED,
            *CHOSEN,
        ],
        env={**os.environ, "OSTLER_TEST_SERVERS": "2"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=1400,
    )
    assert done.returncode == 0, done.stdout[-8000:]
