"""A real agent behind the real chat clients: Codex, with a scripted model on loopback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ostler.agents import ADAPTERS
from ostler.conformance.model import ScriptedModel
from tests.clients.conftest import Play
from tests.support.serving import RunningServer, running_server
from tools.agent_cache import cached_agents

pytestmark = pytest.mark.timeout(900)  # the first test may have to install the agent
WORK = """\
SCRIPT: say I will look. ;; bash echo from-the-shell
SCRIPT: say All done."""


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


@pytest.fixture(scope="module")
def codex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that uses the Codex of the tests' cache."""
    search = cached_agents()
    search.install([adapter for adapter in ADAPTERS if adapter.info.id == "codex"], print)
    found = search.installer.current("codex")
    assert found is not None, search.failed
    env = {"OSTLER_AGENTS": json.dumps({"codex": {"command": found.command}})}
    with running_server(tmp_path_factory.mktemp("codex") / "state", env=env) as running:
        yield running


def agent(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    provider = {"type": "openai", "base_url": model.url, "api_key": "sk-test"}
    return {"agent": {"harness": "codex", "model": "gpt-5.5", "provider": provider, **more}}


def parts(chat: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [part for part in chat["messages"][-1]["parts"] if part["type"].startswith(kind)]


@pytest.mark.parametrize("name", ["ai-5", "ai-6", "ai-7"])
def test_an_agent_works_and_remembers(play: Play, codex: RunningServer, model: ScriptedModel, name: str) -> None:
    script = [["send", WORK], ["send", "SCRIPT: say Second turn."]]
    body = agent(model, permissions="bypass")
    chat = play("chat.mjs", name, url=codex.url, id=f"chat-{uuid4().hex}", body=body, script=script)
    assert (chat["status"], chat.get("error")) == ("ready", None)
    assert [part["text"] for part in parts(chat, "text")] == ["Second turn."]
    first = {**chat, "messages": chat["messages"][:2]}
    assert [part["text"] for part in parts(first, "text")] == ["I will look.", "All done."]
    (called,) = parts(first, "tool-")
    assert (called["state"], "from-the-shell" in json.dumps(called["output"])) == ("output-available", True)


@pytest.mark.parametrize(("approved", "state"), [(True, "output-available"), (False, "output-denied")])
@pytest.mark.parametrize("name", ["ai-6", "ai-7"])
def test_a_call_of_an_agent_is_approved_or_not(
    play: Play, codex: RunningServer, model: ScriptedModel, tmp_path: Path, name: str, approved: bool, state: str
) -> None:
    target = tmp_path / "written.txt"
    script = [["send", f"SCRIPT: bash echo yes > {target}"], ["decide", {"approved": approved}]]
    headers = {"x-ai-sdk-version": name.split("-")[1]}
    chat = play(
        "chat.mjs", name, url=codex.url, id=f"chat-{uuid4().hex}", headers=headers, body=agent(model), script=script
    )
    assert (chat["status"], len(chat["messages"])) == ("ready", 2)
    assert [part["state"] for part in parts(chat, "tool-")] == [state]
    assert target.exists() == approved
