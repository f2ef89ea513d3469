"""Limits: what a tenant, a project or a key may have, who may say so, and what is told to who has as much."""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from ostler.base.errors.access import LimitReached
from tests.server.api.test_keys import TOKEN, Team, client_of, new_key
from tests.support.fleet import fleet_in
from tests.support.forking import ran
from tests.support.http_helpers import assert_problem, metrics
from tests.support.ordering import task
from tests.support.patience import stretched, wait_until
from tests.support.places import make_repository
from tests.support.serving import clean_env, running_server
from tests.support.talk import Talk

ROOMY = {"liveSessions": 1000}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("limits") / "shop")


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with (
        running_server(tmp_path_factory.mktemp("limits") / "state", "--token", TOKEN) as server,
        client_of(server, TOKEN) as token,
    ):
        assert token.post("/tenants", json={"name": "acme"}).status_code == 201
        yield Team(server, token, {})


@pytest.fixture
def api(team: Team, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """An operator of a project of its own."""
    name = request.node.name.replace("_", "-")[5:60].strip("-")
    assert team.token.post("/projects", json={"name": name}).status_code == 201
    with client_of(team.server, new_key(team.token, "own", "operator", name)) as client:
        yield client


def limit(team: Team, api: httpx.Client, **limits: Any) -> None:
    answer = team.token.put("/limits", json={"projectId": api.get("/me").json()["project"], **limits})
    assert answer.status_code == 200, answer.text


def own_usage(api: httpx.Client, scope: str = "project") -> dict[str, Any]:
    (found,) = (each for each in api.get("/usage").json()["items"] if each["scope"] == scope)
    return dict(found)


def completed(api: httpx.Client, task_id: str) -> None:
    status = ""
    for _ in range(600):
        if (status := api.get(f"/tasks/{task_id}").json()["status"]) == "completed":
            break
        time.sleep(0.05)  # between two looks
    assert status == "completed"


def refusal(answer: httpx.Response) -> dict[str, Any]:
    assert int(answer.headers["retry-after"]) > 0
    return dict(assert_problem(answer, "limit_reached")["details"]["limit"])


def test_a_full_project_gets_no_other_session_until_one_is_over(team: Team, api: httpx.Client) -> None:
    limit(team, api, liveSessions=1)
    first = api.post("/sessions", json={"agent": "mock"}).json()["id"]
    told = refusal(api.post("/sessions", json={"agent": "mock"}))
    assert {name: told[name] for name in ("name", "scope", "value", "used")} == {
        "name": "liveSessions",
        "scope": "project",
        "value": 1,
        "used": 1,
    }
    assert own_usage(api)["liveSessions"] == 1
    assert api.delete(f"/sessions/{first}").status_code == 204
    assert api.post("/sessions", json={"agent": "mock"}).status_code == 201


def test_a_task_of_a_full_project_waits_its_turn(team: Team, api: httpx.Client, repository: Path) -> None:
    limit(team, api, liveSessions=1, queuedTasks=1)
    first = api.post("/sessions", json={"agent": "mock"}).json()["id"]
    waits = api.post("/tasks", json=task("mock: say hello", repository)).json()
    assert waits["status"] == "queued"
    assert refusal(api.post("/tasks", json=task("mock: say hello", repository)))["name"] == "queuedTasks"
    assert (own_usage(api)["liveSessions"], own_usage(api)["queuedTasks"]) == (1, 1)
    assert api.delete(f"/sessions/{first}").status_code == 204
    completed(api, waits["id"])


def test_who_waits_for_a_task_is_told_which_limit_keeps_it(team: Team, api: httpx.Client, tmp_path: Path) -> None:
    limit(team, api, liveSessions=1)
    first = api.post("/sessions", json={"agent": "mock"}).json()["id"]
    key = api.headers["authorization"].removeprefix("ApiKey ")
    env = clean_env(tmp_path / "home", {"OSTLER_ENDPOINT": team.server.url, "OSTLER_TOKEN": key})
    words = ["task", "mock: say hello", "--agent", "mock", "--title", "Waits", "--wait"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ran, words, env=env, cwd=tmp_path, seconds=stretched(60))
        try:
            wait_until(lambda: len(api.get("/sessions").json()["items"]) == 2, "the task is there")
            (found,) = [each for each in api.get("/sessions").json()["items"] if each["id"] != first]
            reason = api.get(f"/sessions/{found['id']}").json()["placement"]["reason"]
            wait_until(lambda: metrics(team.token)["ostler_open_streams"] == 1, "the command follows the task")
        finally:
            assert api.delete(f"/sessions/{first}").status_code == 204
        done = waiting.result()
    assert reason.startswith("waiting until a session ends: the project '"), reason
    assert reason.endswith("has 1 live sessions, and its limit is 1"), reason
    assert (done.returncode, reason in done.stderr) == (0, True), done.stderr


def test_tokens_and_cost_of_a_day_are_counted_and_limited(team: Team, api: httpx.Client) -> None:
    talk = Talk(api)
    talk.turn("mock: usage 1000 200 0.01\nmock: usage 1200 300 0.02")
    for scope in ("project", "actor"):
        assert (own_usage(api, scope)["tokensToday"], own_usage(api, scope)["costToday"]) == (1500, 0.02)
    limit(team, api, tokensPerDay=1500)
    told = refusal(talk.post("/messages", message="mock: say hello"))
    assert (told["name"], told["used"], told["freesAt"][10:]) == ("tokensPerDay", 1500, "T00:00:00.000Z")
    limit(team, api, costPerDay=0.5)
    assert talk.post("/messages", message="mock: say hello").status_code == 202
    limit(team, api, costPerDay=0)
    assert refusal(talk.post("/messages", message="mock: say hello"))["name"] == "costPerDay"


def test_a_client_that_asks_too_often_is_told_when_to_come_again(team: Team, api: httpx.Client) -> None:
    actor = api.get("/me").json()["actor"]
    put = {"scope": "actor", "actor": actor, "requestsPerSecond": 0.001}
    assert team.token.put("/limits", json=put).status_code == 200
    assert api.get("/me").status_code == 200
    refused = api.get("/me")
    told = refusal(refused)
    assert (told["name"], told["scope"], told["id"]) == ("requestsPerSecond", "actor", actor)
    assert 900 < int(refused.headers["retry-after"]) <= 1000
    assert team.token.put("/limits", json={"scope": "actor", "actor": actor}).status_code == 200
    assert api.get("/me").status_code == 200


def test_an_admin_who_set_a_rate_too_low_can_set_another(team: Team) -> None:
    for rate in (0.001, 0.002):
        put = {"scope": "tenant", "requestsPerSecond": rate}
        assert team.token.put("/limits", json=put).status_code == 200
    while team.token.get("/me").status_code == 200:
        continue
    assert team.token.put("/limits", json={"scope": "tenant"}).status_code == 200
    assert team.token.get("/me").status_code == 200


def test_a_project_with_as_many_workspaces_as_it_may_have_gets_no_more(team: Team, api: httpx.Client) -> None:
    limit(team, api, workspaces=1)
    first = api.post("/tasks", json={"agent": {"type": "mock"}, "prompt": "mock: say hi", "repo": {"mode": "none"}})
    assert first.status_code == 201, first.text
    assert own_usage(api)["workspaces"] == 1
    second = {"agent": {"type": "mock"}, "prompt": "mock: say hi", "repo": {"mode": "none"}}
    told = refusal(api.post("/tasks", json=second))
    assert (told["name"], told["value"], told["used"]) == ("workspaces", 1, 1)
    completed(api, first.json()["id"])
    assert own_usage(api)["workspaces"] == 1
    assert refusal(api.post(f"/sessions/{first.json()['id']}/fork", json={}))["name"] == "workspaces"
    assert api.post("/sessions", json={"agent": "mock"}).status_code == 201
    assert api.delete(f"/sessions/{first.json()['id']}").status_code == 204
    assert own_usage(api)["workspaces"] == 0
    assert api.post("/tasks", json=second).status_code == 201


def test_bytes_of_uploads_are_counted_and_limited(team: Team, api: httpx.Client) -> None:
    first, second = api.post("/uploads").json(), api.post("/uploads").json()
    assert httpx.put(f"{team.server.url}{first['url']}", content=b"x" * 600).status_code == 200
    assert own_usage(api)["uploadedToday"] == own_usage(api, "actor")["uploadedToday"] == 600
    limit(team, api, uploadBytesPerDay=1000)
    told = refusal(httpx.put(f"{team.server.url}{second['url']}", content=b"x" * 600))
    assert (told["name"], told["value"], told["freesAt"][10:]) == ("uploadBytesPerDay", 1000, "T00:00:00.000Z")
    assert refusal(api.post("/uploads"))["name"] == "uploadBytesPerDay"


def test_uploads_at_once_do_not_each_have_all_that_is_left(team: Team, api: httpx.Client) -> None:
    limit(team, api, uploadBytesPerDay=1000)
    slow, other = (f"{team.server.url}{api.post('/uploads').json()['url']}" for _ in range(2))
    may_end = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"x" * 600
        may_end.wait(60)
        yield b"x" * 100

    with ThreadPoolExecutor(1) as clients:
        sending = clients.submit(httpx.put, slow, content=pieces(), timeout=60)
        wait_until(lambda: bool(own_usage(api)["uploadedToday"] == 600), "a part of it is there")
        assert refusal(httpx.put(other, content=b"x" * 600))["name"] == "uploadBytesPerDay"
        may_end.set()
        assert sending.result().status_code == 200
    assert own_usage(api)["uploadedToday"] == 1300


def test_an_upload_of_another_project_is_answered_like_one_that_never_was(team: Team, api: httpx.Client) -> None:
    ticket = api.post("/uploads").json()
    assert httpx.put(f"{team.server.url}{ticket['url']}", content=b"no archive").status_code == 200
    order = {"agent": {"type": "mock"}, "prompt": "mock: say hi", "repo": {"mode": "upload", "upload": ticket["token"]}}
    other = team.token.post("/tasks", json=order)
    never = f"upt_{'0' * 43}"
    none = team.token.post("/tasks", json=order | {"repo": {"mode": "upload", "upload": never}})
    assert (other.status_code, none.status_code) == (404, 404)
    told = [answer.json()["detail"] for answer in (other, none)]
    assert told[0].replace(ticket["token"], never) == told[1]
    assert api.post("/tasks", json=order).status_code == 201


def test_a_limit_is_set_from_above(team: Team) -> None:
    acme = {"ostler-project": "acme/default"}
    admin = client_of(team.server, new_key(team.token, "acme", "admin", **acme))
    member = client_of(team.server, new_key(team.token, "one", "admin", "acme/default", **acme))
    with admin, member:
        assert_problem(member.put("/limits", json=ROOMY), "forbidden")
        assert_problem(admin.put("/limits", json={"scope": "tenant", **ROOMY}), "forbidden")
        assert admin.put("/limits", json=ROOMY).status_code == 200
        assert team.token.put("/limits", json={"scope": "tenant", **ROOMY}, headers=acme).status_code == 200
        assert {each["scope"] for each in admin.get("/limits").json()["items"]} == {"project", "tenant"}
        assert [each["scope"] for each in member.get("/limits").json()["items"]] == ["project"]
        assert [each["scope"] for each in admin.get("/usage").json()["items"]] == ["tenant", "project", "actor"]
        assert [each["scope"] for each in member.get("/usage").json()["items"]] == ["project", "actor"]


@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        ({"liveSessions": -1}, "invalid_request", "liveSessions"),
        ({"liveSessions": 1.5}, "invalid_request", "liveSessions"),
        ({"requestsPerSecond": 0}, "invalid_request", "requestsPerSecond"),
        ({"requestsPerSecond": 5e-324}, "invalid_request", "requestsPerSecond"),
        ({"costPerDay": "much"}, "invalid_request", "costPerDay"),
        ({"tokensPerDay": 10**18}, "invalid_request", "tokensPerDay"),
        ({"workspaces": -1}, "invalid_request", "workspaces"),
        ({"uploadBytesPerDay": 0.5}, "invalid_request", "uploadBytesPerDay"),
        ({"sessions": 1}, "invalid_request", "sessions"),
        ({"scope": "world"}, "invalid_request", "scope"),
        ({"scope": "actor"}, "invalid_request", "actor"),
        ({"scope": "tenant", "projectId": "default"}, "invalid_request", "projectId"),
        ({"projectId": "nowhere"}, "not_found", "nowhere"),
        ({"scope": "actor", "actor": "key:key_none"}, "not_found", "key:key_none"),
    ],
)
def test_limits_that_are_none_are_refused_by_name(team: Team, body: dict[str, Any], code: str, named: str) -> None:
    assert named in str(assert_problem(team.token.put("/limits", json=body), code))


async def test_what_came_in_counts_until_it_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with fleet_in(tmp_path, local_slots=0) as fleet:
        quotas, access = fleet.services.quotas, fleet.services.sessions.store.access
        wanted = {"scope": "project", "uploadBytesPerDay": 10}
        assert (await fleet.api.put("/limits", json=wanted)).status_code == 200
        stored, looked = access.uploaded, []

        async def uploaded(day: str, project: str, actor: str, size: int) -> None:
            with pytest.raises(LimitReached):
                await quotas.check_upload(project, actor)
            looked.append(await stored(day, project, actor, size))

        async def pieces() -> AsyncIterator[bytes]:
            yield bytes(10)

        monkeypatch.setattr(access, "uploaded", uploaded)
        async with quotas.uploading("default", "local", pieces()) as coming:
            assert [len(each) async for each in coming] == [10]
        assert len(looked) == 1
        with pytest.raises(LimitReached):
            await quotas.check_upload("default", "local")
