"""Which container engine a runner works with, with real programs in the place of one."""

from pathlib import Path

import pytest

from ostler.runner.runtimes.container_engines import Engines
from tests.support.patience import stretched


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """A program called podman that says at once what is in a file, and is silent as long as there is none."""
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\n[ -f {tmp_path}/said ] || exec /bin/sleep 60\n. {tmp_path}/said\n")
    program.chmod(0o755)
    return program


async def test_an_engine_that_is_slow_once_is_busy_and_one_that_fails_is_away(engine: Path, tmp_path: Path) -> None:
    said = tmp_path / "said"
    engines = Engines(tmp_path / "home", {"PATH": str(tmp_path)}, answer_seconds=stretched(2), look_again_seconds=0)
    said.write_text("echo buildahVersion: 1\n")
    assert (await engines.get()).is_podman
    said.unlink()
    assert (await engines.get()).path == str(engine)
    said.write_text("exit 1\n")
    assert await engines.find() is None


async def test_an_engine_that_never_answered_is_none(engine: Path, tmp_path: Path) -> None:
    engines = Engines(tmp_path / "home", {"PATH": str(engine.parent)}, answer_seconds=0.1)
    assert await engines.find() is None
