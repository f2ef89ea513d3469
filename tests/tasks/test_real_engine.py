"""Tasks in containers of a real engine: the agent is inside, its files are the workspace's, and nothing is left."""

import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx
import pytest

from ostler.conformance.model import ScriptedModel
from tests.support.ordering import done, events, finished, order, say, settled, task, task_server, texts
from tests.support.places import git, make_repository
from tests.support.real_engine import (
    IMAGE,
    LITTLE,
    OTHER,
    SHELL,
    import_image,
    import_little_image,
    import_other_image,
    import_shell_image,
    install_engine,
    podman,
)

pytestmark = pytest.mark.root
_FILE = """{
  "image": "IMAGE",
  "workspaceFolder": "/workspaces/project",
  "containerEnv": {"PLACE": "${containerWorkspaceFolder}"},
  "postCreateCommand": "echo ready > made.txt && pwd",
}
"""


class Place(NamedTuple):
    """A server whose engine is real."""

    api: httpx.Client
    engine: Path
    repository: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("engine")
    with TemporaryDirectory(prefix="ost-", dir="/tmp") as short:  # podman takes no long names for its folders
        engine = install_engine(Path(short) / "podman")
        import_image(engine)
        yield from _places(root, engine)
        assert podman(engine, "ps", "--all", "--quiet") == ""


def _places(root: Path, engine: Path) -> Iterator[Place]:
    project = make_repository(root / "origin" / "project")
    (project / ".devcontainer.json").write_text(_FILE.replace("IMAGE", IMAGE))
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "container")
    env = {"PATH": f"{engine}{os.pathsep}{os.environ['PATH']}"}
    with task_server(root / "state", root / "origin", env=env) as (_, api):
        yield Place(api, engine, project)


def _in_container(prompt: str, place: Place, **more: object) -> dict[str, object]:
    return task(prompt, place.repository, runtime={"type": "devcontainer", "resources": {"memoryMiB": 512}}, **more)


def test_a_task_is_done_inside_a_real_container(place: Place) -> None:
    prompt = "mock: env container\nmock: env PLACE\nmock: pwd\nmock: write new.txt hello"
    session = done(place.api, _in_container(prompt, place, delivery={"mode": "patch"}))["id"]
    assert texts(place.api, session)[0].splitlines() == [
        "container=podman",
        "PLACE=/workspaces/project",
        "/workspaces/project",
    ]
    changed = {file["path"] for file in place.api.get(f"/sessions/{session}/diff").json()["files"]}
    assert changed == {"new.txt"}  # what postCreateCommand made is not the agent's work
    info = place.api.get(f"/sessions/{session}/workspace").json()
    assert (info["devcontainer"]["engine"], info["devcontainer"]["image"]) == ("podman", IMAGE)
    (delivered,) = events(place.api, session, "delivery.completed")
    assert delivered["data"]["size"] > 0
    place.api.delete(f"/sessions/{session}")


def test_a_session_goes_on_in_its_container_and_remembers(place: Place) -> None:
    session = order(place.api, _in_container("mock: recall", place, keepOpen=True))
    settled(place.api, session, turn=1)
    container = place.api.get(f"/sessions/{session}/workspace").json()["devcontainer"]["container"]
    assert podman(place.engine, "ps", "--format", "{{.Names}}") == container
    say(place.api, session, "mock: write a.txt a", "mock: recall")
    place.api.post(f"/sessions/{session}/rewind", json={"turn": 1}).raise_for_status()
    say(place.api, session, "mock: env container", "mock: recall")
    assert texts(place.api, session)[-1].splitlines() == [
        "container=podman",
        "I remember 2 user turns, this one included.",
    ]
    place.api.delete(f"/sessions/{session}")
    assert podman(place.engine, "ps", "--all", "--format", "{{.Names}}") == ""


@pytest.fixture
def model(place: Place) -> Iterator[ScriptedModel]:
    """A model that containers reach, since they have this machine's network."""
    settings = place.engine.parent / "containers.conf"
    closed = settings.read_text()
    settings.write_text(closed.replace('netns = "none"', 'netns = "host"'))
    with ScriptedModel() as running:
        yield running
    settings.write_text(closed)


def test_ostlers_own_agent_works_inside_a_real_container(place: Place, model: ScriptedModel) -> None:
    settings = {
        "model": "scripted-large",
        "permissionMode": "bypass",
        "provider": {"type": "openai", "baseUrl": model.url, "apiKey": "sk-test"},
    }
    prompt = "SCRIPT: write new.txt hello ;; read /workspaces/project/made.txt\nSCRIPT: say Done."
    session = done(place.api, _in_container(prompt, place, agent={"type": "ostler", "settings": settings}))["id"]
    assert texts(place.api, session)[-1] == "Done."
    changed = {file["path"] for file in place.api.get(f"/sessions/{session}/diff").json()["files"]}
    assert changed == {"new.txt"}
    results = [message["content"] for message in model.requests[-1]["body"]["messages"] if message["role"] == "tool"]
    assert results == ["Created new.txt (1 lines).", "ready"]
    place.api.delete(f"/sessions/{session}")


@pytest.mark.lane("work")
@pytest.mark.parametrize(("image", "imported"), [(SHELL, import_shell_image), (OTHER, import_other_image)])
def test_the_agent_brings_a_python_along_where_none_fits(
    place: Place, model: ScriptedModel, image: str, imported: Callable[[Path], None]
) -> None:
    imported(place.engine)
    session = done(place.api, _own_agent(place, model, image, "SCRIPT: write new.txt hello\nSCRIPT: say Done."))["id"]
    assert texts(place.api, session)[-1] == "Done."
    assert {file["path"] for file in place.api.get(f"/sessions/{session}/diff").json()["files"]} == {"new.txt"}
    place.api.delete(f"/sessions/{session}")


