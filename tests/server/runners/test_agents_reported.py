"""What a server knows of agents was reported by its runner: no program is run only to learn a name."""

import os
from pathlib import Path

import httpx

from tests.support.patience import wait_until
from tests.support.serving import running_server


def counting_program(folder: Path, name: str) -> Path:
    """A program that leaves a mark whenever it is run, and tells a version."""
    folder.mkdir()
    mark = folder / "mark"
    program = folder / name
    program.write_text(f"#!/bin/sh\necho run >> {mark}\necho 9.9.9\n")
    program.chmod(0o755)
    return mark


def test_a_name_is_found_without_running_any_agent(tmp_path: Path) -> None:
    mark = counting_program(tmp_path / "bin", "claude")
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    task = {"prompt": "mock: say hi", "repo": {"mode": "none"}, "agent": {"type": "mock"}}
    with (
        running_server(tmp_path / "state", env={"PATH": path}) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        assert api.get("/sessions", params={"agent": "claude"}).json()["total"] == 0
        assert api.post("/tasks", json=task).status_code == 201
        assert api.get("/agents/mock").json()["installed"]
        assert api.get("/agents/claude/models").status_code == 200
        assert not mark.exists()
        assert api.get("/agents/claude").json()["version"] == "9.9.9"
        assert mark.exists()


def test_the_commands_of_an_agent_are_known_once_it_ran(tmp_path: Path) -> None:
    with (
        running_server(tmp_path / "state") as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=60) as api,
    ):
        assert "commands" not in api.get("/agents/mock").json()
        session = api.post("/sessions", json={"agent": "mock"}).json()["id"]
        api.post(f"/sessions/{session}/messages", json={"message": "mock: say hi"}).raise_for_status()
        wait_until(lambda: "commands" in api.get("/agents/mock").json(), what="its commands are known")
        names = [command["name"] for command in api.get("/agents/mock").json()["commands"]]
        assert names == ["demo", "tea"]
        api.delete(f"/sessions/{session}").raise_for_status()
