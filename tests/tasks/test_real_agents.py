"""Real agents do tasks and go back with their own memory: it is as old as the files, and forks share nothing."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from ostler.agents import ADAPTERS
from ostler.conformance.model import ScriptedModel
from ostler.conformance.rows import ROWS
from tests.support.forge import TOKEN, State, running_forge
from tests.support.ordering import done, events, new_session, say, settled, task, task_server, texts
from tests.support.places import git, make_forged, make_repository, tree_hash
from tools.agent_cache import cached_agents

_AGENTS = ("claude-code", "codex")


class Place(NamedTuple):
    """A server with real agents, the model that they use, and a forge with a repository."""

    api: httpx.Client
    model: str
    forge: str
    pulls: State
    bare: Path

    def settings(self, agent: str) -> dict[str, Any]:
        """How a session of an agent gets to the model."""
        row = ROWS[agent]
        provider = {"type": row.provider, "base_url": self.model, "api_key": "sk-test"}
        return {"provider": provider, **({"model": row.model} if row.model else {})}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    search = cached_agents()
    chosen = [adapter for adapter in ADAPTERS if adapter.info.id in _AGENTS]
    search.install(chosen, lambda line: print(line, file=sys.stderr, flush=True))
    assert search.failed == {}
    found = {adapter.info.id: search.installer.current(adapter.info.id) for adapter in chosen}
    named = {name: {"command": list(current.command)} for name, current in found.items() if current is not None}
    folder = tmp_path_factory.mktemp("real")
    bare = make_forged(folder)
    env = {"OSTLER_AGENTS": json.dumps(named)}
    flags = ("--repository-protocol", "http", "--repository-host", "127.0.0.1")
    with (
        ScriptedModel() as model,
        running_forge(bare.parents[1]) as (forge, pulls),
        task_server(folder / "state", tmp_path_factory.getbasetemp(), *flags, env=env) as (_, api),
    ):
        yield Place(api, model.url, forge, pulls, bare)
        assert pulls.faults == []


def _work(place: Place, agent: str, repository: Path, **delivery: Any) -> dict[str, Any]:
    settings = {"permissionMode": "bypass", **_camel(place.settings(agent))}
    more = {"agent": {"type": agent, "settings": settings}, "delivery": delivery}
    return task("SCRIPT: bash printf 'made by %s' an-agent > made.txt", repository, **more)


def _camel(settings: dict[str, Any]) -> dict[str, Any]:
    provider = {"baseUrl" if name == "base_url" else name: value for name, value in settings["provider"].items()}
    provider["apiKey"] = provider.pop("api_key")
    return {**settings, "provider": provider}


@pytest.mark.parametrize("agent", _AGENTS)
def test_the_patch_of_a_real_agent_applies_to_the_original(
    place: Place, repository: Path, agent: str, tmp_path: Path
) -> None:
    before = tree_hash(repository)
    session = done(place.api, _work(place, agent, repository, mode="patch"))["id"]
    (tmp_path / "it.patch").write_text(place.api.get(f"/sessions/{session}/patch").text)
    git(repository, "apply", "--check", str(tmp_path / "it.patch"))
    assert "+made by an-agent" in (tmp_path / "it.patch").read_text()
    assert tree_hash(repository) == before


def test_a_real_agents_work_becomes_a_branch_of_a_bare_remote(place: Place) -> None:
    body = _work(place, "codex", place.bare, mode="branch", targetBranch="agent/made")
    session = done(place.api, body)["id"]
    (delivery,) = events(place.api, session, "delivery.completed")
    assert git(place.bare, "rev-parse", "agent/made") == delivery["data"]["commit"]
    assert git(place.bare, "show", "agent/made:made.txt") == "made by an-agent"


def test_a_real_agents_work_becomes_a_pull_request(place: Place) -> None:
    wanted = {"targetBranch": "main", "forge": "github", "apiUrl": f"{place.forge}/github", "title": "Made"}
    body = _work(place, "claude-code", place.bare, mode="pr", **wanted)
    body["repo"] = {"url": f"{place.forge}/team/project.git", "branch": "main", "credential": {"token": TOKEN}}
    session = done(place.api, body)["id"]
    (delivery,) = events(place.api, session, "delivery.completed")
    assert [(pull["title"], pull["target"]) for pull in place.pulls.pulls] == [("Made", "main")]
    assert git(place.bare, "show", f"{delivery['data']['branch']}:made.txt") == "made by an-agent"


@pytest.mark.parametrize("agent", _AGENTS)
def test_a_real_agent_goes_back_with_its_own_memory(place: Place, repository: Path, agent: str) -> None:
    api = place.api
    session = new_session(api, repository, agent=agent, permission_mode="bypass", **place.settings(agent))
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


def test_a_real_agent_hands_over_to_another_one(place: Place, repository: Path) -> None:
    api = place.api
    session = new_session(
        api, repository, agent="claude-code", permission_mode="bypass", **place.settings("claude-code")
    )
    folder = api.get(f"/sessions/{session}").json()["cwd"]
    say(api, session, f"SCRIPT: write {folder}/t1.txt turn1", "SCRIPT: recall")
    without = api.post(f"/sessions/{session}/handoff", json={"agent": "codex"})
    assert (without.status_code, list(without.json()["errors"])) == (422, ["provider"])
    settings = _camel(place.settings("codex"))
    handed = api.post(f"/sessions/{session}/handoff", json={"agent": "codex", **settings})
    assert (handed.status_code, handed.json()["agent"]["type"]) == (200, "codex"), handed.text
    say(api, session, f"SCRIPT: bash cat {folder}/t1.txt", "SCRIPT: recall")
    assert _files(api, session) == ["t1.txt"]
    said = "".join(str(event["data"]) for event in events(api, session, "item.completed"))
    assert "turn1" in said
    back = api.post(
        f"/sessions/{session}/handoff", json={"agent": "claude-code", **_camel(place.settings("claude-code"))}
    )
    assert back.status_code == 200, back.text
    say(api, session, "SCRIPT: recall")
    memories = [
        each["data"].get("memory") for each in events(api, session, "session.info") if each["data"].get("start")
    ]
    assert memories == [None, "replayed", "replayed"]


def _files(api: httpx.Client, session: str) -> list[str]:
    return [file["path"] for file in api.get(f"/sessions/{session}/diff").json()["files"]]


def test_an_edit_of_a_real_agent_in_a_persons_own_checkout_is_reviewed_commented_undone_and_delivered(
    place: Place, tmp_path: Path
) -> None:
    project = make_repository(tmp_path / "project")
    (project / "README.md").write_text("Mine\n")
    settings = {"permissionMode": "bypass", **_camel(place.settings("claude-code"))}
    made = place.api.post("/sessions", json={"agent": "claude-code", "cwd": str(project), **settings})
    assert made.status_code == 201, made.text
    session = str(made.json()["id"])
    say(place.api, session, f"SCRIPT: write {project}/notes.md one ;; bash printf mine > during.txt")
    comment = {"path": "notes.md", "startLine": 1, "text": "SCRIPT: say Understood."}
    assert place.api.post(f"/sessions/{session}/comments", json=comment).status_code == 201
    assert place.api.post(f"/sessions/{session}/comments/send").is_success
    settled(place.api, session, turn=2)
    say(place.api, session, f"SCRIPT: write {project}/wrong.md two")
    undone = place.api.post(f"/sessions/{session}/undo", json={"turn": 3})
    assert undone.json()["paths"] == ["wrong.md"], undone.text
    done = place.api.post(f"/sessions/{session}/deliver", json={"mode": "commit", "message": "Notes"})
    assert done.is_success, done.text
    assert git(project, "show", "--name-only", "--format=%s", "HEAD").split() == ["Notes", "notes.md"]
    assert sorted(git(project, "status", "--porcelain").split()) == ["??", "M", "README.md", "during.txt"]
