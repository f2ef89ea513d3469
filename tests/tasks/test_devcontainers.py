"""A task may run in the container that its repository describes, where an engine answers."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.ordering import done, events, finished, order, say, task, task_server, texts
from tests.support.places import git, make_repository

_FILE = """{
  // where agents work
  "name": "Project", /* shown nowhere */
  "image": "registry.example/base:1",
  "workspaceFolder": "/workspaces/${localWorkspaceFolderBasename}",
  "containerEnv": {"PLACE": "${containerWorkspaceFolder}", "URL": "http://x//y"},
  "remoteUser": "dev",
  "postCreateCommand": "echo ready > made.txt",
}
"""


class Place(NamedTuple):
    """A server with an engine, and what the engine was told."""

    api: httpx.Client
    log: Path
    repository: Path

    def commands(self, verb: str) -> list[list[str]]:
        """The commands of one kind."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [words for words in lines if words[0] == verb]


@pytest.fixture
def contained(tmp_path: Path) -> Path:
    """A repository that describes its container."""
    project = make_repository(tmp_path / "project")
    (project / ".devcontainer").mkdir()
    (project / ".devcontainer" / "devcontainer.json").write_text(_FILE)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "container")
    return project


@pytest.fixture
def place(tmp_path: Path, state_dir: Path, contained: Path) -> Iterator[Place]:
    engine = tmp_path / "bin" / "docker"
    engine.parent.mkdir()
    source = Path(__file__).with_name("fake_engine.py").read_text()
    engine.write_text(f"#!{sys.executable}\n{source}")
    engine.chmod(0o755)
    env = {"PATH": f"{engine.parent}{os.pathsep}{os.environ['PATH']}"}
    with task_server(state_dir, tmp_path, env=env) as (_, api):
        yield Place(api, engine.with_name("engine.log"), contained)


def _task(prompt: str, repository: Path, **runtime: Any) -> dict[str, Any]:
    agent = {"type": "mock", "settings": {"env": {"SECRET": "hunter2"}}}
    return task(prompt, repository, runtime={"type": "devcontainer", **runtime}, agent=agent)


def test_the_agent_runs_in_the_container_of_the_repository(place: Place) -> None:
    limits = {"cpu": 2, "memoryMiB": 512}
    prompt = "mock: env PLACE\nmock: env SECRET\nmock: env FOLDER_INSIDE\nmock: write new.txt hello"
    session = done(place.api, _task(prompt, place.repository, resources=limits))["id"]
    info = place.api.get(f"/sessions/{session}/workspace").json()
    inside = info["mountPaths"]["container"]
    assert inside == f"/workspaces/{Path(info['workspace']['path']).name}"
    assert (info["devcontainer"]["image"], info["workspace"]["visible"]) == ("registry.example/base:1", True)
    assert texts(place.api, session)[0].splitlines() == [
        f"PLACE={inside}",
        "SECRET=hunter2",
        f"FOLDER_INSIDE={inside}",
    ]
    assert [file["path"] for file in place.api.get(f"/sessions/{session}/diff").json()["files"]] == ["new.txt"]
    assert place.api.get(f"/sessions/{session}/files/stat", params={"path": "made.txt"}).is_success
    (run,) = [words for words in place.commands("run") if "--interactive" in words]
    assert [run[run.index(flag) + 1] for flag in ("--user", "--cpus", "--memory")] == ["dev", "2", "512m"]
    assert "hunter2" not in place.log.read_text()
    assert place.commands("pull") == [["pull", "--quiet", "registry.example/base:1"]]
    place.api.delete(f"/sessions/{session}")
    assert place.commands("rm")[-1] == ["rm", "--force", info["devcontainer"]["container"]]


def test_a_fork_works_in_a_folder_that_is_called_after_it(place: Place) -> None:
    (place.repository / ".devcontainer" / "devcontainer.json").write_text('{"image": "registry.example/base:1"}')
    git(place.repository, "commit", "-q", "-a", "-m", "no folder")
    session = done(place.api, _task("mock: env FOLDER_INSIDE", place.repository))
    assert texts(place.api, session["id"]) == [f"FOLDER_INSIDE=/workspaces/{session['workspaceId']}"]
    fork = place.api.post(f"/sessions/{session['id']}/fork").json()
    say(place.api, fork["id"], "mock: env FOLDER_INSIDE")
    assert texts(place.api, fork["id"])[-1] == f"FOLDER_INSIDE=/workspaces/{fork['workspaceId']}"


def test_an_image_is_built_from_the_repository(place: Place) -> None:
    (place.repository / "dev.json").write_text('{"build": {"dockerfile": "Dockerfile", "args": {"A": "1"}}}')
    (place.repository / "Dockerfile").write_text("FROM scratch\n")
    git(place.repository, "add", "-A")
    git(place.repository, "commit", "-q", "-m", "build")
    done(place.api, _task("mock: say hi", place.repository, devcontainerPath="dev.json"))
    (build,) = place.commands("build")
    assert build[build.index("--build-arg") + 1] == "A=1"
    assert build[build.index("-f") + 1].endswith(".Dockerfile")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ("{}", "neither an image nor a Dockerfile"),
        ('{"dockerComposeFile": "x.yml"}', "docker compose"),
        ('{"image": "--privileged"}', "cannot be used. Give one such as"),
        ('{"build": {"dockerfile": "../../up"}}', "is not a path inside the workspace"),
    ],
)
def test_a_file_that_makes_no_sense_fails_the_task(place: Place, content: str, said: str) -> None:
    (place.repository / ".devcontainer" / "devcontainer.json").write_text(content)
    git(place.repository, "commit", "-q", "-a", "-m", "broken")
    found = finished(place.api, order(place.api, _task("mock: say hi", place.repository)))
    assert found["status"] == "failed"
    assert said in found["error"]
    assert events(place.api, found["id"], "workspace.created") == []


def test_a_repository_without_the_file_fails_the_task(place: Place) -> None:
    body = _task("mock: say hi", place.repository, devcontainerPath="other/devcontainer.json")
    found = finished(place.api, order(place.api, body))
    assert "has no other/devcontainer.json" in found["error"]


def test_without_an_engine_the_order_is_refused(tmp_path: Path, state_dir: Path, contained: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    with task_server(state_dir, tmp_path, env={"PATH": str(tools)}) as (_, api):
        problem = assert_problem(api.post("/tasks", json=_task("mock: say hi", contained)), "runtime_refused")
        assert "neither docker nor podman answers" in problem["detail"]
        (item,) = [item for item in api.get("/runtimes").json()["items"] if item["type"] == "devcontainer"]
        assert (item["available"], item["whyNot"]) == (False, "Neither docker nor podman answers on the runner.")
