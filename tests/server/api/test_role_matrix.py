"""Every route for every kind of caller: each may exactly what the handler declares, and nothing foreign is there."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import httpx
import pytest
from litestar.handlers import BaseRouteHandler
from litestar.routes import HTTPRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from ostler.server.api import app as composed
from ostler.server.api.services import Services
from ostler.server.auth.scope import ROLES
from tests.support.serving import RunningServer, running_server

TOKEN = "the-token-of-the-server"
REACHES = ("project", "tenant", "server")
UNKNOWN = "ses_00000000000000000000000000"
CALLERS = {
    "viewer": ("viewer", "project"),
    "operator": ("operator", "project"),
    "admin": ("admin", "project"),
    "other project": ("admin", "project"),
    "other tenant": ("admin", "tenant"),
    "server": ("admin", "server"),
}


class Door(NamedTuple):
    """One method of one route, and what its handler declares."""

    method: str
    path: str
    role: str
    reach: str

    def filled(self, value: str) -> str:
        return re.sub(r"\{[^}:]+(:\w+)?\}", lambda found: "1" if found.group(1) == ":int" else value, self.path)


def doors() -> list[Door]:
    found = []
    for route in composed._litestar(cast(Services, object())).routes:
        pairs: list[tuple[str, BaseRouteHandler]] = []
        if isinstance(route, HTTPRoute):
            pairs += [(method, pair[0]) for method, pair in route.route_handler_map.items() if method != "OPTIONS"]
        else:
            pairs.append(("SOCKET", route.route_handler))
        found += [Door(each, route.path, at.opt["role"], at.opt.get("reach", "project")) for each, at in pairs]
    return found


DOORS = doors()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("matrix") / "state", "--token", TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def clients(server: RunningServer) -> Iterator[dict[str, httpx.Client]]:
    """A client for each kind of caller; the others' have keys of their own."""
    with client_of(server, TOKEN) as token:
        for path, name in (("projects", "web"), ("projects", "app"), ("tenants", "acme")):
            assert token.post(f"/api/v1/{path}", json={"name": name}).status_code == 201
        made: dict[str, httpx.Client] = {}
        made |= {role: client_of(server, key_of(token, role, projectId="web")) for role in ROLES}
        made["other project"] = client_of(server, key_of(token, "admin", projectId="app"))
        made["other tenant"] = client_of(server, key_of(token, "admin", project="acme/default"))
        made["server"] = token
        yield made
        for client in made.values():
            client.close()


def client_of(server: RunningServer, key: str) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=60, headers={"authorization": f"Bearer {key}"})


def key_of(api: httpx.Client, role: str, project: str = "default", **more: str) -> str:
    wanted = {"name": role, "role": role, **more}
    made = api.post("/api/v1/api-keys", json=wanted, headers={"ostler-project": project})
    return cast(str, made.json()["key"])


def status_of(client: httpx.Client, door: Door, value: str) -> int:
    """The status alone: some answers never end."""
    if door.method == "SOCKET":
        return socket_status(str(client.base_url), door.path, client.headers.get("authorization"))
    body: dict[str, Any] = {} if door.method in {"GET", "DELETE"} else {"json": {}}
    with client.stream(door.method, door.filled(value), **body) as answer:
        return answer.status_code


def answer_of(client: httpx.Client, door: Door, name: str, body: dict[str, Any]) -> tuple[int, str]:
    """Status and text without the name; of a stream, which may never end, only that it is one."""
    with client.stream(door.method, door.filled(name), **body) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code, "a stream"
        return answer.status_code, answer.read().decode().replace(name, "ID")


def socket_status(address: str, path: str, authorization: str | None) -> int:
    headers = {"authorization": authorization} if authorization else {}
    try:
        with connect(f"ws{address.rstrip('/').removeprefix('http')}{path}", additional_headers=headers):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def is_allowed(door: Door, caller: str) -> bool:
    role, reach = CALLERS[caller]
    if door.role == "anyone":
        return True
    return ROLES.index(cast(Any, role)) >= ROLES.index(cast(Any, door.role)) and (
        REACHES.index(reach) >= REACHES.index(door.reach)
    )


def test_the_table_has_every_kind_of_door() -> None:
    assert len(DOORS) > 120
    assert {door.method for door in DOORS} >= {"GET", "POST", "PUT", "PATCH", "DELETE", "SOCKET"}
    assert {(door.role, door.reach) for door in DOORS} >= {("viewer", "project"), ("admin", "server")}


@pytest.mark.lane("server")
@pytest.mark.parametrize("caller", CALLERS)
def test_each_caller_may_what_the_handlers_declare(clients: dict[str, httpx.Client], caller: str) -> None:
    answered = {door: status_of(clients[caller], door, "nothing-here") for door in DOORS}
    wrong = {
        f"{door.method} {door.path}": (status, is_allowed(door, caller))
        for door, status in answered.items()
        if status == 401 or (status == 403) is is_allowed(door, caller)
    }
    assert wrong == {}


@pytest.mark.lane("server")
def test_without_a_credential_only_what_anyone_may_is_answered(server: RunningServer) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as nobody:
        answered = {door: status_of(nobody, door, "nothing-here") for door in DOORS}
    assert {door.path for door, status in answered.items() if status != 401} == {
        door.path for door in DOORS if door.role == "anyone" and door.method != "POST"
    } | {"/api/v1/runners/register", "/api/v1/triggers/{trigger:str}/deliveries"}


@pytest.mark.lane("server")
@pytest.mark.parametrize("caller", ["other project", "other tenant", "server"])
def test_a_session_of_another_project_is_answered_like_one_that_never_was(
    clients: dict[str, httpx.Client], caller: str
) -> None:
    made = clients["operator"].post("/api/v1/sessions", json={"agent": "mock"}).json()["id"]
    about_one = [door for door in DOORS if "{" in door.path and door.method in {"GET", "DELETE", "PATCH"}]
    told = {}
    for door in about_one:
        body: dict[str, Any] = {"json": {}} if door.method == "PATCH" else {}
        client = clients[caller]
        foreign, unknown = (answer_of(client, door, name, body) for name in (made, UNKNOWN))
        if foreign != unknown:
            told[f"{door.method} {door.path}"] = (foreign, unknown)
    assert told == {}
    assert clients["operator"].get(f"/api/v1/sessions/{made}").status_code == 200
