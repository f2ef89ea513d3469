"""Real agents go back with their own memory: what they remember is as old as the files, and forks share nothing."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from ostler.agents import ADAPTERS
from ostler.conformance.model import ScriptedModel
from ostler.conformance.rows import ROWS
from tests.tasks.ordering import events, new_session, say, task_server, texts
from tools.agent_cache import cached_agents

_AGENTS = ("claude-code", "codex")


class Place(NamedTuple):
    """A server with real agents, and the model that they use."""

    api: httpx.Client
    model: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    search = cached_agents()
    chosen = [adapter for adapter in ADAPTERS if adapter.info.id in _AGENTS]
    search.install(chosen, lambda line: print(line, file=sys.stderr, flush=True))
    assert search.failed == {}
    found = {adapter.info.id: search.installer.current(adapter.info.id) for adapter in chosen}
    named = {name: {"command": list(current.command)} for name, current in found.items() if current is not None}
    state = tmp_path_factory.mktemp("real") / "state"
    env = {"OSTLER_AGENTS": json.dumps(named)}
    with ScriptedModel() as model, task_server(state, tmp_path_factory.getbasetemp(), env=env) as (_, api):
        yield Place(api, model.url)


@pytest.mark.parametrize("agent", _AGENTS)
def test_a_real_agent_goes_back_with_its_own_memory(place: Place, repository: Path, agent: str) -> None:
    api, row = place.api, ROWS[agent]
    provider = {"type": row.provider, "base_url": place.model, "api_key": "sk-test"}
    more = {"model": row.model} if row.model else {}
    session = new_session(api, repository, agent=agent, provider=provider, permission_mode="bypass", **more)
    folder = api.get(f"/sessions/{session}").json()["cwd"]
    for turn in range(1, 4):
        say(api, session, f"SCRIPT: write {folder}/t{turn}.txt turn{turn}", "SCRIPT: recall")
    assert _files(api, session) == ["t1.txt", "t2.txt", "t3.txt"]
    assert "3 scripted user turns" in texts(api, session)[-1]
    fork = api.post(f"/sessions/{session}/fork", json={"turn": 2}).json()["id"]
    assert api.post(f"/sessions/{session}/rewind", json={"turn": 1}).status_code == 200
    for each, remembered in ((fork, 3), (session, 2), (fork, 4)):
        say(api, each, "SCRIPT: recall")
        assert f"{remembered} scripted user turns" in texts(api, each)[-1]
    assert (_files(api, session), _files(api, fork)) == (["t1.txt"], ["t1.txt", "t2.txt"])
    for each in (session, fork):
        starts = [event["data"] for event in events(api, each, "session.info") if event["data"].get("start") == 2]
        assert starts[0]["memory"] == "native"
        api.delete(f"/sessions/{each}")


def _files(api: httpx.Client, session: str) -> list[str]:
    return [file["path"] for file in api.get(f"/sessions/{session}/diff").json()["files"]]
