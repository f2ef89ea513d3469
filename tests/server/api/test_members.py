"""Who is in a tenant, and what it takes to remove a project or a tenant."""

from collections.abc import Iterator

import httpx
import pytest

from tests.server.api.test_keys import TOKEN, Team, client_of, new_key
from tests.support.http_helpers import assert_problem
from tests.support.serving import running_server


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    state = tmp_path_factory.mktemp("members") / "state"
    with running_server(state, "--token", TOKEN) as server, client_of(server, TOKEN) as token:
        yield Team(server, token, {})


def made(api: httpx.Client, noun: str, name: str, **headers: str) -> None:
    assert api.post(f"/{noun}", json={"name": name}, headers=headers).status_code == 201


def test_keys_that_are_good_are_members(team: Team) -> None:
    key = new_key(team.token, "ci", "operator", "default")
    with client_of(team.server, key) as api:
        assert api.get("/me").status_code == 200
        assert_problem(api.get("/members"), "forbidden")
    (member,) = (each for each in team.token.get("/members").json()["items"] if each["name"] == "ci")
    assert (member["role"], member["projectId"], member["tenant"]) == ("operator", "default", "default")
    assert team.token.delete(f"/api-keys/{member['actor'].removeprefix('key:')}").status_code == 204
    assert [each for each in team.token.get("/members").json()["items"] if each["name"] == "ci"] == []


def test_a_project_is_removed_only_when_nothing_lives_there(team: Team) -> None:
    made(team.token, "projects", "short")
    there = {"ostler-project": "short"}
    session = team.token.post("/sessions", json={"agent": "mock"}, headers=there).json()["id"]
    made_prompt = team.token.post("/prompts", json={"name": "tea", "text": "Make tea."}, headers=there)
    assert made_prompt.status_code == 201
    new_key(team.token, "short", "viewer", "short")
    detail = assert_problem(team.token.delete("/projects/short"), "not_empty")["detail"]
    assert "1 sessions, 1 API keys, 1 saved prompts" in detail
    assert team.token.delete(f"/sessions/{session}", headers=there).status_code == 204
    assert team.token.delete("/prompts/tea", headers=there).status_code == 204
    (key,) = (each["id"] for each in team.token.get("/api-keys").json()["items"] if each["name"] == "short")
    assert team.token.delete(f"/api-keys/{key}").status_code == 204
    assert team.token.delete("/projects/short").status_code == 204
    assert_problem(team.token.get("/sessions", headers=there), "not_found")
    assert_problem(team.token.delete("/projects/short"), "not_found")
    assert_problem(team.token.delete("/projects/default"), "not_empty")
    made(team.token, "projects", "short")


def test_a_tenant_is_removed_only_when_nothing_lives_there(team: Team) -> None:
    made(team.token, "tenants", "gone")
    there = {"ostler-project": "gone/default"}
    made(team.token, "projects", "web", **there)
    with client_of(team.server, new_key(team.token, "boss", "admin", **there)) as boss:
        assert_problem(boss.delete("/tenants/gone"), "forbidden")
        assert "1 more projects" in assert_problem(team.token.delete("/tenants/gone"), "not_empty")["detail"]
        assert_problem(boss.delete("/projects/default"), "not_empty")
        assert boss.delete("/projects/web").status_code == 204
        assert "1 API keys" in assert_problem(team.token.delete("/tenants/gone"), "not_empty")["detail"]
        key = boss.get("/me").json()["actor"].removeprefix("key:")
        assert team.token.delete(f"/api-keys/{key}", headers=there).status_code == 204
        assert team.token.delete("/tenants/gone").status_code == 204
        assert_problem(boss.get("/me"), "token_invalid")
    assert_problem(team.token.get("/me", headers=there), "not_found")
    assert_problem(team.token.delete("/tenants/gone"), "not_found")
    assert_problem(team.token.delete("/tenants/default"), "not_empty")
    again = team.token.post("/tenants", json={"name": "gone"})
    assert_problem(again, "name_taken")  # it would be shown the audit log and the limits of the old one
