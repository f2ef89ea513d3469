"""API keys: what each may do, in which project, and what becomes of what was opened with one that is revoked."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.http_helpers import assert_problem
from tests.support.serving import RunningServer, running_server

TOKEN = "the-token-of-the-server"


class Team(NamedTuple):
    """A server with a few projects, and a client for each kind of key."""

    server: RunningServer
    token: httpx.Client
    keys: dict[str, str]

    def client(self, name: str, **headers: str) -> httpx.Client:
        return client_of(self.server, self.keys[name], **headers)


def client_of(server: RunningServer, key: str, **headers: str) -> httpx.Client:
    given = {"authorization": f"ApiKey {key}", **headers}
    return httpx.Client(base_url=f"{server.url}/api/v1", timeout=60, headers=given)


def new_key(api: httpx.Client, name: str, role: str, project: str | None = None, **headers: str) -> str:
    wanted = {"name": name, "role": role} | ({"projectId": project} if project else {})
    made = api.post("/api-keys", json=wanted, headers=headers)
    assert made.status_code == 201, made.text
    key: str = made.json()["key"]
    return key


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with (
        running_server(tmp_path_factory.mktemp("team") / "state", "--token", TOKEN) as server,
        client_of(server, TOKEN) as token,
    ):
        for project in ("web", "app"):
            assert token.post("/projects", json={"name": project}).status_code == 201
        assert token.post("/tenants", json={"name": "acme"}).status_code == 201
        keys = {role: new_key(token, role, role, "web") for role in ("viewer", "operator", "admin")}
        keys["other"] = new_key(token, "other", "admin", "app")
        keys["acme"] = new_key(token, "acme", "admin", **{"ostler-project": "acme/default"})
        keys["all"] = new_key(token, "all", "admin")
        yield Team(server, token, keys)


def test_a_key_says_who_it_is_and_what_it_is_for(team: Team) -> None:
    with team.client("operator") as api, team.client("acme") as acme:
        me, there = api.get("/me").json(), acme.get("/me").json()
    assert (me["actor"][:8], me["role"], me["reach"], me["tenant"]) == ("key:key_", "operator", "project", "default")
    assert [each["name"] for each in me["projects"]] == ["web"]
    assert (there["reach"], there["tenant"]) == ("tenant", "acme")
    assert [each["name"] for each in there["projects"]] == ["default"]


def test_each_project_sees_only_its_own(team: Team) -> None:
    with team.client("operator") as web, team.client("other") as app, team.client("acme") as acme:
        made = web.post("/sessions", json={"agent": "mock", "key": "tea"}).json()
        assert web.post("/prompts", json={"name": "tea", "text": "Make tea."}).status_code == 201
        assert [each["id"] for each in web.get("/sessions").json()["items"]] == [made["id"]]
        for foreign in (app, acme, team.token):
            assert made["id"] not in [each["id"] for each in foreign.get("/sessions").json()["items"]]
            assert foreign.get("/prompts").json()["items"] == []
            assert made["id"] not in foreign.get("/events?limit=1000").text
            for name in (made["id"], "tea"):
                assert_problem(foreign.get(f"/sessions/{name}"), "session_not_found")
        assert app.post("/sessions", json={"agent": "mock", "key": "tea"}).json()["id"] != made["id"]


def test_an_idempotency_key_of_another_is_another_key(team: Team) -> None:
    again = {"idempotency-key": "once"}
    with team.client("operator") as web, team.client("other") as app, team.client("admin") as admin:
        first = web.post("/sessions", json={"agent": "mock"}, headers=again).json()
        assert web.post("/sessions", json={"agent": "mock"}, headers=again).json()["id"] == first["id"]
        for other in (app, admin):
            assert other.post("/sessions", json={"agent": "mock"}, headers=again).json()["id"] != first["id"]


def test_a_wide_key_names_its_project_by_header_query_or_task(team: Team) -> None:
    with team.client("all") as api, team.client("operator") as web:
        web_id = web.get("/me").json()["project"]
        for headers in ({"ostler-project": "web"}, {"ostler-project": web_id}, {"ostler-project": "default/web"}):
            assert api.get("/me", headers=headers).json()["project"] == web_id
        assert api.get("/me").json()["project"] == "default"
        assert api.get("/me", headers={"ostler-project": "acme/default"}).json()["tenant"] == "acme"
        task = {"prompt": "mock: say done", "agent": {"type": "mock"}, "projectId": "web"}
        made = api.post("/tasks", json=task).json()
        assert web.get(f"/tasks/{made['id']}").status_code == 200
        assert made["id"] in [each["id"] for each in api.get("/tasks?projectId=web").json()["items"]]
        assert made["id"] not in [each["id"] for each in api.get("/tasks").json()["items"]]


@pytest.mark.parametrize("named", ["app", "default", "acme/default", "nowhere", ""])
def test_a_project_that_a_key_may_not_use_is_not_there(team: Team, named: str) -> None:
    with team.client("operator", **{"ostler-project": named}) as api:
        assert "There is no project" in assert_problem(api.get("/sessions"), "not_found")["detail"]


@pytest.mark.parametrize(
    ("who", "method", "path", "body", "status"),
    [
        ("viewer", "GET", "/sessions", None, 200),
        ("viewer", "POST", "/sessions", {"agent": "mock"}, 403),
        ("operator", "POST", "/sessions", {"agent": "mock"}, 201),
        ("operator", "POST", "/api-keys", {"name": "x", "role": "viewer", "projectId": "web"}, 403),
        ("admin", "POST", "/api-keys", {"name": "x", "role": "viewer", "projectId": "web"}, 201),
        ("admin", "POST", "/api-keys", {"name": "x", "role": "viewer"}, 403),
        ("admin", "POST", "/api-keys", {"name": "x", "role": "viewer", "projectId": "app"}, 404),
        ("admin", "POST", "/projects", {"name": "mine"}, 403),
        ("admin", "GET", "/runners", None, 403),
        ("acme", "POST", "/projects", {"name": "web"}, 201),
        ("acme", "POST", "/tenants", {"name": "more"}, 403),
        ("acme", "GET", "/runners", None, 403),
        ("acme", "GET", "/imports", None, 403),
        ("acme", "POST", "/imports", {"agent": "mock", "conversationId": "x"}, 403),
        ("acme", "POST", "/connect/keys", {"providers": ["tailscale"]}, 403),
        ("all", "POST", "/tenants", {"name": "more"}, 201),
        ("all", "GET", "/runners", None, 200),
    ],
)
def test_a_key_may_what_its_role_and_reach_say(
    team: Team, who: str, method: str, path: str, body: object, status: int
) -> None:
    with team.client(who) as api:
        assert api.request(method, path, json=body).status_code == status


def test_keys_are_listed_for_the_admins_of_their_project_and_never_shown_again(team: Team) -> None:
    with team.client("other") as app, team.client("acme") as acme, team.client("admin") as web:
        (own,) = app.get("/api-keys").json()["items"]
        assert (own["name"], own["role"], own["createdBy"]) == ("other", "admin", "token")
        assert team.keys["other"].startswith(own["prefix"])
        assert [each["name"] for each in acme.get("/api-keys").json()["items"]] == ["acme"]
        assert_problem(web.delete(f"/api-keys/{own['id']}"), "not_found")
        assert team.keys["other"] not in team.token.get("/api-keys").text


def test_a_repeated_request_is_not_told_the_key_again(team: Team) -> None:
    wanted = {"name": "twice", "role": "viewer", "projectId": "web"}
    first, again = (team.token.post("/api-keys", json=wanted, headers={"idempotency-key": "k"}) for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert "key" not in again.json()


def test_only_a_hash_of_a_key_is_stored(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running_server(state) as server, httpx.Client(base_url=f"{server.url}/api/v1") as api:
        key = new_key(api, "ci", "viewer")
        with client_of(server, key) as client:
            assert client.get("/me").json()["role"] == "viewer"
        assert api.get("/me").json()["actor"] == "local"
    assert not [file for file in state.rglob("*") if file.is_file() and key.encode() in file.read_bytes()]
    with (
        running_server(state) as server,
        client_of(server, key) as client,
        client_of(server, f"{key}x") as stranger,
    ):
        assert client.get("/me").json()["role"] == "viewer"
        assert stranger.get("/me").status_code == 401


def test_a_revoked_key_is_refused_and_its_streams_and_sockets_end(team: Team) -> None:
    made = team.token.post("/api-keys", json={"name": "leaves", "role": "operator", "projectId": "web"}).json()
    with (
        client_of(team.server, made["key"]) as api,
        api.stream("GET", "/events", headers={"accept": "text/event-stream"}) as events,
        connect(
            f"ws{team.server.url.removeprefix('http')}/acp",
            additional_headers={"authorization": f"Bearer {made['key']}"},
        ) as socket,
    ):
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.extend(events.iter_bytes()))
        reader.start()
        assert team.token.delete(f"/api-keys/{made['id']}").status_code == 204
        reader.join(20)
        assert not reader.is_alive()
        assert b"the credential is good no more" in b"".join(read)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401
        assert "was revoked" in assert_problem(api.get("/me"), "token_invalid")["detail"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"role": "owner"}, "role"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"expiresAt": "tomorrow"}, "expiresAt"),
        ({"expiresAt": "2030-01-01T00:00:00"}, "expiresAt"),
        ({"expiresAt": "2001-01-01T00:00:00Z"}, "expiresAt"),
        ({"projects": []}, "projects"),
    ],
)
def test_a_key_that_cannot_be_made_is_refused_with_the_field(team: Team, change: dict[str, object], field: str) -> None:
    answer = team.token.post("/api-keys", json={"name": "x", "role": "viewer", **change})
    assert answer.status_code in {400, 422}
    assert field in answer.text


@pytest.mark.parametrize("name", ["", "Web", "-web", "a/b", "../../x", "w" * 64, "wéb"])
@pytest.mark.parametrize("noun", ["tenants", "projects"])
def test_a_name_that_is_none_is_refused(team: Team, noun: str, name: str) -> None:
    assert_problem(team.token.post(f"/{noun}", json={"name": name}), "invalid_request")


@pytest.mark.parametrize(("noun", "name"), [("tenants", "default"), ("tenants", "acme"), ("projects", "default")])
def test_a_name_is_given_once(team: Team, noun: str, name: str) -> None:
    assert_problem(team.token.post(f"/{noun}", json={"name": name}), "name_taken")


def test_a_key_of_a_project_that_is_gone_is_refused(tmp_path: Path) -> None:
    with running_server(tmp_path / "state", "--token", TOKEN) as server, client_of(server, TOKEN) as token:
        assert token.post("/projects", json={"name": "short"}).status_code == 201
        assert token.post("/tenants", json={"name": "brief"}).status_code == 201
        keys = [
            new_key(token, "one", "admin", "short"),
            new_key(token, "all", "admin", **{"ostler-project": "brief/default"}),
        ]
        with closing(sqlite3.connect(tmp_path / "state" / "ostler.db")) as database:  # as another server would
            database.execute("DELETE FROM projects")
            database.execute("DELETE FROM tenants")
            database.commit()
        assert token.post("/projects", json={"name": "other"}).status_code == 201  # has all read anew
        for key in keys:
            with client_of(server, key) as gone:
                for answer in (gone.get("/me"), gone.post("/sessions", json={"agent": "mock"})):
                    assert "was removed" in assert_problem(answer, "token_invalid")["detail"]


def test_who_comes_with_a_key_names_its_own_organisation_alone(team: Team) -> None:
    body = {"kind": "agent", "input": {"userPrompt": "mock: say Hi", "agent": "mock"}}

    def begun(key: str, org: str) -> httpx.Response:
        with team.client(key) as client:
            return client.post(f"{team.server.url}/api/orgs/{org}/workflow-executions", json=body)

    assert [begun("acme", "acme").json()["org"], begun("all", "anyone").json()["org"]] == ["acme", "anyone"]
    for key, org in (("acme", "default"), ("acme", "anyone"), ("operator", "acme")):
        assert "organisation" in assert_problem(begun(key, org), "not_found")["detail"]
    own = begun("operator", "default").json()
    with team.client("acme") as client:
        listed = client.get(f"{team.server.url}/api/orgs/acme/workflow-executions").json()["items"]
    assert own["org"] == "default"
    assert own["id"] not in [each["id"] for each in listed]
