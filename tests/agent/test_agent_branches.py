"""What a provider signed goes back to it byte for byte from a fork, and from a session that was rewound."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from tests.agent.process import signed
from tests.support.ordering import events, new_session, say, task_server, texts
from tests.support.places import make_repository

Json = dict[str, Any]
PROVIDERS = {
    "messages": ("anthropic/m", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
    "responses": ("openai/m", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "chat": ("openrouter/m/n", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "/v1"),
    "gemini": ("gemini/m", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", ""),
}
"""Protocol -> a model, and the variables that lead to it."""


@pytest.fixture(scope="module")
def strict() -> Iterator[ScriptedModel]:
    """A model that signs, and refuses what real ones refuse."""
    with ScriptedModel(is_strict=True) as running:
        yield running


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("origin") / "project")


@pytest.fixture(scope="module")
def api(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with task_server(tmp_path_factory.mktemp("branches") / "state", repository.parent) as (_, client):
        yield client


@pytest.mark.lane("work")
@pytest.mark.parametrize("protocol", PROVIDERS)
def test_signed_thoughts_survive_forks_and_rewinds(
    api: httpx.Client, repository: Path, strict: ScriptedModel, protocol: str
) -> None:
    model, key, address, path = PROVIDERS[protocol]
    env = {key: "sk-test-test", address: f"{strict.url}{path}"}
    session = new_session(api, repository, agent="ostler", model=model, permissionMode="bypass", env=env)
    folder = events(api, session, "workspace.created")[0]["data"][
        "path"
    ]  # another one in a fork, where text is renamed
    say(api, session, f"SCRIPT: think In {folder} ;; bash echo hi", "SCRIPT: think So. ;; say One.")
    say(api, session, "SCRIPT: say Well.")
    kept = _signed(strict, protocol)
    assert kept
    say(api, session, "SCRIPT: think Not this. ;; say Two.")
    fork = api.post(f"/sessions/{session}/fork", json={"turn": 2}).json()["id"]
    say(api, fork, "SCRIPT: think Else. ;; say Three.")
    assert _signed(strict, protocol)[: len(kept)] == kept
    assert api.post(f"/sessions/{session}/rewind", json={"turn": 2}).is_success
    say(api, session, "SCRIPT: think Back. ;; say Four.")
    assert _signed(strict, protocol)[: len(kept)] == kept
    assert [event["why"] for event in strict.events if event["event"] == "objection"] == []
    assert (texts(api, fork)[-1][-6:], texts(api, session)[-1][-5:]) == ("Three.", "Four.")


def _signed(model: ScriptedModel, protocol: str) -> list[Json]:
    """All blocks with a signature in what went to the model last."""
    return list(signed(protocol, model.requests[-1]["body"]))
