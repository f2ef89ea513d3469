"""What cannot be ordered is refused before anything is made, with the field, the value and the next step."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http_helpers import assert_problem
from tests.support.ordering import task, task_server

_BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no prompt": ({"prompt": None}, "invalid_request", "prompt"),
    "an empty prompt": ({"prompt": "  "}, "invalid_request", "prompt"),
    "no agent": ({"agent": {}}, "invalid_request", "agent"),
    "an agent as a word": ({"agent": "mock"}, "invalid_request", "agent"),
    "a version nobody has": ({"agent": {"type": "mock", "version": "99.9"}}, "version_not_offered", "agent"),
    "an unknown setting": ({"agent": {"type": "mock", "settings": {"colour": 1}}}, "invalid_request", "agent"),
    "git without an address": ({"repo": {"mode": "git"}}, "invalid_request", "repo"),
    "an upload without a token": ({"repo": {"mode": "upload"}}, "invalid_request", "repo"),
    "a folder without a path": ({"repo": {"mode": "folder"}}, "invalid_request", "repo"),
    "an unknown mode": ({"repo": {"mode": "svn", "url": "x"}}, "invalid_request", "repo"),
    "an unknown runtime": ({"runtime": {"type": "vm"}}, "invalid_request", "runtime"),
    "too little memory": ({"runtime": {"resources": {"memoryMiB": 0}}}, "invalid_request", "runtime"),
    "an unknown provider": ({"workspace": {"snapshotPreference": ["tape"]}}, "invalid_request", "workspace"),
    "an unknown runner": ({"workspace": {"executionHostId": "runner-z"}}, "unprocessable", "workspace"),
    "an unknown delivery": ({"delivery": {"mode": "mail"}}, "invalid_request", "delivery"),
    "a request without a repository": (
        {"repo": {"mode": "none"}, "delivery": {"mode": "pr"}},
        "invalid_request",
        "delivery",
    ),
    "a misspelt field": ({"promt": "x"}, "invalid_request", "promt"),
    "labels that are no words": ({"labels": {"a": 1}}, "invalid_request", "labels"),
    "an odd variable": ({"agent": {"type": "mock", "settings": {"env": {"A=B": "x"}}}}, "invalid_request", "env"),
}


@pytest.mark.parametrize("case", _BAD)
def test_an_order_that_makes_no_sense_is_refused(api: httpx.Client, repository: Path, case: str) -> None:
    change, code, field = _BAD[case]
    before = api.get("/sessions").json()["total"]
    body = {name: value for name, value in {**task("mock: say hi", repository), **change}.items() if value is not None}
    assert_problem(api.post("/tasks", json=body), code, field=field)
    assert api.get("/sessions").json()["total"] == before


@pytest.mark.parametrize(
    ("repo", "code"),
    [
        ({"url": "/etc"}, "repository_refused"),
        ({"url": "file:///etc"}, "repository_refused"),
        ({"url": "ext::sh -c true"}, "repository_refused"),
        ({"url": "--upload-pack=evil"}, "repository_refused"),
        ({"url": "https://user:hunter2@git.example/x.git"}, "repository_refused"),
        ({"mode": "folder", "path": "/etc"}, "repository_refused"),
        ({"mode": "folder", "path": "relative"}, "repository_refused"),
        ({"mode": "upload", "upload": "upt_" + "x" * 43}, "not_found"),
    ],
)
def test_a_repository_that_is_not_allowed_is_refused(api: httpx.Client, repo: dict[str, str], code: str) -> None:
    body = {"prompt": "mock: say hi", "repo": repo, "agent": {"type": "mock"}}
    problem = assert_problem(api.post("/tasks", json=body), code)
    assert "hunter2" not in str(problem)


@pytest.mark.parametrize("repo", [{"branch": "../x"}, {"branch": "-x"}, {"commit": "HEAD"}, {"commit": "zz"}])
def test_a_name_that_git_would_not_take_is_refused(api: httpx.Client, repository: Path, repo: dict[str, str]) -> None:
    body = task("mock: say hi", repository)
    body["repo"] = {"url": str(repository), **repo}
    answer = api.post("/tasks", json=body)
    assert answer.json()["code"] == "invalid_request", answer.text


def test_an_agent_may_be_called_by_its_other_name(api: httpx.Client, repository: Path) -> None:
    unknown = api.post("/tasks", json=task("x", repository, agent={"type": "claudius"}))
    assert_problem(unknown, "unsupported_agent")
    answers = {
        name: api.post("/tasks", json=task("x", repository, agent={"type": name, "version": "0.0.0"})).json()
        for name in ("claude", "claude-code")
    }
    assert {name: answer["code"] for name, answer in answers.items()} == {
        "claude": "version_not_offered",
        "claude-code": "version_not_offered",
    }
    assert all("claude-code" in answer["detail"] for answer in answers.values())


def test_a_workspace_and_a_folder_exclude_each_other(api: httpx.Client, repository: Path, tmp_path: Path) -> None:
    body = {"agent": "mock", "repo": {"url": str(repository)}, "cwd": str(tmp_path)}
    assert_problem(api.post("/sessions", json=body), "invalid_request", field="cwd")
    assert_problem(api.post("/sessions", json={"agent": "mock", "setup": "true"}), "invalid_request", field="setup")


def test_a_runtime_needs_the_operators_leave(tmp_path: Path, state_dir: Path, repository: Path) -> None:
    body = task("mock: say hi", repository, runtime={"type": "disabled"})
    with task_server(state_dir, repository.parent) as (_, api):
        assert_problem(api.post("/tasks", json=body), "runtime_refused")
    with task_server(state_dir, repository.parent, "--runtime", "disabled") as (_, api):
        assert api.post("/tasks", json=body).status_code == 201
        assert_problem(api.post("/tasks", json=task("mock: say hi", repository)), "runtime_refused")


def test_an_upload_needs_no_token_but_its_address(tmp_path: Path, state_dir: Path) -> None:
    with task_server(state_dir, tmp_path, "--token", "s3cret") as (_, api):
        assert api.post("/uploads").status_code == 401
        ticket = api.post("/uploads", headers={"authorization": "ApiKey s3cret"}).json()
        place = ticket["url"].removeprefix("/api/v1")
        assert api.put(place, content=b"anything").status_code == 200
        assert api.get(place).status_code == 401
        assert api.put("/uploads/upt_" + "x" * 43, content=b"x").status_code == 404
        assert api.put("/uploads/other", content=b"x").status_code == 404
