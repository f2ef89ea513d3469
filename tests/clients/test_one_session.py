"""One session of a real agent, used by clients of several protocols in turn: all are told the same, to the byte."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from ostler.agents import ADAPTERS
from ostler.conformance.model import ScriptedModel
from ostler.conformance.rows import ROWS
from tests.clients.conftest import Play
from tests.support.chatting import load, words
from tests.support.serving import RunningServer, running_server
from tests.support.spoken import SPOKEN
from tools.agent_cache import cached_agents

pytestmark = pytest.mark.timeout(900)  # the first test may have to install the agent
AGENT = "pi"
WORK = """\
SCRIPT: say Grüße, 世界 ✓  (two  blanks) ;; bash echo from-the-shell
SCRIPT: say Done: "a\\b" & <c>."""
MORE = ["SCRIPT: say Zweitens: 👩‍👩‍👧 é.", "SCRIPT: say And the end."]
SAID = ["Grüße, 世界 ✓  (two  blanks)", 'Done: "a\\b" & <c>.', "Zweitens: 👩‍👩‍👧 é.", "And the end."]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that uses the agent of the tests' cache."""
    search = cached_agents()
    search.install([adapter for adapter in ADAPTERS if adapter.info.id == AGENT], print)
    found = search.installer.current(AGENT)
    assert found is not None, search.failed
    env = {"OSTLER_AGENTS": json.dumps({AGENT: {"command": found.command}})}
    with running_server(tmp_path_factory.mktemp(AGENT) / "state", env=env) as running:
        yield running


@pytest.fixture(scope="module")
def root(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def new_session(root: httpx.Client, model: ScriptedModel, folder: Path) -> str:
    row = ROWS[AGENT]
    body: dict[str, Any] = {
        "agent": AGENT,
        "key": f"shared-{uuid4().hex}",
        "cwd": str(folder),
        "permissionMode": "bypass",
        "provider": {"type": row.provider, "baseUrl": model.url, "apiKey": "sk-test"},
    }
    answer = root.post("/api/v1/sessions", json=body if row.model is None else {**body, "model": row.model})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["key"])


def assistant(messages: list[dict[str, Any]]) -> str:
    return "".join(message.get("content", "") for message in messages if message["role"] == "assistant")


def test_every_client_and_every_form_tells_the_same(
    play: Play, server: RunningServer, root: httpx.Client, model: ScriptedModel, tmp_path: Path
) -> None:
    key = new_session(root, model, tmp_path)
    session = root.get(f"/api/v1/sessions/{key}").json()["id"]

    agui = play("agui.mjs", url=server.url, threadId=key, prompts=[WORK], payload={"approved": True})
    assert [run["failed"] for run in agui["runs"]] == [None]
    assert assistant(agui["messages"]) == "".join(SAID[:2])

    editor = play("acp.mjs", "websocket", url=server.url, cwd=str(tmp_path), prompts=MORE[:1], session=session)
    assert editor["first"]["ends"] == ["end_turn"]
    assert SPOKEN["acp"](editor["first"]["updates"]) == "".join(SAID[:3])
    assert SPOKEN["acp"](editor["second"]["updates"]) == "".join(SAID[:3])

    chat = play("chat.mjs", "ai-7", url=server.url, id=key, script=[["send", MORE[1]]])
    assert (chat["status"], chat.get("error")) == ("ready", None)
    assert [part["text"] for part in chat["messages"][-1]["parts"] if part["type"] == "text"] == SAID[3:]

    assert "".join(text for role, text in words(load(root, key)) if role == "assistant") == "".join(SAID)
    for form in ("universal", "acp", "agui", "workflow", "ui"):
        page = root.get(f"/api/v1/sessions/{key}/events", params={"format": form, "limit": 10_000}).json()
        assert (form, SPOKEN[form](page["events"])) == (form, "".join(SAID))
    daemon = root.get(f"/v1/sessions/{key}/events", params={"limit": 10_000}).json()["events"]
    assert SPOKEN["daemon"](daemon) == "".join(SAID)
    place = f"/api/orgs/default/workflow-executions/{session}/state"
    state = root.get(place, params={"key": "messages"}).json()["value"]
    pieces = [piece for found in state if found["role"] == "assistant" for piece in found["content"]]
    assert [piece["text"] for piece in pieces if piece["type"] == "text"] == SAID
