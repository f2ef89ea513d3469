"""The web UI in a real browser against real servers: each file of behaviours is run by Node's own test runner."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import hatch_build
from tests.serving import clean_env

HERE = Path(__file__).resolve().parent
BEHAVIOURS = sorted(path.name for path in HERE.glob("*.test.mjs"))
_LONGEST = 560


@pytest.fixture(scope="module")
def node() -> Path:
    found = hatch_build.find_node()
    assert found is not None, "There is no Node that is new enough; `make web` installs one."
    assert hatch_build.build(), "The web UI could not be built; `make web` says why."
    return found


@pytest.mark.timeout(_LONGEST + 40)
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_ui_behaves(name: str, node: Path, tmp_path: Path) -> None:
    assert any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "There is no Chromium."
    with tempfile.TemporaryDirectory(prefix="ui-", dir="/tmp") as short:  # a browser's sockets need short names
        env = clean_env(tmp_path / "home", {"OSTLER_TEST_PYTHON": sys.executable, "TMPDIR": short})
        done = _run([str(node), "--test", "--test-force-exit", "--test-reporter=spec", str(HERE / name)], HERE, env)
    assert done.returncode == 0, done.stdout[-20_000:]


@pytest.mark.timeout(_LONGEST)
def test_the_parts_of_the_ui_pass_their_own_checks(node: Path) -> None:
    web = HERE.parents[1] / "web"
    tools = {
        "types of the API": ["openapi-typescript/bin/cli.js", *_types(web)],
        "types": ["typescript/bin/tsc", "--noEmit"],
        "format": ["prettier/bin/prettier.cjs", "--check", "--log-level", "warn", "."],
        "unit tests": ["vitest/vitest.mjs", "run", "--reporter=dot"],
    }
    for what, (program, *args) in tools.items():
        done = _run([str(node), str(web / "node_modules" / program), *args], web, {**os.environ, "CI": "1"})
        assert done.returncode == 0, f"{what}\n{done.stdout[-10_000:]}"


def _types(web: Path) -> list[str]:
    schema = web.parent / "schema" / "openapi.json"
    return [str(schema), "--default-non-nullable=false", "--output", str(web / "src" / "api" / "schema.d.ts")]


def _run(command: list[str], cwd: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=cwd, env=env, text=True, stdin=-3, stdout=-1, stderr=-2, timeout=_LONGEST, check=False
    )
