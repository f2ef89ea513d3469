"""Runs the real clients of other people, installed from package-lock.json, as programs of their own."""

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hatch_build
from tests.support.serving import clean_env

HERE = Path(__file__).parent
Play = Callable[..., Any]


@pytest.fixture(scope="session")
def node() -> Path:
    """A Node with the packages of this folder."""
    found = hatch_build.find_node()
    stamp, lock = HERE / "node_modules" / ".ostler-stamp", (HERE / "package-lock.json").read_bytes()
    is_there = stamp.is_file() and stamp.read_text() == hashlib.sha256(lock).hexdigest()
    assert found is not None, "the client tests need Node: run `python3 tools/setup.py clients`"
    assert is_there, "the clients are not installed: run `python3 tools/setup.py clients`"
    return found


@pytest.fixture
def play(node: Path, tmp_path: Path) -> Play:
    """Run one of the programs here with a JSON document as its input; gives the one it prints."""

    def played(program: str, *args: str, **wanted: Any) -> Any:
        done = subprocess.run(
            [str(node), program, *args],
            cwd=HERE,
            env=clean_env(tmp_path / "home"),
            input=json.dumps(wanted),
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return played