@pytest.mark.lane("work")
def test_where_no_python_runs_the_reason_is_told(place: Place, model: ScriptedModel) -> None:
    import_little_image(place.engine)
    found = finished(place.api, order(place.api, _own_agent(place, model, LITTLE, "SCRIPT: say Never.")))
    assert found["status"] == "failed"
    assert "This container has no python3, and the Python of the server does not run in it" in found["error"]
    assert "such as Debian's" in found["error"]
    place.api.delete(f"/sessions/{found['id']}")


def _own_agent(place: Place, model: ScriptedModel, image: str, prompt: str) -> dict[str, object]:
    """A task of our own agent in a container of an image."""
    (place.repository / "other.json").write_text(json.dumps({"image": image}))
    git(place.repository, "add", "-A")
    git(place.repository, "commit", "-q", "--allow-empty", "-m", "other")
    settings = {
        "model": "scripted-large",
        "permissionMode": "bypass",
        "provider": {"type": "openai", "baseUrl": model.url, "apiKey": "sk-test"},
    }
    body = _in_container(prompt, place, agent={"type": "ostler", "settings": settings})
    return {**body, "runtime": {"type": "devcontainer", "devcontainerPath": "other.json"}}


def test_a_container_that_does_not_want_to_end_is_removed(place: Place) -> None:
    session = order(place.api, _in_container("mock: ignore-signals", place, keepOpen=True))
    settled(place.api, session, turn=1)
    place.api.delete(f"/sessions/{session}").raise_for_status()
    assert podman(place.engine, "ps", "--all", "--format", "{{.Names}}") == ""


def _failure(place: Place, name: str, content: Mapping[str, object]) -> str:
    """Why a task in the container that a file describes fails."""
    (place.repository / name).write_text(json.dumps(content))
    git(place.repository, "add", "-A")
    git(place.repository, "commit", "-q", "-m", "hostile")
    body = _in_container("mock: say hi", place)
    body["runtime"] = {"type": "devcontainer", "devcontainerPath": name}
    found = finished(place.api, order(place.api, body))
    assert found["status"] == "failed"
    place.api.delete(f"/sessions/{found['id']}")
    return str(found["error"])


def test_no_folder_of_the_host_can_be_mounted(place: Place, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("hunter2")
    overlay = f"/w:O,upperdir={tmp_path},workdir={tmp_path}.w"
    command = 'python3 -c \'open("/w/new.txt", "w")\''
    content = {"image": IMAGE, "workspaceFolder": overlay, "postCreateCommand": command}
    assert "workspaceFolder" in _failure(place, "mount.json", content)
    assert [file.name for file in tmp_path.iterdir()] == ["key.txt"]


def test_no_file_of_the_host_can_be_the_image(place: Place, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "backup.tar", "w") as tar:
        tar.add(__file__, "key.txt")
    assert "image" in _failure(place, "image.json", {"image": f"tarball:{tmp_path}/backup.tar"})
    (place.repository / "Dockerfile").write_text(f"ARG A=tarball:{tmp_path}/backup.tar\nFROM $A\n")
    assert "is rejected by policy" in _failure(place, "from.json", {"build": {"dockerfile": "Dockerfile"}})


@pytest.mark.parametrize("mount", ["--mount", "--mo\\\nunt", "--mo\\\n# a comment\nunt"])
def test_no_link_leads_a_build_to_the_host(place: Place, tmp_path: Path, mount: str) -> None:
    (place.repository / "way").unlink(missing_ok=True)
    (place.repository / "way").symlink_to(tmp_path)
    (place.repository / "Dockerfile").write_text(f"FROM {IMAGE}\nRUN {mount}=type=bind,source=way,target=/w true\n")
    assert "RUN --mount" in _failure(place, "link.json", {"build": {"dockerfile": "Dockerfile"}})


def test_a_dockerfile_includes_no_file_of_the_host(place: Place, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("hunter2")
    (place.repository / "Dockerfile.in").write_text(f'FROM {IMAGE}\n#include "{tmp_path}/key.txt"\nNONSENSE\n')
    failure = _failure(place, "include.json", {"build": {"dockerfile": "Dockerfile.in"}})
    assert "NONSENSE" in failure
    assert "hunter2" not in failure.lower()


def test_an_image_is_built_by_the_real_engine(place: Place) -> None:
    (place.repository / "Dockerfile").write_text(f"FROM {IMAGE}\nARG WORD\nENV WORD=$WORD\n")
    content = {"build": {"dockerfile": "Dockerfile", "context": ".", "args": {"WORD": "a, b: c"}}}
    (place.repository / "build.json").write_text(json.dumps(content))
    git(place.repository, "add", "-A")
    git(place.repository, "commit", "-q", "-m", "build")
    body = _in_container("mock: env WORD", place)
    body["runtime"] = {"type": "devcontainer", "devcontainerPath": "build.json"}
    session = done(place.api, body)["id"]
    assert texts(place.api, session) == ["WORD=a, b: c"]
    place.api.delete(f"/sessions/{session}")


def test_what_a_container_says_when_it_cannot_begin_is_told(place: Place) -> None:
    (place.repository / "broken.json").write_text(
        f'{{"image": "{IMAGE}", "postCreateCommand": "echo went wrong; exit 3"}}'
    )
    git(place.repository, "add", "-A")
    git(place.repository, "commit", "-q", "-m", "broken")
    body = _in_container("mock: say hi", place)
    body["runtime"] = {"type": "devcontainer", "devcontainerPath": "broken.json"}
    found = finished(place.api, order(place.api, body))
    assert found["status"] == "failed"
    assert "code 3" in found["error"]
    assert "went wrong" in found["error"]
    place.api.delete(f"/sessions/{found['id']}")
