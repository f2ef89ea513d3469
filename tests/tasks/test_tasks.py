"""A task becomes a session with files of its own, works, and hands its result over."""

from pathlib import Path

import httpx
import pytest

from tests.support.ordering import Json, done, events, finished, new_session, order, say, shell, task, texts
from tests.support.places import content_of, git, make_repository, tree_hash

_WRITE = "mock: write new.txt hello\\n\nmock: edit src/main.py one -> three"


def _full(repository: Path) -> Json:
    """The full body of the specification, with a repository and an agent that are there."""
    return {
        "tenantId": "acme",
        "projectId": "storefront",
        "prompt": _WRITE,
        "repo": {"mode": "git", "url": str(repository), "branch": "main", "commit": None},
        "runtime": {
            "type": "local",
            "devcontainerPath": ".devcontainer/devcontainer.json",
            "resources": {"cpu": 4, "memoryMiB": 8192},
        },
        "workspace": {"snapshotPreference": ["zfs", "btrfs", "overlay", "copy"], "executionHostId": "local"},
        "agent": {"type": "mock", "version": "latest", "settings": {"permissionMode": "bypass"}},
        "delivery": {"mode": "patch", "targetBranch": "main"},
        "labels": {"priority": "p2"},
        "webhooks": [],
    }


def test_a_new_task_is_queued_and_says_where_to_look(api: httpx.Client, repository: Path) -> None:
    answer = api.post("/tasks", json=task("mock: say hello", repository))
    created = answer.json()
    assert (answer.status_code, created["status"]) == (201, "queued")
    place = f"/api/v1/sessions/{created['id']}"
    shown = {name: created["links"][name] for name in ("self", "events", "logs")}
    assert shown == {"self": place, "events": f"{place}/events?format=flat", "logs": f"{place}/logs"}
    assert answer.headers["location"] == place


def test_a_task_and_its_session_are_one_resource(api: httpx.Client, repository: Path) -> None:
    ordered = done(api, _full(repository))["id"]
    shown = api.get(f"/sessions/{ordered}").json()
    assert api.get(f"/tasks/{ordered}").json() == shown
    assert (shown["tenantId"], shown["projectId"], shown["agent"]) == (
        "acme",
        "storefront",
        {"type": "mock", "version": "latest", "model": "mock-small"},
    )
    assert shown["runtime"]["resources"] == {"cpu": 4, "memoryMiB": 8192}
    running = next(each for each in events(api, ordered, "session.status") if each["data"]["status"] == "running")
    assert (shown["startedAt"], shown["createdAt"] < shown["startedAt"] <= shown["endedAt"]) == (running["time"], True)
    place = f"/api/v1/sessions/{ordered}"
    assert {name: shown["links"][name] for name in ("workspace", "ide")} == {
        "workspace": f"{place}/workspace",
        "ide": f"{place}/open/ide",
    }
    spellings = (("projectId", "storefront"), ("project_id", "storefront"), ("tenantId", "acme"), ("tenant_id", "acme"))
    for name, value in spellings:
        (listed,) = api.get("/sessions", params={name: value, "perPage": 1}).json()["items"]
        assert ("task" in listed, "vcs" in listed, listed["tenantId"]) == (False, True, "acme")


