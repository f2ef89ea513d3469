"""`ostler agent` does a task without a server, and leaves a trajectory."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostler.conformance.model import ScriptedModel
from tests.support.patience import stretched, wait_until
from tests.support.serving import OSTLER, clean_env


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def _env(folder: Path, model: ScriptedModel) -> dict[str, str]:
    given = {"OPENROUTER_API_KEY": "sk-test", "OPENROUTER_BASE_URL": f"{model.url}/v1"}
    return clean_env(folder / "home", given)


def _run(folder: Path, model: ScriptedModel, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OSTLER, "agent", *words],
        env=_env(folder, model),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=stretched(100),
        check=False,
    )


def test_a_task_of_a_file_is_done_and_its_trajectory_written(tmp_path: Path, model: ScriptedModel) -> None:
    (tmp_path / "task.txt").write_text("SCRIPT: think Hm. ;; write made.txt hello\nSCRIPT: say Made it.\n")
    done = _run(tmp_path, model, "--task-file", "task.txt", "--trajectory", "t.json", "--output", "o.jsonl")
    assert (done.returncode, done.stdout.strip()) == (0, "Made it."), done.stderr
    assert (tmp_path / "made.txt").read_text() == "hello"
    trajectory = json.loads((tmp_path / "t.json").read_text())
    assert [step["source"] for step in trajectory["steps"]] == ["user", "agent", "agent"]
    [call] = trajectory["steps"][1]["tool_calls"]
    assert (call["function_name"], call["arguments"]["content"]) == ("write", "hello")
    assert trajectory["steps"][1]["observation"]["results"][0]["source_call_id"] == call["tool_call_id"]
    assert trajectory["final_metrics"]["total_prompt_tokens"] > 0
    assert trajectory["agent"]["model_name"] == "openrouter/z-ai/glm-4.7"
    assert json.loads((tmp_path / "o.jsonl").read_text().splitlines()[-1])["type"] == "done"
    assert not list((tmp_path / "home").rglob("*.jsonl"))


def test_a_provider_that_fails_is_told_in_its_words(tmp_path: Path, model: ScriptedModel) -> None:
    done = _run(tmp_path, model, "SCRIPT: error 401")
    assert (done.returncode, "401 Scripted error 401" in done.stderr) == (1, True)


def test_a_limit_ends_the_task(tmp_path: Path, model: ScriptedModel) -> None:
    done = _run(tmp_path, model, "SCRIPT: bash echo hi\nSCRIPT: say Never.", "--max-turns", "1")
    assert (done.returncode, "Stopped after 1 model calls" in done.stderr) == (0, True)


def test_a_task_is_done_where_a_command_leads(tmp_path: Path, model: ScriptedModel) -> None:
    (tmp_path / "there").mkdir()
    words = ("SCRIPT: write made.txt hello ;; bash pwd\nSCRIPT: say Made it.", "--through", "env THERE=1")
    done = _run(tmp_path, model, *words, "--cwd", str(tmp_path / "there"))
    assert (done.returncode, (tmp_path / "there" / "made.txt").read_text()) == (0, "hello"), done.stderr
    refused = _run(tmp_path, model, *words, "--cwd", "there")
    assert (refused.returncode, "'there' is not absolute" in refused.stderr) == (2, True)


@pytest.mark.parametrize("words", [(), ("a task", "--task-file", "-"), ("  ",)])
def test_a_task_must_be_given_once(tmp_path: Path, model: ScriptedModel, words: tuple[str, ...]) -> None:
    done = _run(tmp_path, model, *words)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_ctrl_c_interrupts_and_leaves_what_was_done(tmp_path: Path, model: ScriptedModel) -> None:
    command = [*OSTLER, "agent", "SCRIPT: bash echo begun > begun; sleep 300", "--trajectory", "t.json"]
    with subprocess.Popen(command, env=_env(tmp_path, model), cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
        wait_until((tmp_path / "begun").exists, "the command has begun")
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(stretched(60)) == 130
    assert json.loads((tmp_path / "t.json").read_text())["extra"]["outcome"] == "interrupted"
