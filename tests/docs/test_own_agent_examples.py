"""The examples on the page of Ostler's own agent run as they are printed; a scripted model stands for a provider."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from tests.docs.pages import ROOT, blocks
from tests.support.own_agent import with_model
from tests.support.patience import stretched
from tests.support.serving import RunningServer, clean_env, running_server

PAGE = ROOT / "docs" / "guides" / "own-agent.md"
ADDRESS = "http://127.0.0.1:2468"
QUESTION = "Do I need a coat in Ulm?"


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture
def server(tmp_path: Path, model: ScriptedModel) -> Iterator[RunningServer]:
    """A server whose agent has a key; it is the default agent."""
    with running_server(tmp_path / "state", env=with_model(model)) as running:
        yield running


def _only(language: str, word: str) -> str:
    [found] = [block.body for block in blocks(PAGE) if block.language == language and word in block.body]
    return found


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, env=clean_env(folder), text=True, capture_output=True, timeout=stretched(60), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_execution_of_the_page_is_created_by_curl(server: RunningServer, tmp_path: Path) -> None:
    command = _only("sh", "curl ").replace("curl ", "curl -sS --fail-with-body ").replace(ADDRESS, server.url)
    made = json.loads(_run(["sh", "-c", command], tmp_path))
    assert (made["agent"], made["status"], made["model"]) == (
        "ostler",
        "RUNNING",
        "openrouter/deepseek/deepseek-chat-v3-0324",
    )


def test_the_tool_of_the_page_is_called_and_answered(
    server: RunningServer, model: ScriptedModel, tmp_path: Path
) -> None:
    script = 'SCRIPT: tool weather {\\"town\\": \\"Ulm\\"}'
    program = _only("python", "client_tools").replace(ADDRESS, server.url).replace(QUESTION, script)
    said = _run([sys.executable, "-I", "-c", program], tmp_path)
    assert '"degrees":4' in said.replace(" ", "")
