"""What tasks can be ordered with, where a workspace is, and how it is opened, stopped and paused."""

from pathlib import Path

import httpx
import pytest
from jsonschema_rs import Draft202012Validator

from tests.support.http_helpers import assert_problem
from tests.support.ordering import done, events, finished, new_session, order, settled, task
from tests.support.patience import wait_until
from tests.support.places import git, make_repository


def test_the_agents_say_what_they_are_set_with(api: httpx.Client) -> None:
    (mock,) = [agent for agent in api.get("/agents").json()["items"] if agent["type"] == "mock"]
    schema = api.get(mock["settingsSchemaRef"].removeprefix("/api/v1")).json()
    assert sorted(schema["properties"]) == [
        "codeTools",
        "env",
        "instructions",
        "mcpServers",
        "mode",
        "model",
        "permissionMode",
        "permissionRules",
        "provider",
        "turnTimeoutSeconds",
        "variant",
    ]
    assert schema["properties"]["mode"]["enum"] == ["build", "plan"]
    assert schema["title"] == "Settings of Mock"
    validator = Draft202012Validator(schema)
    given = {
        "model": "mock-small",
        "permissionMode": "plan",
        "env": {"NAME": "value"},
        "mcpServers": {"files": {"type": "stdio", "command": "files"}},
        "provider": {"type": "openai", "baseUrl": "http://127.0.0.1:1"},
    }
    validator.validate(given)
    for unknown in ({"permission_mode": "plan"}, {"mode": "fly"}):
        assert not validator.is_valid(unknown)


def test_the_runtimes_are_told(api: httpx.Client) -> None:
    items = {item["type"]: item for item in api.get("/runtimes").json()["items"]}
    assert items["local"]["sandboxProfiles"] == ["default"]
    assert items["devcontainer"]["paths"] == [".devcontainer/devcontainer.json", ".devcontainer.json"]


def test_the_runner_says_how_it_makes_workspaces(api: httpx.Client) -> None:
    (runner,) = api.get("/runners").json()["items"]
    assert (runner["name"], runner["os"], runner["health"]) == ("local", "linux", "ok")
    assert runner["id"].startswith("run_")
    assert "copy" in runner["snapshotCapabilities"]
    assert not set(runner["notes"]) & set(runner["snapshotCapabilities"])


