"""The web UI in a real browser against real servers: each file of behaviours is run by Node's own test runner."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import hatch_build
from ostler.agents import ADAPTERS
from ostler.conformance.model import ScriptedModel
from tests.support.serving import clean_env
from tools.agent_cache import cached_agents

HERE = Path(__file__).resolve().parent
_WEB = pytest.mark.lane("web")
IN_EVERY_RUN = "session.test.mjs"
BEHAVIOURS = [
    pytest.param(name, id=name, marks=[] if name == IN_EVERY_RUN else [_WEB])
    for name in sorted(path.name for path in HERE.glob("*.test.mjs"))
]
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
    _play(name, node, tmp_path)


@_WEB
@pytest.mark.timeout(900 + _LONGEST)
def test_a_real_agent_is_worked_with_in_the_browser(node: Path, tmp_path: Path) -> None:
    search = cached_agents()
    search.install([adapter for adapter in ADAPTERS if adapter.info.id == "claude-code"], print)
    found = search.installer.current("claude-code")
    assert found is not None, search.failed
    agents = json.dumps({"claude-code": {"command": found.command}})
    with ScriptedModel() as model:
        _play("real_agent.mjs", node, tmp_path, {"OSTLER_AGENTS": agents, "OSTLER_TEST_MODEL": model.url})


def _play(name: str, node: Path, folder: Path, more: Mapping[str, str] | None = None) -> None:
    """Run a file of behaviours in the browser."""
    assert any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "There is no Chromium."
    with tempfile.TemporaryDirectory(prefix="ui-", dir="/tmp") as short:  # a browser's sockets need short names
        own = {"OSTLER_TEST_PYTHON": sys.executable, "TMPDIR": short, **(more or {})}
        command = [str(node), "--test", "--test-force-exit", "--test-reporter=spec", str(HERE / name)]
        done = _run(command, HERE, clean_env(folder / "home", own))
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