def test_a_task_goes_through_its_states_and_writes_them_down(
    api: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = make_repository(tmp_path_factory.mktemp("fresh") / "project")
    session = done(api, task("mock: say hello", project))["id"]
    statuses = [event["data"]["status"] for event in events(api, session, "session.status")]
    assert statuses == ["queued", "provisioning", "running", "completed"]
    lines = api.get(f"/sessions/{session}/logs", params={"tail": 1000}).json()["logs"]
    assert [line["message"] for line in lines][:3] == [
        "session is queued",
        "session is provisioning",
        f"Preparing the workspace from {project}.",
    ]
    assert any("objects" in line["message"] for line in lines)
    assert len(api.get(f"/sessions/{session}/logs", params={"tail": 2}).json()["logs"]) == 2


def test_the_full_body_of_the_specification_is_taken(api: httpx.Client, repository: Path) -> None:
    found = done(api, _full(repository))
    assert (found["tenantId"], found["projectId"], found["task"]["labels"]) == (
        "acme",
        "storefront",
        {"priority": "p2"},
    )
    assert (found["agent"]["type"], found["agent"]["version"]) == ("mock", "latest")
    assert found["vcs"] | {"url": "", "commit": ""} == {
        "repoMode": "git",
        "url": "",
        "branch": "main",
        "commit": "",
        "delivery": "patch",
        "targetBranch": "main",
    }
    assert found["workspace"]["host"] == "local"
    notices = [event["data"]["code"] for event in events(api, found["id"], "notice")]
    assert "resources_ignored" in notices


def test_field_names_may_be_snake_case_too(api: httpx.Client, repository: Path) -> None:
    settings = {"permission_mode": "bypass", "env": {"MY_NAME": "x"}}
    body = task("mock: env MY_NAME", repository, project_id="shop", agent={"type": "mock", "settings": settings})
    found = done(api, body)
    assert found["projectId"] == "shop"
    assert texts(api, found["id"]) == ["MY_NAME=x"]


def test_the_patch_of_a_task_applies_to_the_untouched_original(
    api: httpx.Client, repository: Path, tmp_path: Path
) -> None:
    before = tree_hash(repository)
    session = done(api, task(_WRITE, repository, delivery={"mode": "patch"}))["id"]
    (delivery,) = events(api, session, "delivery.completed")
    patch = api.get(delivery["data"]["url"].removeprefix("/api/v1"))
    assert patch.headers["content-type"].startswith("text/x-diff")
    assert len(patch.content) == delivery["data"]["size"]
    assert tree_hash(repository) == before
    git(tmp_path, "clone", "-q", str(repository), "copy")
    git(tmp_path / "copy", "apply", given=patch.content)
    assert (tmp_path / "copy" / "new.txt").read_text() == "hello\n"
    assert "three" in (tmp_path / "copy" / "src" / "main.py").read_text()


def test_the_agent_works_inside_its_own_workspace(api: httpx.Client, repository: Path) -> None:
    found = done(api, task("mock: pwd", repository))
    assert texts(api, found["id"]) == [found["workspace"]["mountPath"]]


def test_a_task_without_changes_is_completed_and_has_an_empty_patch(api: httpx.Client, repository: Path) -> None:
    session = done(api, task("mock: say nothing to do", repository, delivery={"mode": "patch"}))["id"]
    assert events(api, session, "delivery.completed") == []
    assert api.get(f"/sessions/{session}/patch").content == b""


def test_a_task_whose_turn_fails_has_failed(api: httpx.Client, repository: Path) -> None:
    found = finished(api, order(api, task("mock: error no luck", repository, delivery={"mode": "patch"})))
    assert (found["status"], found["error"]) == ("failed", "The task was not done: no luck")
    assert events(api, found["id"], "delivery.completed") == []


def test_a_task_may_stay_open_for_more(api: httpx.Client, repository: Path) -> None:
    session = order(api, task(_WRITE, repository, delivery={"mode": "patch"}, keepOpen=True))
    (delivery,) = _waited(api, session, "delivery.completed")
    assert api.get(f"/sessions/{session}").json()["status"] == "running"
    assert say(api, session, "mock: write more.txt more") == 2
    assert events(api, session, "delivery.completed") == [delivery]
    api.post(f"/sessions/{session}/stop")


def _waited(api: httpx.Client, session: str, kind: str) -> list[Json]:
    with api.stream("GET", f"/sessions/{session}/events/sse", params={"types": kind}) as stream:
        next(line for line in stream.iter_lines() if line.startswith("data:"))
    return events(api, session, kind)


def test_the_same_idempotency_key_gives_the_same_task(api: httpx.Client, repository: Path) -> None:
    body, key = task("mock: say once", repository), {"idempotency-key": "task-once"}
    first, second = (api.post("/tasks", json=body, headers=key) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    other = api.post("/tasks", json={**body, "prompt": "mock: say twice"}, headers=key)
    assert other.json()["code"] == "idempotency_conflict"


def test_tasks_are_listed_by_project_status_and_agent(api: httpx.Client, repository: Path) -> None:
    ids = {done(api, task("mock: say hi", repository, projectId="listed"))["id"] for _ in range(3)}
    page = api.get(
        "/tasks", params={"projectId": "listed", "perPage": 2, "status": "completed", "agent": "mock"}
    ).json()
    assert (len(page["items"]), page["total"], page["nextPage"]) == (2, 3, 2)
    rest = api.get("/tasks", params={"projectId": "listed", "perPage": 2, "page": 2}).json()
    assert {item["id"] for item in [*page["items"], *rest["items"]]} == ids
    assert "nextPage" not in rest
    sessions = api.get("/sessions", params={"projectId": "listed"}).json()
    assert {item["id"] for item in sessions["items"]} == ids


def test_a_repository_that_is_not_there_fails_the_task_with_a_clear_problem(
    api: httpx.Client, repository: Path
) -> None:
    body = task("mock: say hello", repository)
    body["repo"]["branch"] = "no-such-branch"
    found = finished(api, order(api, body))
    assert found["status"] == "failed"
    assert "no-such-branch" in found["error"]
    (ended,) = events(api, found["id"], "session.ended")
    assert ended["data"]["reason"] == "error"


def test_a_session_may_have_a_workspace_too(api: httpx.Client, repository: Path) -> None:
    before = tree_hash(repository)
    session = new_session(api, repository)
    say(api, session, _WRITE)
    changed = api.get(f"/sessions/{session}/diff").json()
    assert {file["path"]: file["status"] for file in changed["files"]} == {
        "new.txt": "added",
        "src/main.py": "modified",
    }
    assert tree_hash(repository) == before
    api.delete(f"/sessions/{session}")


def test_a_folder_is_copied_with_what_is_not_committed(
    api: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    (folder / "draft.txt").write_text("draft\n")
    before = content_of(folder)
    body = {"prompt": "mock: edit draft.txt draft -> done", "agent": {"type": "mock"}}
    session = done(api, {**body, "repo": {"mode": "folder", "path": str(folder)}})["id"]
    assert api.get(f"/sessions/{session}/files/content", params={"path": "draft.txt"}).text == "done\n"
    assert content_of(folder) == before


def test_an_upload_becomes_a_workspace(api: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "a.txt").write_text("sent\n")
    shell(tmp_path, "tar -C sent -czf sent.tgz .")
    ticket = api.post("/uploads").json()
    body = {"prompt": "mock: write b.txt more", "agent": {"type": "mock"}, "repo": {"mode": "upload"}}
    body["repo"] = {"mode": "upload", "upload": ticket["token"]}
    assert api.post("/tasks", json=body).json()["code"] == "not_found"
    sent = api.put(ticket["url"].removeprefix("/api/v1"), content=(tmp_path / "sent.tgz").read_bytes())
    assert sent.status_code == 200, sent.text
    session = done(api, body)["id"]
    assert api.get(f"/sessions/{session}/files/content", params={"path": "a.txt"}).text == "sent\n"
    assert [file["path"] for file in api.get(f"/sessions/{session}/diff").json()["files"]] == ["b.txt"]
