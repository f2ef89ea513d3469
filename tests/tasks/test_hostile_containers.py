"""A devcontainer.json is a stranger's file: nothing in it becomes an option, a mount or the engine's own setting."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.ordering import done, finished, order, task, task_server, texts
from tests.support.places import git, make_repository

_IMAGE = {"image": "registry.example/base:1"}


class Place(NamedTuple):
    """A server with an engine that writes down its commands and its environment."""

    api: httpx.Client
    engine: Path
    repository: Path

    def told(self, name: str = "engine.log") -> list[Any]:
        """What the engine wrote down."""
        file = self.engine.with_name(name)
        file.touch()
        return [json.loads(line) for line in file.read_text().splitlines()]

    def put(self, name: str, content: str) -> None:
        """Commit a file of the repository."""
        (self.repository / name).write_text(content)
        git(self.repository, "add", "-A")
        git(self.repository, "commit", "-q", "--allow-empty", "-m", "change")

    def order(self, path: str, prompt: str = "mock: say hi", **settings: Any) -> dict[str, Any]:
        """A task in the container that a file describes."""
        runtime = {"type": "devcontainer", "devcontainerPath": path}
        return task(prompt, self.repository, runtime=runtime, agent={"type": "mock", "settings": settings})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("hostile")
    engine = root / "bin" / "docker"
    engine.parent.mkdir()
    engine.write_text(f"#!{sys.executable}\n{Path(__file__).with_name('fake_engine.py').read_text()}")
    engine.chmod(0o755)
    env = {"PATH": f"{engine.parent}{os.pathsep}{os.environ['PATH']}"}
    repository = make_repository(root / "project")
    (repository / "Dockerfile").write_text("FROM scratch\n")
    with task_server(root / "state", root, env=env) as (_, api):
        yield Place(api, engine, repository)


@pytest.mark.parametrize(
    "content",
    [
        {**_IMAGE, "workspaceFolder": "/w:O,upperdir=/srv,workdir=/srv/.w"},
        {**_IMAGE, "workspaceFolder": "/w,source=/etc"},
        {**_IMAGE, "workspaceFolder": "/w/../../etc"},
        {**_IMAGE, "workspaceFolder": "/"},
        {**_IMAGE, "workspaceFolder": "/proc/self"},
        {**_IMAGE, "workspaceFolder": "--privileged"},
        {**_IMAGE, "workspaceFolder": "${localWorkspaceFolder}/.."},
        {**_IMAGE, "workspaceFolder": "${localWorkspaceFolder}"},
        {"image": "--privileged"},
        {"image": "docker-archive:/srv/backup.tar"},
        {"image": "tarball:1"},
        {"image": "dir:5000/x"},
        {"image": "base:1\n"},
        {**_IMAGE, "remoteUser": "--privileged"},
        {**_IMAGE, "containerUser": "root --privileged"},
        {**_IMAGE, "containerEnv": {"A*": "1"}},
        {**_IMAGE, "containerEnv": {"A=B": "1"}},
        {**_IMAGE, "containerEnv": {"--privileged": "1"}},
        {**_IMAGE, "containerEnv": {"A": "1\nLD_PRELOAD=/x.so"}},
        {**_IMAGE, "remoteEnv": {"A": "1\u0000"}},
        {**_IMAGE, "remoteEnv": {"A": "${localWorkspaceFolder}" * 2000}},
        {**_IMAGE, "postCreateCommand": ["echo", "\u0000"]},
        {**_IMAGE, "postCreateCommand": {"a": {"b": "\u0000"}}},
        {"build": {"dockerfile": "../../up"}},
        {"build": {"dockerfile": "Dockerfile", "context": "../.."}},
        {"build": {"dockerfile": "Dockerfile", "target": "--squash"}},
        {"build": {"dockerfile": "Dockerfile", "args": {"--squash": "1"}}},
        {"build": {"dockerfile": "Dockerfile", "args": {"A": "1\u0000"}}},
    ],
    ids=lambda content: json.dumps(content)[:70],
)
def test_a_value_that_is_more_than_it_should_be_fails_the_task(place: Place, content: dict[str, Any]) -> None:
    place.put("dev.json", json.dumps(content))
    before = len(place.told())
    found = finished(place.api, order(place.api, place.order("dev.json")))
    assert found["status"] == "failed"
    assert "dev.json" in found["error"] or "is not a path inside the workspace" in found["error"]
    assert [words for words in place.told()[before:] if words[0] in {"run", "build", "pull"}] == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"image": "x",' + "/**/" * 34 + " x", "cannot be read"),
        ('{"image": "x",' + "/**/" * 20_000 + " x", "cannot be read"),
        ('{"image": "x", "a": ' + "[" * 50_000, "cannot be read"),
        ('{"image": "x", "a": ' + "9" * 90_000 + "}", "cannot be read"),
        ('{"image": "x", "a": "' + "x" * 200_000 + '"}', "is larger than 100000 bytes"),
        ('{"image": 5}', "Expected `str"),
        ("[]", "Expected `object`"),
        ("", "cannot be read"),
        ('{"image": "x"} x', "cannot be read"),
    ],
    ids=["many comments", "more comments", "deep", "long number", "large", "number", "list", "empty", "more"],
)
def test_a_file_made_to_be_slow_is_told_at_once(place: Place, content: str, said: str) -> None:
    place.put("slow.json", content)
    session = order(place.api, place.order("slow.json"))
    for _ in range(5):
        assert place.api.get("/sessions", timeout=10).status_code == 200
    assert said in finished(place.api, session)["error"]


def test_variables_of_the_file_are_the_containers_and_not_the_engines(place: Place) -> None:
    hostile = {"LD_PRELOAD": "${localWorkspaceFolder}/x.so", "DOCKER_CONFIG": "/evil", "HOME": "/evil", "PLAIN": "a b"}
    place.put("env.json", json.dumps({**_IMAGE, "containerEnv": hostile}))
    asked = "mock: env DOCKER_CONFIG\nmock: env PLAIN\nmock: env LINES\nmock: env SECRET"
    settings = {"env": {"LINES": "one\ntwo", "SECRET": "hunter2"}}
    session = done(place.api, place.order("env.json", asked, **settings))["id"]
    assert texts(place.api, session)[0] == "DOCKER_CONFIG=/evil\nPLAIN=a b\nLINES=one\ntwo\nSECRET=hunter2"
    environments = place.told("engine.env")
    assert {name for env in environments for name in env} & {"LD_PRELOAD", "DOCKER_CONFIG", "PLAIN", "SECRET"} == set()
    assert len({env["HOME"] for env in environments}) == 1
    assert "evil" not in environments[0]["HOME"]


def test_what_a_container_prints_without_end_is_not_kept(place: Place) -> None:
    loud = "head -c 300000000 /dev/zero; echo; echo the end; exit 7"
    place.put("loud.json", json.dumps({**_IMAGE, "postCreateCommand": loud}))
    found = finished(place.api, order(place.api, place.order("loud.json")))
    assert found["error"].endswith("the end")
    assert len(found["error"]) < 1000


def test_the_dockerfile_that_is_built_is_a_copy(place: Place) -> None:
    place.put("Dockerfile.in", "FROM scratch\n#include </etc/passwd>\n")
    place.put("build.json", json.dumps({"build": {"dockerfile": "Dockerfile.in", "context": "."}}))
    done(place.api, place.order("build.json"))
    (build,) = [words for words in place.told() if words[0] == "build"]
    assert build[build.index("-f") + 1].endswith(".Dockerfile")