def test_branches_and_tags_are_told_and_remembered_for_a_moment(
    api: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = make_repository(tmp_path_factory.mktemp("refs") / "project")
    git(project, "tag", "v1")
    found = api.get("/git/refs", params={"url": str(project)}).json()
    assert found["defaultBranch"] == "main"
    assert {(ref["name"], ref["kind"]) for ref in found["refs"]} == {("main", "branch"), ("v1", "tag")}
    git(project, "tag", "v2")
    assert api.get("/git/refs", params={"url": str(project)}).json() == found
    assert_problem(api.get("/git/refs", params={"url": "/etc"}), "repository_refused")
    assert_problem(api.get("/git/refs"), "invalid_request", field="url")


def test_projects_are_those_that_tasks_have_named(api: httpx.Client, repository: Path) -> None:
    done(api, task("mock: say hi", repository, projectId="told"))
    counted = {item["id"]: item["sessions"] for item in api.get("/projects").json()["items"]}
    assert counted["told"] == 1
    assert "default" in counted


def test_a_workspace_says_where_it_is(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository)
    found = api.get(f"/sessions/{session}/workspace").json()
    assert found["mountPaths"]["host"] == found["workspace"]["path"] == api.get(f"/sessions/{session}").json()["cwd"]
    assert (found["provider"], found["host"]) == (found["workspace"]["provider"], "local")


def test_an_editor_is_opened_by_a_command(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository, workspace={"snapshot_preference": ["copy"]})
    path = api.get(f"/sessions/{session}/workspace").json()["workspace"]["path"]
    answer = api.post(f"/sessions/{session}/open/ide", json={"ide": "cursor"}).json()
    assert answer["commands"] == [f"cursor --folder-uri file://{path}"]
    assert (Path(path) / "README.md").exists()
    bad = api.post(f"/sessions/{session}/open/ide", json={"ide": "ed"})
    assert_problem(bad, "invalid_request", field="ide")


def test_a_hidden_workspace_is_entered_first(api: httpx.Client, repository: Path) -> None:
    session = new_session(api, repository, workspace={"snapshot_preference": ["overlay"]})
    found = api.get(f"/sessions/{session}/workspace").json()["workspace"]
    command = api.post(f"/sessions/{session}/open/ide", json={"ide": "vscode"}).json()["commands"][0]
    assert ("workspace/enter.py" in command) is not found["visible"]


def test_a_task_can_be_paused_and_goes_on(api: httpx.Client, repository: Path) -> None:
    session = order(api, task("mock: wait 3\nmock: write a.txt one", repository, delivery={"mode": "patch"}))
    wait_until(lambda: bool(events(api, session, "turn.started")), what="the turn has begun")
    assert api.post(f"/sessions/{session}/pause").json()["status"] == "paused"
    assert events(api, session, "delivery.completed") == []
    assert api.post(f"/sessions/{session}/resume").json()["status"] == "running"
    assert finished(api, session)["status"] == "completed"
    assert len(events(api, session, "delivery.completed")) == 1


def test_a_task_that_is_stopped_keeps_and_delivers_its_files(api: httpx.Client, repository: Path) -> None:
    session = order(api, task("mock: write a.txt one\nmock: wait 60", repository, delivery={"mode": "patch"}))
    wait_until(lambda: bool(events(api, session, "file.changed")), what="the file was written")
    assert api.post(f"/sessions/{session}/stop").json()["status"] == "stopped"
    assert [file["path"] for file in api.get(f"/sessions/{session}/diff").json()["files"]] == ["a.txt"]
    assert len(events(api, session, "delivery.completed")) == 1


def test_a_task_can_be_cancelled_before_it_begins(api: httpx.Client, repository: Path) -> None:
    session = order(api, task("mock: say hi", repository, workspace={"setup": "exec sleep 600"}))
    assert api.post(f"/sessions/{session}/cancel").json()["status"] == "cancelled"
    assert_problem(api.get(f"/sessions/{session}/diff"), "no_workspace")


def test_prompts_wait_until_the_workspace_is_there(api: httpx.Client, repository: Path) -> None:
    body = {"agent": "mock", "repo": {"url": str(repository)}}
    session = api.post("/sessions", json=body).json()["id"]
    for prompt in ("mock: write a.txt one", "mock: write b.txt two"):
        receipt = api.post(f"/sessions/{session}/messages", json={"message": prompt}).json()
        assert receipt["disposition"] in {"queued", "started"}
    settled(api, session, turn=2)
    assert len(api.get(f"/sessions/{session}/diff").json()["files"]) == 2


def test_folders_are_listed_a_level_at_a_time_and_no_others(
    api: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = tmp_path_factory.mktemp("folders")
    project = make_repository(top / "project")
    for name in (".hidden", "notes/deep"):
        (top / name).mkdir(parents=True)
    (top / "file").write_text("x")
    (top / "out").symlink_to("/etc")
    answer = api.get("/folders", params={"path": str(top)})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [(each["name"], each["repository"]) for each in found["folders"]] == [
        ("home", False),  # of whom makes repositories
        ("notes", False),
        ("project", True),
    ]
    assert (found["path"], found["parent"], found["truncated"]) == (str(top), str(top.parent), False)
    inside = api.get("/folders", params={"path": str(project)}).json()
    assert inside["repository"] is True
    assert api.get("/folders", params={"path": str(top), "limit": 1}).json()["truncated"] is True
    assert api.get("/folders").json()["path"] or api.get("/folders").json()["folders"]
    for path in (
        "/etc",
        str(top / "out"),
        str(top / "none"),
        "~",
        "relative",
        "/\0",
        "0" * 500,
        str(top / ("n" * 500)),
    ):
        assert_problem(api.get("/folders", params={"path": path}), "repository_refused")
