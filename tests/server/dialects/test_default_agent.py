"""The agent of who names none: a mock that says what to do, and Ostler's own once it has a key."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from tests.support.http_helpers import assert_problem, wait_idle
from tests.support.serving import OSTLER, RunningServer, clean_env, running_server

ALL = "/api/orgs/acme/workflow-executions"
EXAMPLE: dict[str, Any] = {
    "systemPrompt": "You are a helpful coding assistant...",
    "userPrompt": "Analyze the top 10 trending GitHub repos...",
    "model": {"provider": "openrouter", "modelId": "deepseek/deepseek-chat-v3-0324"},
    "tools": ["read", "write", "edit", "bash", "grep", "find", "run-sandbox"],
    "config": {"maxTurns": 25, "maxTokens": 16384, "temperature": 0.7, "thinking": "medium"},
}
KEY = {"method": "key", "key": "sk-or-test", "variable": "OPENROUTER_API_KEY"}


class Door(NamedTuple):
    """A server that nothing was said to, but where OpenRouter is."""

    server: RunningServer
    client: httpx.Client
    api: httpx.Client
    model: ScriptedModel

    def create(self, task: dict[str, Any]) -> httpx.Response:
        """An execution."""
        return self.client.post(ALL, json={"kind": "agent", "input": task})


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with ScriptedModel() as model:
        address = f"OPENROUTER_BASE_URL={model.url}/v1"
        command = ["env", address, sys.executable, "-I", "-X", "utf8", "-m", "ostler.agent"]
        env = {"OSTLER_AGENTS": json.dumps({"ostler": {"command": command}})}
        with (
            running_server(tmp_path_factory.mktemp("door") / "state", env=env) as server,
            httpx.Client(base_url=server.url, timeout=60) as client,
            httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
        ):
            yield Door(server, client, api, model)


@pytest.fixture
def with_key(door: Door) -> Iterator[Door]:
    assert door.api.post("/agents/ostler/login", json=KEY).is_success
    yield door
    assert door.api.delete("/agents/ostler/login").is_success


def _run(door: Door, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = clean_env(folder / "home", {"OSTLER_ENDPOINT": door.server.url})
    return subprocess.run(
        [*OSTLER, "run", "--empty", *words],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_without_a_key_it_is_the_mock_which_says_what_to_do(door: Door, tmp_path: Path) -> None:
    listed = door.api.get("/agents").json()
    assert listed["defaultAgent"] == "mock"
    assert "ostler agents login ostler --key" in listed["defaultAgentHint"]
    assert "ostler agents login ostler" in assert_problem(door.create(EXAMPLE), "unprocessable")["detail"]
    made = door.create({"userPrompt": "mock: say hello"}).json()
    assert made["agent"] == "mock"
    events = door.api.get(f"/sessions/{made['id']}/events", params={"types": "notice"}).json()["events"]
    assert [event["data"]["code"] for event in events] == ["mock_agent"]


def test_a_key_is_all_that_the_example_needs(with_key: Door) -> None:
    listed = with_key.api.get("/agents").json()
    assert (listed["defaultAgent"], listed.get("defaultAgentHint")) == ("ostler", None)
    made = with_key.create(EXAMPLE)
    assert (made.status_code, made.json()["agent"]) == (201, "ostler")
    wait_idle(with_key.api, made.json()["id"], turns=1)
    assert with_key.model.requests[-1]["body"]["model"] == "deepseek/deepseek-chat-v3-0324"


def test_a_key_is_all_that_the_command_line_needs(with_key: Door, tmp_path: Path) -> None:
    done = _run(with_key, tmp_path, "SCRIPT: say Mended.")
    assert (done.returncode, "Mended." in done.stdout) == (0, True), done.stderr
    assert with_key.model.requests[-1]["body"]["model"] == "z-ai/glm-4.7"


def test_who_names_no_model_sees_which_one_was_chosen(with_key: Door) -> None:
    session = with_key.api.post("/sessions", json={"agent": "ostler"}).json()["id"]
    with_key.api.post(f"/sessions/{session}/messages", json={"message": "SCRIPT: say hi"})
    wait_idle(with_key.api, session, turns=1)
    assert with_key.api.get(f"/sessions/{session}").json()["agent"]["model"] == "openrouter/z-ai/glm-4.7"


def test_without_its_key_the_mock_is_back(door: Door) -> None:
    assert door.api.post("/agents/ostler/login", json=KEY).is_success
    assert door.api.delete("/agents/ostler/login").is_success
    assert door.api.get("/agents").json()["defaultAgent"] == "mock"
