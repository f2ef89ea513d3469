"""Real programs of which several sessions share one process."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from ostler.conformance.rows import ROWS
from tests.support.patience import wait_until
from tests.support.serving import running_server
from tests.support.talk import Talk, said
from tools.agent_cache import Search

SHARING = ["opencode"]


class Place(NamedTuple):
    """A server whose sessions share, and the model that they use."""

    api: httpx.Client
    model: str
    state: Path

    def talk(self, agent: str) -> Talk:
        """A session in a folder of its own."""
        row = ROWS[agent]
        provider = {"type": row.provider, "base_url": self.model, "api_key": "sk-test"}
        return Talk(self.api, agent=agent, provider=provider, model=row.model)

    def processes(self) -> list[int]:
        """The shared ones that live."""
        notes = [json.loads(file.read_text()) for file in (self.state / "shared").glob("*/keeper/running")]
        return [note["pid"] for note in notes if Path(f"/proc/{note['pid']}").exists()]


@pytest.fixture
def place(search: Search, tmp_path: Path) -> Iterator[Place]:
    found = {name: search.installer.current(name) for name in SHARING}
    named = {name: {"command": list(current.command)} for name, current in found.items() if current is not None}
    arguments = [word for name in SHARING for word in ("--shared-agent", name)]
    with (
        ScriptedModel() as model,
        running_server(tmp_path / "state", *arguments, env={"OSTLER_AGENTS": json.dumps(named)}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=120) as api,
    ):
        yield Place(api, model.url, tmp_path / "state")


@pytest.mark.parametrize("name", SHARING)
def test_two_sessions_share_a_real_process(place: Place, name: str) -> None:
    one, two = place.talk(name), place.talk(name)
    assert said(one.turn("SCRIPT: say First.")) == "First."
    assert said(two.turn("SCRIPT: say Second.")) == "Second."
    (shared,) = place.processes()
    one.send("SCRIPT: bash touch made ;; say Asked.")
    asked = one.until_type("permission.requested")["data"]
    assert said(two.turn("SCRIPT: say Beside.")) == "Beside."
    one.post(f"/permissions/{asked['permission_id']}/reply", reply="once")
    assert one.until_type("turn.ended")["data"]["outcome"] == "completed"
    assert (Path(one.get()["cwd"]) / "made").exists()
    assert "permission.requested" not in two.types()
    one.send("SCRIPT: slow 200 0.2")
    one.until_type("item.delta")
    one.post("/interrupt")
    assert one.until_type("turn.ended")["data"]["outcome"] == "interrupted"
    _go_on_after_a_kill(place, shared, one, two)
    for talk in (one, two):
        place.api.delete(f"/sessions/{talk.id}")
    wait_until(lambda: not place.processes(), what="the process outlived its sessions")


def _go_on_after_a_kill(place: Place, shared: int, *talks: Talk) -> None:
    for talk in talks:
        talk.send("SCRIPT: slow 200 0.2")
        talk.until_type("item.delta")
    os.kill(shared, signal.SIGKILL)
    for talk in talks:
        assert talk.until_type("turn.ended")["data"]["outcome"] != "completed"
    for talk in talks:
        earlier = len([event for event in talk.events if event["type"] == "turn.started"])
        assert said(talk.turn("SCRIPT: recall")).startswith(f"Recall: {earlier + 1} scripted user turns")
    assert len(place.processes()) == 1
